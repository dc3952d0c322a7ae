/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net_test.h"

#include <fcntl.h>

static void range_takes_the_first_free(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	uint16_t first, second;
	cleanup_fd int a = dmig_listen("127.0.0.1", 0, 0, &first, &err);
	assert_ok(a, err);
	assert_true(first > 0);
	assert_true(fcntl(a, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(a, F_GETFL) & O_NONBLOCK);
	if (first > 65000)
		return;
	cleanup_fd int b = dmig_listen("127.0.0.1", first, (uint16_t)(first + 500), &second, &err);
	assert_ok(b, err);
	assert_true(second > first && second <= first + 500);
	assert_fails(dmig_listen("127.0.0.1", first, first, &second, &err), err, EADDRINUSE);
	assert_fails(dmig_listen("127.0.0.1", 9, 8, &second, &err), err, EINVAL);
	assert_fails(dmig_listen("127.0.0.1", 0, 8, &second, &err), err, EINVAL);
	assert_fails(dmig_listen("203.0.113.7", 0, 0, &second, &err), err, EADDRNOTAVAIL);
}

static void accept_gives_up(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	uint16_t port;
	cleanup_fd int fd = dmig_listen("", 0, 0, &port, &err);
	assert_ok(fd, err);
	assert_fails(dmig_accept(fd, 0, &err), err, ETIMEDOUT);
	assert_fails(dmig_accept(fd, 30, &err), err, ETIMEDOUT);
}

struct acceptor {
	int listen_fd;
	struct dmig_key *key;
	struct dmig_conn *conn;
	int result;
};

static void *acceptor_main(void *opaque)
{
	struct acceptor *a = opaque;
	int fd = dmig_accept(a->listen_fd, PATIENCE, NULL);
	a->result = fd < 0 ? fd : dmig_conn_server(fd, a->key, PATIENCE, &a->conn, NULL);
	return NULL;
}

static void dial_by(const char *host, const char *peer)
{
	cleanup_error struct dmig_error *err = NULL;
	struct acceptor a = {.result = -1};
	struct dmig_address to = {0}, back;
	pthread_t thread;
	struct dmig_conn *conn;
	snprintf(to.host, sizeof(to.host), "%s", host);
	a.listen_fd = dmig_listen("", 0, 0, &to.port, &err);
	assert_ok(a.listen_fd, err);
	assert_ok(dmig_key_generate(&a.key, &err), err);
	assert_int_equal(pthread_create(&thread, NULL, acceptor_main, &a), 0);
	assert_ok(dmig_conn_dial(&to, a.key, PATIENCE, &conn, &err), err);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(a.result, 0);
	assert_int_equal(dmig_conn_peer_address(conn, &back), 0);
	assert_int_equal(back.port, to.port);
	assert_int_equal(dmig_conn_peer_address(a.conn, &back), 0);
	if (peer) { /* IPv4 through a socket for both must look like IPv4 */
		assert_string_equal(back.host, peer);
		cleanup_free char *text = dmig_asprintf("%s:%u", peer, back.port);
		assert_string_equal(dmig_conn_peer(a.conn), text);
	}
	dmig_conn_free(conn);
	dmig_conn_free(a.conn);
	dmig_key_free(a.key);
	close(a.listen_fd);
}

static void dial_number_and_name(void **state)
{
	(void)state;
	dial_by("127.0.0.1", "127.0.0.1");
	dial_by("localhost", NULL);
}

static void dial_fails(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_address to = {.host = "127.0.0.1"};
	struct dmig_conn *conn;
	struct dmig_key *key;
	assert_ok(dmig_key_generate(&key, &err), err);
	int fd = dmig_listen("127.0.0.1", 0, 0, &to.port, &err);
	assert_ok(fd, err);
	/* It takes the connection (the kernel does) but never speaks. */
	assert_fails(dmig_conn_dial(&to, key, 50, &conn, &err), err, ETIMEDOUT);
	close(fd);
	assert_fails(dmig_conn_dial(&to, key, PATIENCE, &conn, &err), err, ECONNREFUSED);
	dmig_key_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(range_takes_the_first_free),
		cmocka_unit_test(accept_gives_up),
		cmocka_unit_test(dial_number_and_name),
		cmocka_unit_test(dial_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
