/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "fs/tree.h"
#include "unit/fs/compare.h"
#include "unit/fs/place.h"
#include "unit/net/net_test.h"

/* The public calls over a real connection: both ends at once, one stream after the other, errors told to the
 * other. */

struct receiver {
	struct dmig_conn *conn;
	int to_fd;   /* folder, or file for DMIG_STREAM_LOG */
	int streams; /* how many to take */
	int last;    /* result of the last one */
	struct dmig_stream stream;
	struct dmig_tree_stats stats;
	bool fail_early;  /* answer the first stream with an error of ours */
	bool close_after; /* close the connection, as one does after a failure */
};

static int receive_one(struct receiver *r)
{
	struct dmig_error *err = NULL;
	const struct dmig_tree_recv_opts opts = {.sync = true};
	int k = dmig_stream_next(r->conn, &r->stream, &err);
	if (k < 0) {
		dmig_error_free(err);
		return k;
	}
	if (r->fail_early)
		k = dmig_error_set(&err, ENOSPC, "no room for %s", r->stream.name);
	else if (r->stream.kind == DMIG_STREAM_LOG)
		k = dmig_file_recv(r->conn, r->to_fd, &opts, &r->stats, &err);
	else
		k = dmig_tree_recv(r->conn, r->to_fd, &opts, &r->stats, &err);
	int told = dmig_stream_done(r->conn, err, NULL);
	dmig_error_free(err);
	return k < 0 ? k : told;
}

static void *receive(void *opaque)
{
	struct receiver *r = opaque;
	for (int i = 0; i < r->streams; i++)
		r->last = receive_one(r);
	if (r->close_after)
		dmig_conn_free(r->conn);
	return NULL;
}

struct link {
	struct pair pair;
	struct dmig_conn *source, *destination; /* lent from pair */
	struct receiver receiver;
	pthread_t thread;
};

static void connect_ends(struct link *l)
{
	pair_new(&l->pair);
	l->source = l->pair.client;
	l->destination = l->pair.server;
}

static void link_up(struct link *l, int to_fd, int streams)
{
	connect_ends(l);
	l->receiver = (struct receiver){.conn = l->destination, .to_fd = to_fd, .streams = streams};
	assert_int_equal(pthread_create(&l->thread, NULL, receive, &l->receiver), 0);
}

static void link_down(struct link *l)
{
	assert_int_equal(pthread_join(l->thread, NULL), 0);
	pair_free(&l->pair);
}

static void trees_one_after_the_other(void **state)
{
	(void)state;
	struct place p;
	struct link l;
	struct dmig_tree_stats sent;
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_tree_send_opts opts = {
		.kind = DMIG_STREAM_VOLUME, .name = "pgdata", .compress = true};
	char data[300000];
	place_new(&p, 1);
	for (int i = 0; i < 200; i++) {
		char name[32];
		snprintf(name, sizeof(name), "file%d", i);
		place_fill(data, (unsigned long)i * 1000, (unsigned long)i);
		place_file(p.from_fd, name, data, i * 1000);
	}
	link_up(&l, p.to_fd, 3);
	for (int i = 0; i < 3; i++) {
		int result = dmig_tree_send(l.source, p.from_fd, &opts, &sent, &err);
		assert_ok(dmig_stream_result(l.source, result, PATIENCE, &err), err);
		assert_int_equal(l.receiver.stats.files, 200);
		assert_int_equal(l.receiver.stats.wire_bytes + sizeof("pgdata") + 12, sent.wire_bytes);
		assert_string_equal(l.receiver.stream.name, "pgdata");
	}
	link_down(&l);
	assert_int_equal(l.receiver.last, 0);
	assert_int_equal(compare_trees(p.from, p.to, COMPARE_LINKS), 0);
	place_free(&p);
}

static void one_file(void **state)
{
	(void)state;
	struct place p;
	struct link l;
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_tree_send_opts opts = {.kind = DMIG_STREAM_LOG, .name = "", .compress = true};
	place_new(&p, 0);
	place_file(p.from_fd, "log", "first line\nsecond line\n", 23);
	int from = openat(p.from_fd, "log", O_RDONLY), to = openat(p.to_fd, "log", O_RDWR | O_CREAT, 0600);
	link_up(&l, to, 2);
	assert_ok(dmig_file_send(l.source, from, 0, &opts, NULL, &err), err);
	assert_ok(dmig_stream_wait_done(l.source, PATIENCE, &err), err);
	place_file(p.from_fd, "log", "first line\nsecond line\nthird line\n", 34);
	assert_ok(dmig_file_send(l.source, from, 23, &opts, NULL, &err), err); /* what has come since */
	assert_ok(dmig_stream_wait_done(l.source, PATIENCE, &err), err);
	link_down(&l);
	char text[64];
	assert_int_equal(pread(to, text, sizeof(text), 0), 34);
	assert_memory_equal(text, "first line\nsecond line\nthird line\n", 34);
	close(from);
	close(to);
	place_free(&p);
}

#define PIECES 3000
#define PIECE 1000 /* bytes */

static void *feed(void *opaque)
{
	int fd = *(int *)opaque;
	char data[PIECE];
	for (int i = 0; i < PIECES; i++) {
		memset(data, i, sizeof(data));
		assert_int_equal(dmig_write_full(fd, data, sizeof(data)), 0);
	}
	close(fd);
	return NULL;
}

/* Number of right pieces. */
static void *taste(void *opaque)
{
	int fd = *(int *)opaque;
	char data[PIECE], right[PIECE];
	intptr_t i = 0;
	while (dmig_read_full(fd, data, sizeof(data)) == 0) {
		memset(right, (int)i, sizeof(right));
		if (memcmp(data, right, sizeof(data)) != 0)
			break;
		i++;
	}
	return (void *)i;
}

