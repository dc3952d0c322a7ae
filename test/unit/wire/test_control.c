/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire_test.h"

static const struct dmig_wire_hello hello = {
	.version_min = 1,
	.version_max = 2,
	.role = DMIG_ROLE_DATA,
	.data_port = 7788,
	.features = 0x8000000000000001u,
	.id = "00c0ffee00c0ffee",
};

static void header_is_little_endian(void **state)
{
	(void)state;
	const struct dmig_frame_header h = {
		.length = 0x10203, .type = DMIG_MSG_DATA, .flags = DMIG_FRAME_LZ4};
	uint8_t buf[8];
	static const uint8_t expected[8] = {3, 2, 1, 0, 42, 0, 1, 0};
	struct dmig_frame_header back;
	dmig_wire_encode_header(&h, buf);
	assert_memory_equal(buf, expected, sizeof(buf));
	assert_int_equal(dmig_wire_decode_header(buf, &back, NULL), 0);
	assert_int_equal(back.length, 0x10203);
	assert_int_equal(back.type, DMIG_MSG_DATA);
	assert_int_equal(back.flags, DMIG_FRAME_LZ4);
}

static void header_limits(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_frame_header back;
	static const uint8_t largest[8] = {0, 0, 0x10, 0, 42, 0, 0, 0},
			     above[8] = {1, 0, 0x10, 0, 42, 0, 0, 0};
	static const uint8_t flag[8] = {0, 0, 0, 0, 42, 0, 2, 0}, lz4_ping[8] = {0, 0, 0, 0, 2, 0, 1, 0};
	assert_ok(dmig_wire_decode_header(largest, &back, &err), err);
	assert_fails(dmig_wire_decode_header(above, &back, &err), err, EPROTO);
	assert_fails(dmig_wire_decode_header(flag, &back, &err), err, EPROTO);
	assert_fails(dmig_wire_decode_header(lz4_ping, &back, &err), err, EPROTO);
}

static void hello_round_trip(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_hello back;
	ssize_t n = dmig_wire_encode_hello(&hello, buf, sizeof(buf));
	assert_int_equal(n, 36);
	assert_ok(dmig_wire_decode_hello(buf, (size_t)n, &back, &err), err);
	assert_int_equal(back.version_min, 1);
	assert_int_equal(back.version_max, 2);
	assert_int_equal(back.role, DMIG_ROLE_DATA);
	assert_int_equal(back.data_port, 7788);
	assert_true(back.features == hello.features);
	assert_string_equal(back.id, hello.id);

	buf[n] = 7; /* a later version says more */
	assert_ok(dmig_wire_decode_hello(buf, (size_t)n + 1, &back, &err), err);
	assert_fails(dmig_wire_decode_hello(buf, (size_t)n - 1, &back, &err), err, EPROTO);
	assert_fails(dmig_wire_decode_hello(NULL, 0, &back, &err), err, EPROTO);
}

static void hello_rejects(void **state)
{
	(void)state;
	uint8_t good[DMIG_WIRE_SMALL];
	struct dmig_wire_hello back;
	ssize_t n = dmig_wire_encode_hello(&hello, good, sizeof(good));
	static const struct {
		size_t at;
		uint8_t value;
	} bad[] = {{0, 0}, {4, 9}, {8, 0}, {8, 3}, {20, '/'}, {35, 0}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t buf[DMIG_WIRE_SMALL];
		memcpy(buf, good, (size_t)n);
		buf[bad[i].at] = bad[i].value;
		assert_int_equal(dmig_wire_decode_hello(buf, (size_t)n, &back, NULL), -EPROTO);
	}
	struct dmig_wire_hello ours = hello;
	ours.id[3] = 'X';
	assert_int_equal(dmig_wire_encode_hello(&ours, good, sizeof(good)), -EINVAL);
	assert_int_equal(dmig_wire_encode_hello(&hello, good, 35), -EMSGSIZE);
}

static void versions_meet(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_wire_hello peer = hello;
	peer.version_max = 9;
	assert_int_equal(dmig_wire_accept_version(&peer, &err), DMIG_WIRE_VERSION);
	peer.version_min = DMIG_WIRE_VERSION + 1;
	assert_fails(dmig_wire_accept_version(&peer, &err), err, EPROTONOSUPPORT);
	peer.version_min = peer.version_max = 0;
	assert_fails(dmig_wire_accept_version(&peer, &err), err, EPROTONOSUPPORT);
}

static int decode_ping(const void *buf, size_t len)
{
	struct dmig_wire_ping back;
	return dmig_wire_decode_ping(buf, len, &back, NULL);
}

static void ping_round_trip(void **state)
{
	(void)state;
	const struct dmig_wire_ping m = {.seq = UINT64_MAX, .clock_us = 5};
	struct dmig_wire_ping back;
	uint8_t buf[DMIG_WIRE_SMALL];
	ssize_t n = dmig_wire_encode_ping(&m, buf, sizeof(buf));
	assert_int_equal(n, 16);
	assert_int_equal(dmig_wire_decode_ping(buf, 16, &back, NULL), 0);
	assert_true(back.seq == UINT64_MAX && back.clock_us == 5);
	assert_exact_length(decode_ping, buf, n);
}

static int decode_abort(const void *buf, size_t len)
{
	struct dmig_wire_status back;
	return dmig_wire_decode_abort(buf, len, &back, NULL);
}

