/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>

#include "codec/codec.h"

#define LEN (256u << 10) /* what a DATA frame carries */

/* Noise that no compressor can shrink; the same in every run. */
static void fill_noise(uint8_t *p, size_t len)
{
	uint64_t x = 88172645463325252u;
	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)(x >> 24);
	}
}

static void round_trip(void **state)
{
	(void)state;
	uint8_t *plain = malloc(LEN), *packed = malloc(LEN), *back = malloc(LEN);
	for (size_t i = 0; i < LEN; i++)
		plain[i] = (uint8_t)(i / 100);
	size_t n = dmig_lz4_compress(plain, LEN, packed, LEN);
	assert_true(n > 0 && n < LEN / 4);
	assert_int_equal(dmig_lz4_decompress(packed, n, back, LEN), 0);
	assert_memory_equal(plain, back, LEN);
	free(plain);
	free(packed);
	free(back);
}

static void noise_goes_plain(void **state)
{
	(void)state;
	uint8_t *plain = malloc(LEN), *packed = malloc(LEN);
	fill_noise(plain, LEN);
	assert_int_equal(dmig_lz4_compress(plain, LEN, packed, LEN), 0);
	memset(plain, 0, LEN);
	assert_int_equal(dmig_lz4_compress(plain, LEN, packed, 4), 0); /* no room */
	assert_int_equal(dmig_lz4_compress(plain, 0, packed, LEN), 0);
	assert_int_equal(dmig_lz4_compress(plain, 4, packed, LEN), 0);
	free(plain);
	free(packed);
}

static void wrong_length_is_refused(void **state)
{
	(void)state;
	uint8_t plain[4096] = {0}, packed[4096], back[8192];
	size_t n = dmig_lz4_compress(plain, sizeof(plain), packed, sizeof(packed));
	assert_true(n > 0);
	assert_int_equal(dmig_lz4_decompress(packed, n, back, sizeof(plain)), 0);
	assert_int_equal(dmig_lz4_decompress(packed, n, back, sizeof(plain) - 1), -EPROTO);
	assert_int_equal(dmig_lz4_decompress(packed, n, back, sizeof(plain) + 1), -EPROTO);
	assert_int_equal(dmig_lz4_decompress(packed, n - 1, back, sizeof(plain)), -EPROTO);
	assert_int_equal(dmig_lz4_decompress(packed, 0, back, sizeof(plain)), -EPROTO);
	assert_int_equal(dmig_lz4_decompress(packed, n, back, 0), -EPROTO);
	assert_int_equal(dmig_lz4_decompress(packed, n, back, SIZE_MAX), -EPROTO);
	assert_int_equal(dmig_lz4_decompress(packed, SIZE_MAX, back, sizeof(plain)), -EPROTO);
}

/* Under a sanitizer this shows a write or read outside the buffers. */
static void hostile_blocks(void **state)
{
	(void)state;
	uint8_t noise[512];
	fill_noise(noise, sizeof(noise));
	for (size_t start = 0; start < 256; start++) {
		for (size_t len = 1; len < 64; len++) {
			uint8_t *block = malloc(len), *out = malloc(128);
			memcpy(block, noise + start, len);
			int r = dmig_lz4_decompress(block, len, out, 128);
			assert_true(r == 0 || r == -EPROTO);
			free(block);
			free(out);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(noise_goes_plain),
		cmocka_unit_test(wrong_length_is_refused),
		cmocka_unit_test(hostile_blocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
