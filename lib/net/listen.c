/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "net/internal.h"
#include "util/cleanup.h"
#include "util/io.h"

#define BACKLOG 64            /* connections that wait: a few per migration */
#define RESOLVE_TIMEOUT 10000 /* ms, for a host that is a name */

static void set_port(struct sockaddr *sa, uint16_t port)
{
	if (sa->sa_family == AF_INET)
		((struct sockaddr_in *)sa)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)sa)->sin6_port = htons(port);
}

static int get_port(int fd, uint16_t *ret)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return -errno;
	*ret = ntohs(ss.ss_family == AF_INET ? ((struct sockaddr_in *)&ss)->sin_port
					     : ((struct sockaddr_in6 *)&ss)->sin6_port);
	return 0;
}

static int try_port(const struct addrinfo *ai, uint16_t port, bool both_families)
{
	struct sockaddr_storage ss;
	const int on = 1, off = 0;
	cleanup_fd int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	memcpy(&ss, ai->ai_addr, ai->ai_addrlen);
	set_port((struct sockaddr *)&ss, port);
	/* Linux still refuses a port on which somebody listens; this is for connections of an earlier life.
	 */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? &off : &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&ss, ai->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return steal_fd(&fd);
}

static int try_range(const struct addrinfo *ai, uint16_t low, uint16_t high, bool both_families)
{
	int fd = -EINVAL;
	for (unsigned port = low; port <= high; port++) {
		fd = try_port(ai, (uint16_t)port, both_families);
		if (fd != -EADDRINUSE)
			break;
	}
	return fd;
}

/* All addresses: one IPv6 socket that takes IPv4 too, or IPv4 alone where there is no IPv6. */
static int listen_all(uint16_t low, uint16_t high)
{
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
	struct sockaddr_in any4 = {.sin_family = AF_INET};
	const struct addrinfo ai6 = {
		.ai_family = AF_INET6, .ai_addr = (struct sockaddr *)&any6, .ai_addrlen = sizeof(any6)};
	const struct addrinfo ai4 = {
		.ai_family = AF_INET, .ai_addr = (struct sockaddr *)&any4, .ai_addrlen = sizeof(any4)};
	int fd = try_range(&ai6, low, high, true);
	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
		fd = try_range(&ai4, low, high, false);
	return fd;
}

int dmig_listen(const char *host, uint16_t low, uint16_t high, uint16_t *ret_port, struct dmig_error **err)
{
	struct addrinfo *list = NULL;
	cleanup_fd int fd = -1;
	if (low > high || (low == 0 && high != 0))
		return dmig_error_set_class(
			err, DMIG_ERR_USAGE, EINVAL, "bad range of ports %u-%u", low, high);
	if (*host) {
		int r = dmig_net__resolve(
			host, low, AI_PASSIVE, dmig_net__deadline(RESOLVE_TIMEOUT), &list, err);
		if (r < 0)
			return r;
		fd = try_range(list, low, high, false);
		freeaddrinfo(list);
	} else {
		fd = listen_all(low, high);
	}
	int r = fd < 0 ? fd : get_port(fd, ret_port);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot listen on %s port %u%s: %s",
			*host ? host : "any address", low, high > low ? " and those behind it" : "",
			strerror(-r));
	return steal_fd(&fd);
}

/* accept(2) reports what happened to a connection that is gone already; the next one may be fine. */
static bool is_passing(int e)
{
	switch (e) {
	case EINTR:
	case EAGAIN:
	case ECONNABORTED:
	case EPROTO:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
		return true;
	default:
		return false;
	}
}

int dmig_accept(int listen_fd, int timeout_ms, struct dmig_error **err)
{
	int64_t deadline = dmig_net__deadline(timeout_ms);
	for (;;) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (!is_passing(errno))
			return dmig_error_set(err, errno, "cannot accept a connection: %m");
		int r = dmig_poll_one(listen_fd, POLLIN, dmig_net__left(deadline));
		if (r == 0)
			return dmig_error_set(err, ETIMEDOUT, "nobody connected");
		if (r < 0)
			return dmig_error_set(err, -r, "cannot wait for a connection: %s", strerror(-r));
	}
}
