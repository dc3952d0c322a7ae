/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire_test.h"

static int try_begin(enum dmig_stream_kind kind, const char *name)
{
	const struct dmig_wire_stream_begin m = {.kind = kind, .name = name};
	struct dmig_wire_stream_begin back;
	uint8_t buf[DMIG_WIRE_SMALL];
	ssize_t n = dmig_wire_encode_stream_begin(&m, buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	int r = dmig_wire_decode_stream_begin(buf, (size_t)n, &back, NULL);
	assert_int_equal(r, 0);
	assert_int_equal(back.kind, kind);
	assert_string_equal(back.name, name ? name : "");
	return 0;
}

static void begin_names(void **state)
{
	(void)state;
	char name[DMIG_WIRE_MAX_STREAM_NAME + 2] = {0};
	memset(name, 'v', DMIG_WIRE_MAX_STREAM_NAME);
	assert_int_equal(try_begin(DMIG_STREAM_ROOTFS, NULL), 0);
	assert_int_equal(try_begin(DMIG_STREAM_VOLUME, "pgdata"), 0);
	assert_int_equal(try_begin(DMIG_STREAM_VOLUME, name), 0);
	assert_int_equal(try_begin(DMIG_STREAM_BIND, "/srv/data"), 0);
	name[DMIG_WIRE_MAX_STREAM_NAME] = 'v';
	assert_int_equal(try_begin(DMIG_STREAM_VOLUME, name), -EINVAL);
	assert_int_equal(try_begin(DMIG_STREAM_VOLUME, ""), -EINVAL);
	assert_int_equal(try_begin(DMIG_STREAM_VOLUME, ".."), -EINVAL);
	assert_int_equal(try_begin(DMIG_STREAM_VOLUME, "a/b"), -EINVAL);
	assert_int_equal(try_begin(DMIG_STREAM_BIND, "srv"), -EINVAL);
	assert_int_equal(try_begin(DMIG_STREAM_BIND, "/srv/../etc"), -EINVAL);
	assert_int_equal(try_begin(DMIG_STREAM_LOG, "a\nb"), -EINVAL);
	assert_int_equal(try_begin((enum dmig_stream_kind)0, ""), -EINVAL);
	assert_int_equal(try_begin((enum dmig_stream_kind)7, ""), -EINVAL);
}

static int decode_begin(const void *buf, size_t len)
{
	struct dmig_wire_stream_begin back;
	return dmig_wire_decode_stream_begin(buf, len, &back, NULL);
}

static void begin_hostile(void **state)
{
	(void)state;
	static const uint8_t good[] = {3, 0, 2, 0, 'v', '1', 0};
	assert_exact_length(decode_begin, good, sizeof(good));
	static const uint8_t dots[] = {3, 0, 2, 0, '.', '.', 0}, nul[] = {3, 0, 2, 0, 'v', 0, 0};
	static const uint8_t open_end[] = {3, 0, 2, 0, 'v', '1', 'x'}, kind[] = {9, 0, 2, 0, 'v', '1', 0};
	static const uint8_t too_long[] = {3, 0, 0xff, 0xff, 'v', '1', 0};
	assert_int_equal(decode_begin(dots, sizeof(dots)), -EPROTO);
	assert_int_equal(decode_begin(nul, sizeof(nul)), -EPROTO);
	assert_int_equal(decode_begin(open_end, sizeof(open_end)), -EPROTO);
	assert_int_equal(decode_begin(kind, sizeof(kind)), -EPROTO);
	assert_int_equal(decode_begin(too_long, sizeof(too_long)), -EPROTO);
}

static int try_data(uint64_t offset, uint32_t plain_len, uint32_t len, uint16_t flags)
{
	const struct dmig_wire_data m = {.offset = offset, .plain_len = plain_len};
	struct dmig_wire_data back;
	uint8_t *buf = calloc(1, DMIG_WIRE_DATA_HEAD + len);
	ssize_t n = dmig_wire_encode_data(&m, buf, DMIG_WIRE_DATA_HEAD);
	if (n < 0) { /* say it all the same */
		memcpy(buf, &offset, 8);
		memcpy(buf + 8, &plain_len, 4);
	}
	int r = dmig_wire_decode_data(buf, DMIG_WIRE_DATA_HEAD + len, flags, &back, NULL);
	if (r == 0) {
		assert_int_equal(n, DMIG_WIRE_DATA_HEAD);
		assert_true(back.offset == offset && back.plain_len == plain_len && back.len == len);
		assert_ptr_equal(back.bytes, buf + DMIG_WIRE_DATA_HEAD);
	}
	free(buf);
	return r;
}

static void data_ranges(void **state)
{
	(void)state;
	assert_int_equal(try_data(0, 1, 1, 0), 0);
	assert_int_equal(try_data(INT64_MAX - 4, 4, 4, 0), 0);
	assert_int_equal(try_data(0, DMIG_WIRE_MAX_DATA, DMIG_WIRE_MAX_DATA, 0), 0);
	assert_int_equal(try_data(5, DMIG_WIRE_MAX_DATA, 9, DMIG_FRAME_LZ4), 0);
	assert_int_equal(try_data(0, 0, 0, 0), -EPROTO);
	assert_int_equal(try_data(INT64_MAX - 3, 4, 4, 0), -EPROTO);
	assert_int_equal(try_data(UINT64_MAX, 4, 4, 0), -EPROTO);
	assert_int_equal(try_data(0, 4, 3, 0), -EPROTO);
	assert_int_equal(try_data(0, 4, 5, 0), -EPROTO);
	assert_int_equal(try_data(0, 4, 4, DMIG_FRAME_LZ4), -EPROTO);
	assert_int_equal(try_data(0, 4, 0, DMIG_FRAME_LZ4), -EPROTO);
	assert_int_equal(try_data(0, DMIG_WIRE_MAX_DATA + 1, 9, DMIG_FRAME_LZ4), -EPROTO);
	struct dmig_wire_data back;
	assert_int_equal(dmig_wire_decode_data("short", 5, 0, &back, NULL), -EPROTO);
}

static int decode_hole(const void *buf, size_t len)
{
	struct dmig_wire_hole back;
	return dmig_wire_decode_hole(buf, len, &back, NULL);
}

static void hole_round_trip(void **state)
{
	(void)state;
	struct dmig_wire_hole m = {.offset = 1ull << 40, .len = 4096}, back;
	uint8_t buf[DMIG_WIRE_SMALL];
	ssize_t n = dmig_wire_encode_hole(&m, buf, sizeof(buf));
	assert_int_equal(dmig_wire_decode_hole(buf, (size_t)n, &back, NULL), 0);
	assert_memory_equal(&m, &back, sizeof(m));
	assert_exact_length(decode_hole, buf, n);
	m.len = 0;
	assert_int_equal(dmig_wire_encode_hole(&m, buf, sizeof(buf)), -EINVAL);
	m.len = UINT64_MAX;
	assert_int_equal(dmig_wire_encode_hole(&m, buf, sizeof(buf)), -EINVAL);
	memset(buf, 0xff, 16);
	assert_int_equal(decode_hole(buf, 16), -EPROTO);
}

static int decode_entry_end(const void *buf, size_t len)
{
	struct dmig_wire_entry_end back;
	return dmig_wire_decode_entry_end(buf, len, &back, NULL);
}

static int decode_stream_end(const void *buf, size_t len)
{
	struct dmig_wire_stream_end back;
	return dmig_wire_decode_stream_end(buf, len, &back, NULL);
}

static void ends_round_trip(void **state)
{
	(void)state;
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_entry_end e = {.sum = UINT64_MAX, .size = INT64_MAX}, e_back;
	ssize_t n = dmig_wire_encode_entry_end(&e, buf, sizeof(buf));
	assert_int_equal(dmig_wire_decode_entry_end(buf, (size_t)n, &e_back, NULL), 0);
	assert_memory_equal(&e, &e_back, sizeof(e));
	assert_exact_length(decode_entry_end, buf, n);
	buf[15] = 0x80;
	assert_int_equal(decode_entry_end(buf, 16), -EPROTO);

	const struct dmig_wire_stream_end s = {.entries = 3, .files = 2, .bytes = 1};
	struct dmig_wire_stream_end s_back;
	n = dmig_wire_encode_stream_end(&s, buf, sizeof(buf));
	assert_int_equal(dmig_wire_decode_stream_end(buf, (size_t)n, &s_back, NULL), 0);
	assert_memory_equal(&s, &s_back, sizeof(s));
	assert_exact_length(decode_stream_end, buf, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begin_names),
		cmocka_unit_test(begin_hostile),
		cmocka_unit_test(data_ranges),
		cmocka_unit_test(hole_round_trip),
		cmocka_unit_test(ends_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
