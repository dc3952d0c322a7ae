/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "net/internal.h"
#include "util/cleanup.h"
#include "util/io.h"

int64_t dmig_net__deadline(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : dmig_now_ms() + timeout_ms;
}

int dmig_net__left(int64_t deadline)
{
	if (deadline < 0)
		return -1;
	int64_t left = deadline - dmig_now_ms();
	return left > 0 ? (int)left : 0;
}

/* A connected socket or -errno. */
static int connect_one(const struct addrinfo *ai, int timeout_ms)
{
	int error = 0;
	socklen_t len = sizeof(error);
	cleanup_fd int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		int r = dmig_poll_one(fd, POLLOUT, timeout_ms);
		if (r <= 0)
			return r < 0 ? r : -ETIMEDOUT;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
			return -errno;
		if (error)
			return -error;
	}
	return steal_fd(&fd);
}

/* One address after the other; each gets its share of the time that is left, so that a dead first one hides
 * no second. */
static int connect_any(const struct addrinfo *list, int64_t deadline)
{
	int n = 0, r = -EHOSTUNREACH;
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next)
		n++;
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next, n--) {
		int left = dmig_net__left(deadline);
		r = connect_one(ai, left < 0 ? -1 : left / n);
		if (r >= 0)
			return r;
	}
	return r;
}

int dmig_conn_dial(const struct dmig_address *to, const struct dmig_key *key, int timeout_ms,
	struct dmig_conn **ret, struct dmig_error **err)
{
	int64_t deadline = dmig_net__deadline(timeout_ms);
	struct addrinfo *list = NULL;
	int r = dmig_net__resolve(to->host, to->port, 0, deadline, &list, err);
	if (r < 0)
		return r;
	int fd = connect_any(list, deadline);
	freeaddrinfo(list);
	if (fd < 0) {
		cleanup_free char *text = dmig_net__address_text(to);
		return dmig_error_set(
			err, -fd, "cannot connect to %s: %s", text ? text : to->host, strerror(-fd));
	}
	return dmig_conn_client(fd, key, dmig_net__left(deadline), ret, err);
}
