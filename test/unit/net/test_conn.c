/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net_test.h"

/* One thread sends and receives here: small frames fit into the socket's buffer. */
static void exchange(struct pair *p)
{
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_frame f;
	assert_ok(dmig_conn_send(p->client, DMIG_MSG_CHECK, 0, "ab", 2, "cde", 3, &err), err);
	assert_ok(dmig_conn_send(p->client, DMIG_MSG_DATA, DMIG_FRAME_LZ4, "x", 1, NULL, 0, &err), err);
	assert_ok(dmig_conn_send(p->client, DMIG_MSG_GO, 0, NULL, 0, NULL, 0, &err), err);
	assert_ok(dmig_conn_recv(p->server, PATIENCE, &f, &err), err);
	assert_int_equal(f.type, DMIG_MSG_CHECK);
	assert_int_equal(f.length, 5);
	assert_memory_equal(f.payload, "abcde", 5);
	assert_ok(dmig_conn_recv(p->server, PATIENCE, &f, &err), err);
	assert_int_equal(f.flags, DMIG_FRAME_LZ4);
	assert_ok(dmig_conn_recv(p->server, PATIENCE, &f, &err), err);
	assert_int_equal(f.type, DMIG_MSG_GO);
	assert_int_equal(f.length, 0);
	assert_ok(dmig_conn_send(p->server, DMIG_MSG_RESUMED, 0, NULL, 0, "z", 1, &err), err);
	assert_ok(dmig_conn_recv(p->client, PATIENCE, &f, &err), err);
	assert_int_equal(f.type, DMIG_MSG_RESUMED);
}

static void over_a_socketpair(void **state)
{
	(void)state;
	struct pair p;
	struct dmig_address a;
	pair_new(&p);
	exchange(&p);
	assert_int_equal(dmig_conn_peer_address(p.client, &a), -EAFNOSUPPORT);
	assert_non_null(dmig_conn_peer(p.client));
	pair_free(&p);
}

static void over_tcp(void **state)
{
	(void)state;
	struct pair p;
	int fds[2];
	tcp_pair(fds);
	pair_over(fds, &p);
	exchange(&p);
	pair_free(&p);
}

static void bytes_are_counted(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct pair p;
	struct dmig_frame f;
	uint64_t sent, received, before, none;
	uint8_t body[10000] = {0};
	pair_new(&p);
	dmig_conn_bytes(p.client, &before, &none);
	assert_ok(dmig_conn_send(p.client, DMIG_MSG_DATA, 0, NULL, 0, body, sizeof(body), &err), err);
	assert_ok(dmig_conn_recv(p.server, PATIENCE, &f, &err), err);
	dmig_conn_bytes(p.client, &sent, &none);
	dmig_conn_bytes(p.server, &none, &received);
	assert_int_equal(sent, received);
	assert_in_range(sent - before, 10008, 10100);
	pair_free(&p);
}

static void other_secret(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_key *ours, *theirs;
	struct dmig_conn *client = NULL;
	int fds[2], r;
	char line[] = "dmigrate-key-1 same 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	assert_ok(dmig_key_parse(line, strlen(line), &ours, &err), err);
	line[strlen(line) - 1] = '0';
	assert_ok(dmig_key_parse(line, strlen(line), &theirs, &err), err);
	unix_pair(fds);
	struct server_start s = {.fd = fds[1], .key = theirs};
	handshake(fds[0], ours, &s, &client, &r, &err);
	assert_fails(s.result, s.err, EACCES);
	assert_fails(r, err, EACCES);
	assert_null(client);
	dmig_key_free(ours);
	dmig_key_free(theirs);
}