static void from_pipe_to_pipe(void **state)
{
	(void)state;
	struct link l;
	int in[2], out[2];
	pthread_t feeder, taster;
	void *right;
	struct dmig_tree_stats sent;
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_tree_send_opts opts = {.kind = DMIG_STREAM_LOG, .name = ""};
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	assert_int_equal(pthread_create(&feeder, NULL, feed, &in[1]), 0);
	assert_int_equal(pthread_create(&taster, NULL, taste, &out[0]), 0);
	link_up(&l, out[1], 1);
	assert_ok(dmig_file_send(l.source, in[0], 0, &opts, &sent, &err), err);
	assert_ok(dmig_stream_wait_done(l.source, PATIENCE, &err), err);
	assert_int_equal(sent.bytes, PIECES * PIECE);
	link_down(&l);
	close(out[1]);
	assert_int_equal(pthread_join(feeder, NULL), 0);
	assert_int_equal(pthread_join(taster, &right), 0);
	assert_int_equal((intptr_t)right, PIECES);
	close(in[0]);
	close(out[0]);
}

static void receiver_says_why(void **state)
{
	(void)state;
	struct place p;
	struct link l;
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_tree_send_opts opts = {.kind = DMIG_STREAM_VOLUME, .name = "data"};
	place_new(&p, 0);
	place_file(p.from_fd, "f", "x", 1);
	connect_ends(&l);
	l.receiver = (struct receiver){.conn = l.destination, .to_fd = p.to_fd, .fail_early = true};
	assert_ok(dmig_tree_send(l.source, p.from_fd, &opts, NULL, &err), err);
	assert_int_equal(receive_one(&l.receiver), -ENOSPC);
	assert_int_equal(dmig_stream_wait_done(l.source, PATIENCE, &err), -ENOSPC);
	assert_string_equal(err->message, "no room for data");
	assert_int_equal(err->side, DMIG_SIDE_DESTINATION);
	pair_free(&l.pair);
	place_free(&p);
}

/* The receiver stops in the middle of much data: its reason arrives although sending fails. */
static void reason_arrives_after_a_broken_send(void **state)
{
	(void)state;
	struct place p;
	struct pair pair;
	int fds[2];
	pthread_t thread;
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_tree_send_opts opts = {.kind = DMIG_STREAM_VOLUME, .name = "data"};
	place_new(&p, 0);
	int fd = openat(p.from_fd, "large", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(posix_fallocate(fd, 0, 64 << 20), 0);
	close(fd);
	assert_int_equal(mount("tmpfs", p.to, "tmpfs", MS_REMOUNT, "size=1m"), 0);
	tcp_pair(fds);
	pair_over(fds, &pair);
	struct receiver r = {.conn = pair.server, .to_fd = p.to_fd, .streams = 1, .close_after = true};
	assert_int_equal(pthread_create(&thread, NULL, receive, &r), 0);
	int sent = dmig_tree_send(pair.client, p.from_fd, &opts, NULL, &err);
	assert_int_equal(sent, -EPIPE);
	assert_int_equal(dmig_stream_result(pair.client, sent, PATIENCE, &err), -ENOSPC);
	assert_non_null(strstr(err->message, "/large"));
	assert_int_equal(pthread_join(thread, NULL), 0);
	pair.server = NULL;
	pair_free(&pair);
	place_free(&p);
}

static void sender_says_why(void **state)
{
	(void)state;
	struct place p;
	struct link l;
	struct dmig_stream stream;
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_tree_recv_opts recv_opts = {0};
	const struct dmig_tree_send_opts opts = {.kind = DMIG_STREAM_VOLUME, .name = "data"};
	place_new(&p, 0);
	int pipe_fd = open("/dev/null", O_RDONLY); /* no folder at all */
	connect_ends(&l);
	int sent = dmig_tree_send(l.source, pipe_fd, &opts, NULL, &err);
	assert_fails(dmig_stream_result(l.source, sent, PATIENCE, &err), err, ENOTDIR);
	assert_ok(dmig_stream_next(l.destination, &stream, &err), err);
	assert_int_equal(dmig_tree_recv(l.destination, p.to_fd, &recv_opts, NULL, &err), -ENOTDIR);
	assert_int_equal(err->side, DMIG_SIDE_SOURCE);
	assert_non_null(strstr(err->message, "the sender gave up"));
	close(pipe_fd);
	pair_free(&l.pair);
	place_free(&p);
}

static void orderly_end(void **state)
{
	(void)state;
	struct pair pair;
	struct dmig_stream stream;
	cleanup_error struct dmig_error *err = NULL;
	pair_new(&pair);
	assert_fails(dmig_stream_wait_done(pair.client, 10, &err), err, ETIMEDOUT);
	dmig_conn_free(pair.client);
	pair.client = NULL;
	assert_fails(dmig_stream_next(pair.server, &stream, &err), err, EPIPE);
	dmig_error_set(&err, EPIPE, "sending failed");
	assert_int_equal(dmig_stream_result(pair.server, -EPIPE, PATIENCE, &err), -EPIPE);
	assert_string_equal(err->message, "sending failed"); /* nobody told a better reason */
	pair_free(&pair);
}

int main(void)
{
	place_need_root();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees_one_after_the_other),
		cmocka_unit_test(one_file),
		cmocka_unit_test(from_pipe_to_pipe),
		cmocka_unit_test(receiver_says_why),
		cmocka_unit_test(reason_arrives_after_a_broken_send),
		cmocka_unit_test(sender_says_why),
		cmocka_unit_test(orderly_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