static void abort_carries_an_error(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *ours = NULL, *theirs = NULL, *err = NULL;
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_status back;
	dmig_error_set_class(&ours, DMIG_ERR_REFUSED, EBUSY, "two\nlines \x1b[0m and \xff");
	struct dmig_wire_status m = dmig_wire_status_of(ours, DMIG_SIDE_DESTINATION);
	ssize_t n = dmig_wire_encode_abort(&m, buf, sizeof(buf));
	assert_true(n > 0);
	assert_ok(dmig_wire_decode_abort(buf, (size_t)n, &back, &err), err);
	assert_exact_length(decode_abort, buf, n);
	assert_int_equal(dmig_wire_status_error(&back, &theirs), -EBUSY);
	assert_int_equal(theirs->code, EBUSY);
	assert_int_equal(theirs->class, DMIG_ERR_REFUSED);
	assert_int_equal(theirs->side, DMIG_SIDE_DESTINATION);
	assert_string_equal(theirs->message, "two lines  [0m and ?");
}

static void abort_limits(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	char text[5000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	struct dmig_wire_status m = {.code = EIO, .message = text}, back;
	uint8_t buf[DMIG_WIRE_SMALL];
	ssize_t n = dmig_wire_encode_abort(&m, buf, sizeof(buf));
	assert_ok(dmig_wire_decode_abort(buf, (size_t)n, &back, &err), err);
	assert_int_equal(strlen(back.message), DMIG_WIRE_MAX_TEXT);
	buf[4] = 77; /* a class of a later version */
	buf[5] = 77;
	assert_ok(dmig_wire_decode_abort(buf, (size_t)n, &back, &err), err);
	assert_int_equal(back.class, DMIG_ERR_FAILED);
	assert_int_equal(back.side, DMIG_SIDE_LOCAL);
	buf[10] = '\n';
	assert_fails(dmig_wire_decode_abort(buf, (size_t)n, &back, &err), err, EPROTO);
	m.code = 0;
	assert_int_equal(dmig_wire_encode_abort(&m, buf, sizeof(buf)), -EINVAL);
	m.code = 5000;
	assert_int_equal(dmig_wire_encode_abort(&m, buf, sizeof(buf)), -EINVAL);
}

static void stream_done_may_be_fine(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_status m = dmig_wire_status_of(NULL, DMIG_SIDE_DESTINATION), back;
	ssize_t n = dmig_wire_encode_stream_done(&m, buf, sizeof(buf));
	assert_ok(dmig_wire_decode_stream_done(buf, (size_t)n, &back, &err), err);
	assert_ok(dmig_wire_status_error(&back, &err), err);
	assert_fails(dmig_wire_decode_abort(buf, (size_t)n, &back, &err), err, EPROTO);
}

static void json_is_bounded_text(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_wire_json back;
	assert_ok(dmig_wire_decode_json("{}", 2, &back, &err), err);
	assert_int_equal(back.len, 2);
	assert_fails(dmig_wire_decode_json("", 0, &back, &err), err, EPROTO);
	assert_fails(dmig_wire_decode_json("\"\xff\"", 3, &back, &err), err, EPROTO);
	assert_fails(dmig_wire_decode_json("\"\0\"", 3, &back, &err), err, EPROTO);
	char *big = malloc(DMIG_WIRE_MAX_JSON + 1);
	memset(big, ' ', DMIG_WIRE_MAX_JSON + 1);
	assert_ok(dmig_wire_decode_json(big, DMIG_WIRE_MAX_JSON, &back, &err), err);
	assert_fails(dmig_wire_decode_json(big, DMIG_WIRE_MAX_JSON + 1, &back, &err), err, EPROTO);
	free(big);
	assert_ok(dmig_wire_decode_empty(NULL, 0, &err), err);
	assert_fails(dmig_wire_decode_empty("x", 1, &err), err, EPROTO);
}

static void query_result_fails_safe(void **state)
{
	(void)state;
	uint8_t buf[DMIG_WIRE_SMALL];
	enum dmig_ran ran;
	assert_int_equal(dmig_wire_encode_query_result(DMIG_RAN_NO, buf, sizeof(buf)), 4);
	assert_int_equal(dmig_wire_decode_query_result(buf, 4, &ran, NULL), 0);
	assert_int_equal(ran, DMIG_RAN_NO);
	assert_int_equal(dmig_wire_decode_query_result(buf, 3, &ran, NULL), -EPROTO);
	assert_int_equal(ran, DMIG_RAN_YES);
	assert_int_equal(dmig_wire_decode_query_result(buf, 5, &ran, NULL), -EPROTO);
	assert_int_equal(dmig_wire_encode_query_result(DMIG_RAN_YES, buf, sizeof(buf)), 4);
	assert_int_equal(dmig_wire_decode_query_result(buf, 4, &ran, NULL), 0);
	assert_int_equal(ran, DMIG_RAN_YES);
	buf[0] = 2;
	assert_int_equal(dmig_wire_decode_query_result(buf, 4, &ran, NULL), -EPROTO);
}

static void names_for_logs(void **state)
{
	(void)state;
	assert_string_equal(dmig_wire_name(DMIG_MSG_STREAM_DONE), "STREAM_DONE");
	assert_string_equal(dmig_wire_name(DMIG_MSG_GO), "GO");
	assert_string_equal(dmig_wire_name(0), "unknown");
	assert_string_equal(dmig_wire_name(5), "unknown");
	assert_string_equal(dmig_wire_name(65535), "unknown");
	assert_string_equal(dmig_wire_stream_kind_name(DMIG_STREAM_CRIU), "criu");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_is_little_endian),
		cmocka_unit_test(header_limits),
		cmocka_unit_test(hello_round_trip),
		cmocka_unit_test(hello_rejects),
		cmocka_unit_test(versions_meet),
		cmocka_unit_test(ping_round_trip),
		cmocka_unit_test(abort_carries_an_error),
		cmocka_unit_test(abort_limits),
		cmocka_unit_test(stream_done_may_be_fine),
		cmocka_unit_test(json_is_bounded_text),
		cmocka_unit_test(query_result_fails_safe),
		cmocka_unit_test(names_for_logs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
