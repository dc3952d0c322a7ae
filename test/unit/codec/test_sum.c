/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include "codec/codec.h"

static void known_values(void **state)
{
	(void)state;
	/* XXH3_64bits with seed 0, from the test vectors of its specification. */
	assert_true(dmig_sum_of("", 0) == 0x2d06800538d394c2u);
}

static void pieces_are_the_whole(void **state)
{
	(void)state;
	cleanup_sum struct dmig_sum *sum = dmig_sum_new();
	uint8_t data[10000];
	assert_non_null(sum);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
	for (size_t at = 0, step = 1; at < sizeof(data); at += step, step = step * 3 % 1009) {
		if (step > sizeof(data) - at)
			step = sizeof(data) - at;
		dmig_sum_add(sum, data + at, step);
	}
	assert_true(dmig_sum_get(sum) == dmig_sum_of(data, sizeof(data)));
	assert_true(dmig_sum_get(sum) == dmig_sum_of(data, sizeof(data))); /* reading changes nothing */
	data[5000] ^= 1;
	assert_false(dmig_sum_get(sum) == dmig_sum_of(data, sizeof(data)));
	dmig_sum_reset(sum);
	dmig_sum_add(sum, NULL, 0);
	assert_true(dmig_sum_get(sum) == dmig_sum_of("", 0));
	dmig_sum_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(pieces_are_the_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
