/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A network that cuts, changes and repeats: a relay between two good ends. */
#include "net_test.h"

#include <poll.h>
#include <sys/eventfd.h>

/* What the client writes comes out of `from`, what is put into `to` reaches the server. */
struct relay {
	struct pair p;
	int from, to;
};

static void copy_bytes(int from, int to, size_t len)
{
	uint8_t buf[1000];
	while (len) {
		ssize_t n = read(from, buf, len < sizeof(buf) ? len : sizeof(buf));
		assert_true(n > 0);
		assert_int_equal(dmig_write_full(to, buf, (size_t)n), 0);
		len -= (size_t)n;
	}
}

struct bridge {
	int a, b, stop; /* stop: readable when it is over */
};

/* Both ways until it is stopped: only for the handshake. */
static void *bridge_main(void *opaque)
{
	const struct bridge *r = opaque;
	uint8_t buf[4096];
	for (;;) {
		struct pollfd p[3] = {{.fd = r->stop, .events = POLLIN}, {.fd = r->a, .events = POLLIN},
			{.fd = r->b, .events = POLLIN}};
		if (poll(p, 3, -1) < 0 || p[0].revents)
			return NULL;
		int from = p[1].revents ? r->a : r->b, to = from == r->a ? r->b : r->a;
		ssize_t n = read(from, buf, sizeof(buf));
		if (n <= 0 || dmig_write_full(to, buf, (size_t)n) < 0)
			return NULL;
	}
}

/* The handshake runs over a bridge; then the test moves bytes by hand. */
static void relay_new(struct relay *r)
{
	int client[2], server[2], ends[2];
	uint64_t sent, received, none;
	unix_pair(client);
	unix_pair(server);
	struct bridge bridge = {.a = client[1], .b = server[1], .stop = eventfd(0, EFD_CLOEXEC)};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, bridge_main, &bridge), 0);
	ends[0] = client[0];
	ends[1] = server[0];
	pair_over(ends, &r->p);
	/* All that both ends sent has been read by them: the bridge is idle and can be stopped. */
	dmig_conn_bytes(r->p.client, &sent, &none);
	dmig_conn_bytes(r->p.server, &none, &received);
	assert_int_equal(sent, received);
	assert_int_equal(eventfd_write(bridge.stop, 1), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(bridge.stop);
	r->from = client[1];
	r->to = server[1];
}

static void relay_free(struct relay *r)
{
	close(r->from);
	close(r->to);
	pair_free(&r->p);
}

/* Bytes on the wire of one CHECK with 50 bytes. */
static size_t send_check(struct relay *r)
{
	cleanup_error struct dmig_error *err = NULL;
	uint64_t before, after, none;
	uint8_t body[50] = {1, 2, 3};
	dmig_conn_bytes(r->p.client, &before, &none);
	assert_ok(dmig_conn_send(r->p.client, DMIG_MSG_CHECK, 0, NULL, 0, body, sizeof(body), &err), err);
	dmig_conn_bytes(r->p.client, &after, &none);
	return (size_t)(after - before);
}

static void frame_in_pieces(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_frame f;
	struct relay r;
	relay_new(&r);
	size_t len = send_check(&r) + send_check(&r);
	for (size_t at = 0; at < len; at++) {
		int result = dmig_conn_recv(r.p.server, 0, &f, NULL);
		if (at == len / 2)
			assert_int_equal(result, 0);
		else
			assert_int_equal(result, -ETIMEDOUT);
		copy_bytes(r.from, r.to, 1);
	}
	assert_ok(dmig_conn_recv(r.p.server, PATIENCE, &f, &err), err);
	assert_int_equal(f.length, 50);
	assert_int_equal(f.payload[2], 3);
	relay_free(&r);
}

static void cut_in_a_frame(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_frame f;
	struct relay r;
	relay_new(&r);
	size_t len = send_check(&r);
	copy_bytes(r.from, r.to, len - 1);
	close(r.to);
	r.to = -1;
	assert_fails(dmig_conn_recv(r.p.server, PATIENCE, &f, &err), err, EPIPE);
	relay_free(&r);
}

static void changed_byte(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_frame f;
	struct relay r;
	uint8_t buf[200];
	relay_new(&r);
	size_t len = send_check(&r);
	assert_true(len <= sizeof(buf));
	assert_int_equal(dmig_read_full(r.from, buf, len), 0);
	buf[20] ^= 1;
	assert_int_equal(dmig_write_full(r.to, buf, len), 0);
	assert_fails(dmig_conn_recv(r.p.server, PATIENCE, &f, &err), err, EPROTO);
	assert_fails(dmig_conn_recv(r.p.server, PATIENCE, &f, &err), err, EPROTO);
	relay_free(&r);
}

static void repeated_record(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_frame f;
	struct relay r;
	uint8_t buf[200];
	relay_new(&r);
	size_t len = send_check(&r);
	assert_int_equal(dmig_read_full(r.from, buf, len), 0);
	assert_int_equal(dmig_write_full(r.to, buf, len), 0);
	assert_int_equal(dmig_write_full(r.to, buf, len), 0);
	assert_ok(dmig_conn_recv(r.p.server, PATIENCE, &f, &err), err);
	assert_fails(dmig_conn_recv(r.p.server, PATIENCE, &f, &err), err, EPROTO);
	relay_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_in_pieces),
		cmocka_unit_test(cut_in_a_frame),
		cmocka_unit_test(changed_byte),
		cmocka_unit_test(repeated_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
