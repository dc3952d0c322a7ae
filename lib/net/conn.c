/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "net/internal.h"
#include "util/cleanup.h"

/*
 * When the kernel gives up by itself, in ms. Death of a peer is found sooner, by PING on the control connection; this is
 * for connections nobody watches. Not shorter: Linux counts this time against a peer that is alive but does not read
 * (seen on 6.18), which a slow disk at the destination is allowed to cause.
 */
#define USER_TIMEOUT 120000
/* Seconds of silence before a probe, and between probes: shorter than what NAT tables usually forget. */
#define KEEPALIVE 15

static void set_tcp_options(int fd)
{
	const int on = 1, keepalive = KEEPALIVE, timeout = USER_TIMEOUT;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive, sizeof(keepalive));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &keepalive, sizeof(keepalive));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

/* Who is there, and options if it is TCP. A socketpair to a tunnel has neither. */
static int adopt_socket(struct dmig_conn *conn, struct dmig_error **err)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	if (getpeername(conn->fd, (struct sockaddr *)&ss, &len) < 0)
		return dmig_error_set(err, errno, "socket is not connected: %m");
	if (dmig_net__address_of((struct sockaddr *)&ss, len, &conn->peer_address) == 0) {
		set_tcp_options(conn->fd);
		conn->peer = dmig_net__address_text(&conn->peer_address);
	} else {
		conn->peer = strdup("the other host");
	}
	return conn->peer ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

static struct dmig_conn *conn_new(int fd)
{
	struct dmig_conn *conn = calloc(1, sizeof(*conn));
	if (!conn) {
		close(fd);
		return NULL;
	}
	conn->fd = fd;
	conn->wake_fd = -1;
	atomic_init(&conn->send_timeout_ms, -1);
	pthread_mutex_init(&conn->session_lock, NULL);
	pthread_mutex_init(&conn->turn_lock, NULL);
	pthread_cond_init(&conn->turn_moved, NULL);
	return conn;
}

static int allocate(struct dmig_conn *conn, struct dmig_error **err)
{
	conn->out = malloc(NET_OUT);
	conn->stage = malloc(NET_RECORD);
	conn->in = malloc(NET_IN);
	conn->payload = malloc(DMIG_WIRE_MAX_PAYLOAD);
	if (!conn->out || !conn->stage || !conn->in || !conn->payload)
		return dmig_error_set(err, ENOMEM, "out of memory");
	conn->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (conn->wake_fd < 0)
		return dmig_error_set(err, errno, "cannot create an eventfd: %m");
	return 0;
}

static void conn_destroy(struct dmig_conn *conn)
{
	dmig_net__tls_free(conn);
	dmig_closep(&conn->fd);
	dmig_closep(&conn->wake_fd);
	pthread_mutex_destroy(&conn->session_lock);
	pthread_mutex_destroy(&conn->turn_lock);
	pthread_cond_destroy(&conn->turn_moved);
	free(conn->out);
	free(conn->stage);
	free(conn->in);
	free(conn->payload);
	free(conn->peer);
	free(conn);
}

static int conn_start(int fd, const struct dmig_key *key, bool server, int timeout_ms, struct dmig_conn **ret,
	struct dmig_error **err)
{
	int64_t deadline = dmig_net__deadline(timeout_ms);
	struct dmig_conn *conn = conn_new(fd);
	if (!conn)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = allocate(conn, err);
	if (r == 0)
		r = adopt_socket(conn, err);
	if (r == 0)
		r = dmig_net__tls_setup(conn, key, server, err);
	if (r == 0)
		r = dmig_net__tls_handshake(conn, deadline, err);
	if (r < 0) {
		conn_destroy(conn);
		return r;
	}
	*ret = conn;
	return 0;
}

int dmig_conn_client(
	int fd, const struct dmig_key *key, int timeout_ms, struct dmig_conn **ret, struct dmig_error **err)
{
	return conn_start(fd, key, false, timeout_ms, ret, err);
}

int dmig_conn_server(
	int fd, const struct dmig_key *key, int timeout_ms, struct dmig_conn **ret, struct dmig_error **err)
{
	return conn_start(fd, key, true, timeout_ms, ret, err);
}

void dmig_conn_free(struct dmig_conn *conn)
{
	if (!conn)
		return;
	dmig_net__tls_bye(conn);
	conn_destroy(conn);
}

void dmig_conn_shutdown(struct dmig_conn *conn)
{
	const uint64_t one = 1;
	atomic_store(&conn->aborted, true);
	/* Cannot fail: the counter is far from full. */
	ssize_t n = write(conn->wake_fd, &one, sizeof(one));
	(void)n;
	/* What was handed to the kernel still arrives; then the other side sees the end at once. */
	shutdown(conn->fd, SHUT_RDWR);
}

void dmig_conn_set_send_timeout(struct dmig_conn *conn, int timeout_ms)
{
	atomic_store(&conn->send_timeout_ms, timeout_ms);
}

const char *dmig_conn_peer(const struct dmig_conn *conn)
{
	return conn->peer;
}

int dmig_conn_peer_address(const struct dmig_conn *conn, struct dmig_address *ret)
{
	if (conn->peer_address.port == 0)
		return -EAFNOSUPPORT;
	*ret = conn->peer_address;
	return 0;
}

void dmig_conn_bytes(const struct dmig_conn *conn, uint64_t *ret_sent, uint64_t *ret_received)
{
	*ret_sent = atomic_load_explicit(&conn->sent, memory_order_relaxed);
	*ret_received = atomic_load_explicit(&conn->received, memory_order_relaxed);
}
