/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../net/net_test.h"

#include "migrate/peer.h"

/* ms: the limit is 1000 while frozen; above it this is only for a machine that is busy. */
#define SILENCE_AT_LEAST 900
#define SILENCE_AT_MOST 8000
/* More than a peer keeps for its phases. */
#define FLOOD 200

static struct pair both;
static struct dmig_stop *stop;
static struct dmig_peer *peer;
static struct dmig_conn *other; /* the raw end: what a test sends there is what the peer hears */

static int set_up(void **state)
{
	struct dmig_error *err = NULL;
	(void)state;
	pair_new(&both);
	other = both.server;
	stop = dmig_stop_new();
	assert_non_null(stop);
	assert_ok(dmig_peer_new(both.client, DMIG_SIDE_SOURCE, stop, &peer, &err), err);
	both.client = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dmig_peer_free(peer);
	pair_free(&both);
	dmig_stop_free(stop);
	return 0;
}

static int send_raw(enum dmig_msg type, const void *buf, size_t len)
{
	return dmig_conn_send(other, type, 0, buf, len, NULL, 0, NULL);
}

/* Once it has answered a ping, it has heard all that came before. */
static void wait_until_heard(void)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_ping ping = {.seq = 7};
	struct dmig_error *err = NULL;
	struct dmig_frame f;
	ssize_t n = dmig_wire_encode_ping(&ping, buf, sizeof(buf));
	assert_int_equal(send_raw(DMIG_MSG_PING, buf, (size_t)n), 0);
	do
		assert_ok(dmig_conn_recv(other, PATIENCE, &f, &err), err);
	while (f.type != DMIG_MSG_PONG);
}

static void an_abort_brings_its_reason(void **state)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_error *err = NULL, *why = NULL;
	(void)state;
	dmig_error_set_class(&why, DMIG_ERR_REFUSED, EPERM, "no room");
	struct dmig_wire_status status = dmig_wire_status_of(why, DMIG_SIDE_DESTINATION);
	ssize_t n = dmig_wire_encode_abort(&status, buf, sizeof(buf));
	assert_int_equal(send_raw(DMIG_MSG_ABORT, buf, (size_t)n), 0);
	assert_int_equal(dmig_peer_expect(peer, DMIG_MSG_READY, PATIENCE, &err), -EPERM);
	assert_int_equal(err->class, DMIG_ERR_REFUSED);
	assert_int_equal(err->side, DMIG_SIDE_DESTINATION);
	assert_non_null(strstr(err->message, "no room"));
	dmig_error_free(err);
	dmig_error_free(why);
}

static void silence_ends_it_while_frozen(void **state)
{
	struct dmig_error *err = NULL;
	struct dmig_peer_msg msg;
	int64_t start = dmig_now_ms();
	(void)state;
	dmig_peer_frozen(peer, true);
	assert_fails(dmig_peer_next(peer, -1, &msg, &err), err, ETIMEDOUT);
	assert_in_range(dmig_now_ms() - start, SILENCE_AT_LEAST, SILENCE_AT_MOST);
}

static void its_end_is_a_reason_to_stop(void **state)
{
	struct dmig_error *err = NULL;
	(void)state;
	dmig_conn_free(both.server);
	both.server = NULL;
	assert_true(dmig_peer_expect(peer, DMIG_MSG_READY, PATIENCE, &err) < 0);
	assert_true(dmig_stop_check(stop, NULL) < 0);
	dmig_error_free(err);
	assert_true(dmig_peer_wait_closed(peer, PATIENCE));
}

/* GO and RESUMED count also when something else came to an end behind them. */
static void what_came_before_a_stop_is_heard(void **state)
{
	struct dmig_error *err = NULL;
	(void)state;
	assert_int_equal(send_raw(DMIG_MSG_RESUMED, NULL, 0), 0);
	wait_until_heard();
	dmig_stop_printf(stop, DMIG_ERR_CANCELLED, ECANCELED, "cancelled");
	assert_ok(dmig_peer_expect(peer, DMIG_MSG_RESUMED, PATIENCE, &err), err);
	assert_fails(dmig_peer_expect(peer, DMIG_MSG_FINISHED, PATIENCE, &err), err, ECANCELED);
}

static void a_flood_is_not_kept(void **state)
{
	struct dmig_error *err = NULL;
	struct dmig_peer_msg msg;
	int n = 0, r;
	(void)state;
	for (int i = 0; i < FLOOD && send_raw(DMIG_MSG_PREPARED, NULL, 0) == 0; i++)
		;
	assert_true(dmig_peer_wait_closed(peer, PATIENCE));
	while ((r = dmig_peer_next(peer, PATIENCE, &msg, &err)) == 0) {
		free(msg.payload);
		n++;
	}
	assert_true(n < FLOOD);
	assert_int_equal(r, -EPROTO);
	dmig_error_free(err);
}

static void only_objects_pass_as_json(void **state)
{
	static const char *const texts[] = {"[]", "7", "{\"a\":1,\"a\":2}", "{", "\"x\""};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct dmig_error *err = NULL;
		json_t *body = NULL;
		assert_int_equal(send_raw(DMIG_MSG_CHECK_RESULT, texts[i], strlen(texts[i])), 0);
		assert_true(dmig_peer_expect_json(peer, DMIG_MSG_CHECK_RESULT, PATIENCE, &body, &err) < 0);
		assert_null(body);
		assert_non_null(err);
		dmig_error_free(err);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(an_abort_brings_its_reason),
		CASE(silence_ends_it_while_frozen),
		CASE(its_end_is_a_reason_to_stop),
		CASE(what_came_before_a_stop_is_heard),
		CASE(a_flood_is_not_kept),
		CASE(only_objects_pass_as_json),
	};
	return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
