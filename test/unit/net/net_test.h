/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_NET_TEST_H
#define DMIG_TEST_NET_TEST_H

#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#include "net/net.h"
#include "util/cleanup.h"

#define PATIENCE 20000 /* ms: for what must work, also on a busy machine under a sanitizer */

/* Two ends, one key. The server's handshake runs in a thread of its own. */
struct pair {
	struct dmig_key *key;
	struct dmig_conn *client, *server;
};

struct server_start {
	int fd;
	const struct dmig_key *key;
	struct dmig_conn *conn;
	struct dmig_error *err;
	int result;
};

static inline void *server_main(void *opaque)
{
	struct server_start *s = opaque;
	s->result = dmig_conn_server(s->fd, s->key, PATIENCE, &s->conn, &s->err);
	return NULL;
}

/* Both handshakes over connected sockets; results of both sides are returned as they are. */
static inline void handshake(int client_fd, const struct dmig_key *client_key, struct server_start *server,
	struct dmig_conn **client, int *client_result, struct dmig_error **client_err)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, server_main, server), 0);
	*client_result = dmig_conn_client(client_fd, client_key, PATIENCE, client, client_err);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A connected TCP pair over loopback. */
static inline void tcp_pair(int fds[2])
{
	struct dmig_error *err = NULL;
	uint16_t port;
	int listen_fd = dmig_listen("127.0.0.1", 0, 0, &port, &err);
	assert_ok(listen_fd, err);
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	assert_int_equal(getsockname(listen_fd, (struct sockaddr *)&ss, &len), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&ss, len), 0);
	fds[1] = dmig_accept(listen_fd, PATIENCE, &err);
	assert_ok(fds[1], err);
	close(listen_fd);
}

static inline void unix_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

static inline void pair_over(const int fds[2], struct pair *p)
{
	struct dmig_error *err = NULL;
	int r;
	*p = (struct pair){0};
	assert_ok(dmig_key_generate(&p->key, &err), err);
	struct server_start s = {.fd = fds[1], .key = p->key};
	handshake(fds[0], p->key, &s, &p->client, &r, &err);
	assert_ok(r, err);
	assert_ok(s.result, s.err);
	p->server = s.conn;
}

static inline void pair_new(struct pair *p)
{
	int fds[2];
	unix_pair(fds);
	pair_over(fds, p);
}

static inline void pair_free(struct pair *p)
{
	dmig_conn_free(p->client);
	dmig_conn_free(p->server);
	dmig_key_free(p->key);
}

/* Bytes that differ at every place and tell who made them. */
static inline void fill_pattern(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)((i + seed) * 2654435761u >> 24);
}

#endif
