/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net_test.h"

#include <stdatomic.h>

#define SENDERS 4
#define FRAMES 100 /* of each sender */

/* seq and sender in the head, a body whose length and contents follow from them. */
struct head {
	uint32_t sender, seq;
};

static uint32_t body_len(const struct head *h)
{
	static const uint32_t lengths[] = {
		0, 1, 100, 16368, 16369, 16384, 40000, DMIG_WIRE_MAX_PAYLOAD - sizeof(*h)};
	return lengths[(h->seq * 7 + h->sender) % (sizeof(lengths) / sizeof(lengths[0]))];
}

struct sender {
	struct dmig_conn *conn;
	uint32_t number;
	int result;
};

static void *sender_main(void *opaque)
{
	struct sender *s = opaque;
	uint8_t *body = malloc(DMIG_WIRE_MAX_PAYLOAD);
	for (uint32_t i = 0; i < FRAMES && s->result == 0; i++) {
		const struct head h = {.sender = s->number, .seq = i};
		uint32_t len = body_len(&h);
		fill_pattern(body, len, h.sender * 1000 + h.seq);
		s->result = dmig_conn_send(s->conn, DMIG_MSG_DATA, 0, &h, sizeof(h), body, len, NULL);
	}
	free(body);
	return NULL;
}

static void check_frame(const struct dmig_frame *f, uint32_t next[SENDERS], uint8_t *expected)
{
	struct head h;
	assert_true(f->length >= sizeof(h));
	memcpy(&h, f->payload, sizeof(h));
	assert_true(h.sender < SENDERS);
	assert_int_equal(h.seq, next[h.sender]++);
	assert_int_equal(f->length, sizeof(h) + body_len(&h));
	fill_pattern(expected, body_len(&h), h.sender * 1000 + h.seq);
	assert_memory_equal(f->payload + sizeof(h), expected, body_len(&h));
}

/* n senders on one end, this thread reads the other. */
static void send_from_many(struct dmig_conn *from, struct dmig_conn *to, uint32_t n)
{
	cleanup_error struct dmig_error *err = NULL;
	struct sender senders[SENDERS];
	pthread_t threads[SENDERS];
	uint32_t next[SENDERS] = {0};
	uint8_t *expected = malloc(DMIG_WIRE_MAX_PAYLOAD);
	for (uint32_t i = 0; i < n; i++) {
		senders[i] = (struct sender){.conn = from, .number = i};
		assert_int_equal(pthread_create(&threads[i], NULL, sender_main, &senders[i]), 0);
	}
	for (uint32_t i = 0; i < n * FRAMES; i++) {
		struct dmig_frame f;
		assert_ok(dmig_conn_recv(to, PATIENCE, &f, &err), err);
		check_frame(&f, next, expected);
	}
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(senders[i].result, 0);
	}
	free(expected);
}

static void many_senders(void **state)
{
	(void)state;
	struct pair p;
	int fds[2];
	tcp_pair(fds);
	pair_over(fds, &p);
	send_from_many(p.client, p.server, SENDERS);
	pair_free(&p);
}

static void *backwards_main(void *opaque)
{
	struct pair *p = opaque;
	send_from_many(p->server, p->client, 1);
	return NULL;
}

