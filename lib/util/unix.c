/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"

/* How many connections may wait: a handful of wrappers per container. */
#define BACKLOG 16

ssize_t dmig_send_fds(int sock, const void *buf, size_t len, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * DMIG_MAX_FDS)];
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds > DMIG_MAX_FDS)
		return -E2BIG;
	if (n_fds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	ssize_t n;
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static size_t take_fds(struct msghdr *msg, int *fds, size_t max, int *too_many)
{
	size_t n = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < max)
				fds[n++] = fd;
			else {
				close(fd);
				*too_many = 1;
			}
		}
	}
	return n;
}

ssize_t dmig_recv_fds(int sock, void *buf, size_t len, int *ret_fds, size_t max_fds, size_t *ret_n_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * DMIG_MAX_FDS)];
	} control;
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space)};
	int too_many = 0;
	ssize_t n;

	*ret_n_fds = 0;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_n_fds = take_fds(&msg, ret_fds, max_fds, &too_many);
	if (too_many || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		while (*ret_n_fds)
			close(ret_fds[--*ret_n_fds]);
		return -EMSGSIZE;
	}
	return n;
}

static int unix_address(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	memcpy(ret->sun_path, path, strlen(path) + 1);
	return 0;
}

int dmig_unix_listen(const char *path)
{
	struct sockaddr_un addr;
	int r = unix_address(path, &addr);
	if (r < 0)
		return r;
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	mode_t old = umask(0177);
	r = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	umask(old);
	if (r < 0)
		return r;
	if (listen(fd, BACKLOG) < 0)
		return -errno;
	return steal_fd(&fd);
}

int dmig_unix_connect(const char *path)
{
	struct sockaddr_un addr;
	int r = unix_address(path, &addr);
	if (r < 0)
		return r;
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	do
		r = connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : steal_fd(&fd);
}

int dmig_unix_peer_uid(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	return (int)cred.uid;
}
