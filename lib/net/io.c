/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "net/internal.h"
#include "util/cleanup.h"
#include "util/io.h"

/* GnuTLS gives us what is encrypted. Called with the session lock held. */
ssize_t dmig_net__push(gnutls_transport_ptr_t ptr, const giovec_t *iov, int n)
{
	struct dmig_conn *conn = ptr;
	size_t len = 0;
	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	/* Not the sender (an answer made while receiving), or no room: GnuTLS keeps it for the next send. */
	if (!conn->in_send || len > NET_OUT - conn->out_len) {
		errno = EAGAIN;
		return -1;
	}
	for (int i = 0; i < n; i++) {
		memcpy(conn->out + conn->out_len, iov[i].iov_base, iov[i].iov_len);
		conn->out_len += iov[i].iov_len;
	}
	return (ssize_t)len;
}

ssize_t dmig_net__pull(gnutls_transport_ptr_t ptr, void *buf, size_t len)
{
	struct dmig_conn *conn = ptr;
	size_t there = conn->in_len - conn->in_pos;
	if (there == 0) {
		errno = EAGAIN;
		return -1;
	}
	if (len > there)
		len = there;
	memcpy(buf, conn->in + conn->in_pos, len);
	conn->in_pos += len;
	return (ssize_t)len;
}

int dmig_net__pull_timeout(gnutls_transport_ptr_t ptr, unsigned ms)
{
	const struct dmig_conn *conn = ptr;
	(void)ms;
	return conn->in_len > conn->in_pos;
}

int dmig_net__aborted(struct dmig_error **err)
{
	return dmig_error_set(err, ECONNABORTED, "connection was shut down");
}

/* Every way in which the other end can be gone is -EPIPE; -ETIMEDOUT is ours alone and must not come from
 * TCP. */
static int peer_gone(const struct dmig_conn *conn, int e, struct dmig_error **err)
{
	if (atomic_load(&conn->aborted))
		return dmig_net__aborted(err);
	return dmig_error_set(err, EPIPE, "lost the connection to %s: %s", conn->peer, strerror(e));
}

/* Wait until the socket is ready: 0, -ETIMEDOUT or -ECONNABORTED. */
static int wait_for(struct dmig_conn *conn, short events, int64_t deadline, struct dmig_error **err)
{
	for (;;) {
		struct pollfd p[2] = {
			{.fd = conn->fd, .events = events}, {.fd = conn->wake_fd, .events = POLLIN}};
		int r = poll(p, 2, dmig_net__left(deadline));
		if (r < 0 && errno != EINTR)
			return dmig_error_set(err, errno, "cannot wait for %s: %m", conn->peer);
		if (atomic_load(&conn->aborted))
			return dmig_net__aborted(err);
		if (r > 0)
			return 0;
		if (r == 0)
			return dmig_error_set(err, ETIMEDOUT, "no answer from %s in time", conn->peer);
	}
}

int dmig_net__flush(struct dmig_conn *conn, int64_t deadline, int renew_ms, struct dmig_error **err)
{
	size_t done = 0;
	while (done < conn->out_len) {
		if (atomic_load(&conn->aborted))
			return dmig_net__aborted(err);
		ssize_t n =
			send(conn->fd, conn->out + done, conn->out_len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			done += (size_t)n;
			atomic_fetch_add_explicit(&conn->sent, (uint64_t)n, memory_order_relaxed);
			if (renew_ms >= 0)
				deadline = dmig_net__deadline(renew_ms);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return peer_gone(conn, errno, err);
		int r = wait_for(conn, POLLOUT, deadline, err);
		if (r < 0)
			return r;
	}
	conn->out_len = 0;
	return 0;
}

int dmig_net__fill(struct dmig_conn *conn, int64_t deadline, struct dmig_error **err)
{
	for (;;) {
		if (atomic_load(&conn->aborted))
			return dmig_net__aborted(err);
		ssize_t n = recv(conn->fd, conn->in, NET_IN, MSG_DONTWAIT);
		if (n > 0) {
			conn->in_pos = 0;
			conn->in_len = (size_t)n;
			atomic_fetch_add_explicit(&conn->received, (uint64_t)n, memory_order_relaxed);
			return 0;
		}
		if (n == 0)
			return atomic_load(&conn->aborted)
				       ? dmig_net__aborted(err)
				       : dmig_error_set(err, EPIPE, "%s closed the connection", conn->peer);
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return peer_gone(conn, errno, err);
		int r = wait_for(conn, POLLIN, deadline, err);
		if (r < 0)
			return r;
	}
}