static void both_directions(void **state)
{
	(void)state;
	struct pair p;
	pthread_t thread;
	int fds[2];
	tcp_pair(fds);
	pair_over(fds, &p);
	assert_int_equal(pthread_create(&thread, NULL, backwards_main, &p), 0);
	send_from_many(p.client, p.server, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pair_free(&p);
}

struct blocked {
	struct dmig_conn *conn;
	bool sends;
	atomic_int rounds; /* frames that went through */
	int result;
};

/* Sends or receives until it fails. */
static void *blocked_main(void *opaque)
{
	struct blocked *b = opaque;
	uint8_t *body = calloc(1, DMIG_WIRE_MAX_PAYLOAD);
	struct dmig_frame f;
	do {
		b->result = b->sends ? dmig_conn_send(b->conn, DMIG_MSG_DATA, 0, NULL, 0, body,
					       DMIG_WIRE_MAX_PAYLOAD, NULL)
				     : dmig_conn_recv(b->conn, -1, &f, NULL);
		atomic_fetch_add(&b->rounds, 1);
	} while (b->result == 0);
	free(body);
	return NULL;
}

/* Wait until bytes stop moving: the sender is stuck in the middle of a frame. */
static void wait_until_stuck(const struct dmig_conn *conn)
{
	uint64_t before, now = 0, none;
	do {
		before = now;
		usleep(20000); /* how long "stopped" is, not a guess about when */
		dmig_conn_bytes(conn, &now, &none);
	} while (now != before || now < 1000);
}

static void shutdown_wakes_everybody(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct blocked b[4] = {{.sends = true}, {.sends = true}, {.sends = true}, {.sends = false}};
	pthread_t threads[4];
	struct dmig_frame f;
	struct pair p;
	pair_new(&p);
	for (int i = 0; i < 4; i++) {
		b[i].conn = p.client;
		assert_int_equal(pthread_create(&threads[i], NULL, blocked_main, &b[i]), 0);
	}
	wait_until_stuck(p.client);
	int64_t start = dmig_now_ms();
	dmig_conn_shutdown(p.client);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(b[i].result, -ECONNABORTED);
	}
	assert_true(dmig_now_ms() - start < 5000);
	assert_fails(dmig_conn_recv(p.client, -1, &f, &err), err, ECONNABORTED);
	assert_fails(dmig_conn_send(p.client, DMIG_MSG_PING, 0, NULL, 0, NULL, 0, &err), err, ECONNABORTED);
	/* The other end learns of it, after what was sent. */
	int r;
	while ((r = dmig_conn_recv(p.server, PATIENCE, &f, NULL)) == 0)
		;
	assert_int_equal(r, -EPIPE);
	pair_free(&p);
}

static void last_words_arrive(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_frame f;
	struct pair p;
	int fds[2];
	tcp_pair(fds);
	pair_over(fds, &p);
	assert_ok(dmig_conn_send(p.client, DMIG_MSG_ABORT, 0, "why", 3, NULL, 0, &err), err);
	dmig_conn_shutdown(p.client);
	assert_ok(dmig_conn_recv(p.server, PATIENCE, &f, &err), err);
	assert_int_equal(f.type, DMIG_MSG_ABORT);
	assert_fails(dmig_conn_recv(p.server, PATIENCE, &f, &err), err, EPIPE);
	pair_free(&p);
}

static void send_gives_up(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	uint8_t *body = calloc(1, DMIG_WIRE_MAX_PAYLOAD);
	struct pair p;
	int r;
	pair_new(&p);
	dmig_conn_set_send_timeout(p.client, 50);
	do
		r = dmig_conn_send(p.client, DMIG_MSG_DATA, 0, NULL, 0, body, DMIG_WIRE_MAX_PAYLOAD, &err);
	while (r == 0);
	assert_fails(r, err, ETIMEDOUT);
	assert_fails(dmig_conn_send(p.client, DMIG_MSG_PING, 0, NULL, 0, NULL, 0, &err), err, ETIMEDOUT);
	free(body);
	pair_free(&p);
}

/* A small frame waits for the frame in front of it, not for a thread that always has another. */
static void bulk_starves_nobody(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct pair p;
	int fds[2];
	pthread_t bulk_thread, reader_thread;
	tcp_pair(fds);
	pair_over(fds, &p);
	struct blocked bulk = {.conn = p.client, .sends = true}, reader = {.conn = p.server};
	assert_int_equal(pthread_create(&reader_thread, NULL, blocked_main, &reader), 0);
	assert_int_equal(pthread_create(&bulk_thread, NULL, blocked_main, &bulk), 0);
	int overtaken = 0;
	for (int i = 0; i < 100; i++) {
		int before = atomic_load(&bulk.rounds);
		assert_ok(dmig_conn_send(p.client, DMIG_MSG_PING, 0, NULL, 0, NULL, 0, &err), err);
		/* One in front of us, one that came to its end meanwhile; more only if we were not scheduled.
		 */
		overtaken += atomic_load(&bulk.rounds) - before > 3;
	}
	assert_in_range(overtaken, 0, 20);
	dmig_conn_shutdown(p.client);
	pthread_join(bulk_thread, NULL);
	pthread_join(reader_thread, NULL);
	assert_int_equal(bulk.result, -ECONNABORTED);
	assert_int_equal(reader.result, -EPIPE);
	pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_senders),
		cmocka_unit_test(both_directions),
		cmocka_unit_test(shutdown_wakes_everybody),
		cmocka_unit_test(last_words_arrive),
		cmocka_unit_test(send_gives_up),
		cmocka_unit_test(bulk_starves_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
