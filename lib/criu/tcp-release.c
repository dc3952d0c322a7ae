/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "criu/freezer.h"
#include "util/cleanup.h"

/* 1 if it was in repair mode and is not any more. */
static int release(int fd)
{
	int protocol = 0, repair = 0, off = 0;
	socklen_t len = sizeof(protocol);
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) < 0 || protocol != IPPROTO_TCP)
		return 0;
	len = sizeof(repair);
	if (getsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &repair, &len) < 0 || !repair)
		return 0;
	return setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)) < 0 ? -errno : 1;
}

/*
 * Leaving repair mode makes the kernel send a window probe: the peer's answer tells what arrived there and
 * how much it takes now. 1 if sent. The mode drops SO_REUSEADDR, which a server needs to listen again beside
 * old connections.
 */
static int probe(int fd)
{
	struct tcp_info info = {0};
	int protocol = 0, reuse = 0, on = 1, off = 0;
	socklen_t len = sizeof(protocol);
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) < 0 || protocol != IPPROTO_TCP)
		return 0;
	len = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 || info.tcpi_state != TCP_ESTABLISHED)
		return 0;
	len = sizeof(reuse);
	if (getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, &len) < 0 ||
		setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) < 0)
		return -errno;
	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)) < 0)
		return -errno;
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)) < 0 ? -errno : 1;
}

static bool is_socket(int dir, const char *name)
{
	char target[16];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));
	return n >= 8 && memcmp(target, "socket:[", 8) == 0;
}

typedef int treat_fn(int fd);

static int treat_sockets_of(pid_t pid, treat_fn *treat)
{
	char path[64];
	int count = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	cleanup_dir DIR *d = opendir(path);
	if (pidfd < 0 || !d)
		return 0; /* gone, and its sockets with it */
	struct dirent *e;
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.' || !is_socket(dirfd(d), e->d_name))
			continue;
		cleanup_fd int fd = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(e->d_name), 0);
		int r = fd < 0 ? 0 : treat(fd);
		if (r < 0)
			return r;
		count += r;
	}
	return count;
}

static int treat_sockets(struct dmig_freezer *f, treat_fn *treat, const char *what, struct dmig_error **err)
{
	cleanup_free pid_t *pids = NULL;
	size_t n;
	int count = 0, r = dmig_freezer_pids(f, &pids, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = pids[i] > 0 ? treat_sockets_of(pids[i], treat) : 0;
		if (r < 0)
			return dmig_error_set(
				err, -r, "cannot %s of process %d: %s", what, (int)pids[i], strerror(-r));
		count += r;
	}
	return count;
}

int dmig_freezer_release_tcp(struct dmig_freezer *f, struct dmig_error **err)
{
	return treat_sockets(f, release, "end the repair mode of a socket", err);
}

int dmig_freezer_probe_tcp(struct dmig_freezer *f, struct dmig_error **err)
{
	return treat_sockets(f, probe, "probe a connection", err);
}