static void other_identity(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_key *ours, *theirs;
	struct dmig_conn *client = NULL;
	int fds[2], r;
	const char *a = "dmigrate-key-1 aaa 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	const char *b = "dmigrate-key-1 bbb 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	assert_ok(dmig_key_parse(a, strlen(a), &ours, &err), err);
	assert_ok(dmig_key_parse(b, strlen(b), &theirs, &err), err);
	unix_pair(fds);
	struct server_start s = {.fd = fds[1], .key = theirs};
	handshake(fds[0], ours, &s, &client, &r, &err);
	assert_fails(s.result, s.err, EACCES);
	assert_fails(r, err, EACCES);
	dmig_key_free(ours);
	dmig_key_free(theirs);
}

static void silent_peer(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_key *key;
	struct dmig_conn *conn;
	int fds[2];
	assert_ok(dmig_key_generate(&key, &err), err);
	unix_pair(fds);
	assert_fails(dmig_conn_server(fds[0], key, 30, &conn, &err), err, ETIMEDOUT);
	close(fds[1]);
	unix_pair(fds);
	assert_fails(dmig_conn_client(fds[0], key, 30, &conn, &err), err, ETIMEDOUT);
	close(fds[1]);
	unix_pair(fds);
	close(fds[1]);
	assert_fails(dmig_conn_client(fds[0], key, PATIENCE, &conn, &err), err, EPIPE);
	assert_fails(dmig_conn_client(dup(1), key, PATIENCE, &conn, &err), err, ENOTSOCK);
	dmig_key_free(key);
}

static void receive_times_out_and_goes_on(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct pair p;
	struct dmig_frame f;
	pair_new(&p);
	assert_fails(dmig_conn_recv(p.server, 0, &f, &err), err, ETIMEDOUT);
	int64_t start = dmig_now_ms();
	assert_fails(dmig_conn_recv(p.server, 50, &f, &err), err, ETIMEDOUT);
	assert_true(dmig_now_ms() - start >= 49);
	exchange(&p);
	pair_free(&p);
}

static void orderly_end(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct pair p;
	struct dmig_frame f;
	pair_new(&p);
	assert_ok(dmig_conn_send(p.client, DMIG_MSG_FINISH, 0, NULL, 0, NULL, 0, &err), err);
	dmig_conn_free(p.client);
	p.client = NULL;
	assert_ok(dmig_conn_recv(p.server, PATIENCE, &f, &err), err);
	assert_fails(dmig_conn_recv(p.server, PATIENCE, &f, &err), err, EPIPE);
	assert_fails(dmig_conn_recv(p.server, PATIENCE, &f, &err), err, EPIPE);
	assert_fails(dmig_conn_send(p.server, DMIG_MSG_FINISHED, 0, NULL, 0, NULL, 0, &err), err, EPIPE);
	assert_fails(dmig_conn_send(p.server, DMIG_MSG_FINISHED, 0, NULL, 0, NULL, 0, &err), err, EPIPE);
	pair_free(&p);
}

static void too_long_for_a_frame(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct pair p;
	uint8_t *big = calloc(1, DMIG_WIRE_MAX_PAYLOAD + 1);
	pair_new(&p);
	assert_fails(
		dmig_conn_send(p.client, DMIG_MSG_DATA, 0, NULL, 0, big, DMIG_WIRE_MAX_PAYLOAD + 1, &err),
		err, EMSGSIZE);
	assert_fails(dmig_conn_send(p.client, DMIG_MSG_DATA, 0, big, 1, big, DMIG_WIRE_MAX_PAYLOAD, &err),
		err, EMSGSIZE);
	assert_fails(dmig_conn_send(p.client, DMIG_MSG_DATA, 0, big, SIZE_MAX, big, 5, &err), err, EMSGSIZE);
	exchange(&p); /* nothing was harmed */
	free(big);
	pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_a_socketpair),
		cmocka_unit_test(over_tcp),
		cmocka_unit_test(bytes_are_counted),
		cmocka_unit_test(other_secret),
		cmocka_unit_test(other_identity),
		cmocka_unit_test(silent_peer),
		cmocka_unit_test(receive_times_out_and_goes_on),
		cmocka_unit_test(orderly_end),
		cmocka_unit_test(too_long_for_a_frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
