/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dmigrate-hook [SOCKET]: action script for a CRIU without --notify-socket. CRIU starts it at every stage and
 * blocks until it ends; it passes the stage on, waits for the answer and ends with 0 (go on) or 1 (the stage
 * fails).
 *
 * CRIU gives an action script no arguments, so the socket normally comes from the environment. The program is
 * static and uses no other code of ours: it runs inside the downtime, where loading libraries is time.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "criu/notify-wire.h"

/* CRIU, and a shell between it and us. */
#define MAX_WATCHED 2

static int fail(const char *what)
{
	fprintf(stderr, "dmigrate-hook: %s: %s\n", what, strerror(errno));
	return 1;
}

static int pidfd_of(pid_t pid)
{
	return pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

/* Parent of pid if pid is a shell, else 0. The name in stat is in brackets and may hold anything but comes
 * from an exec'd file. */
static pid_t parent_of_shell(pid_t pid)
{
	char path[64], name[32];
	int parent = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	int n = fscanf(f, "%*d (%31[^)]) %*c %d", name, &parent);
	fclose(f);
	size_t len = n == 2 ? strlen(name) : 0;
	bool shell = len >= 2 && strcmp(name + len - 2, "sh") == 0;
	return shell && parent > 0 ? parent : 0;
}

/*
 * CRIU dead = nobody reads our exit code, and the other side must see it at once: an orphan that keeps the
 * connection would look like a CRIU that waits.
 */
static nfds_t watch_criu(struct pollfd *p)
{
	nfds_t n = 0;
	pid_t pid = getppid();
	for (int i = 0; i < MAX_WATCHED && pid > 0; i++) {
		int fd = pidfd_of(pid);
		if (fd >= 0)
			p[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
		pid = parent_of_shell(pid);
	}
	return n;
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(addr.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	int r;
	do
		r = connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	while (r < 0 && errno == EINTR);
	return r < 0 ? -1 : fd;
}

static int ask(int fd, const char *action)
{
	struct dmig_notify_request req = {
		.magic = htole32(DMIG_NOTIFY_MAGIC_HOOK), .version = htole32(DMIG_NOTIFY_VERSION)};
	const char *root = getenv("CRTOOLS_INIT_PID");
	size_t len = strlen(action);
	if (len >= sizeof(req.action)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(req.action, action, len);
	req.root_pid = (int32_t)htole32(root ? (uint32_t)atoi(root) : 0);
	return send(fd, &req, sizeof(req), MSG_NOSIGNAL) == (ssize_t)sizeof(req) ? 0 : -1;
}

/* The answer's ret, or -1 when CRIU or the other side is gone. p: fd, then n - 1 watched processes. */
static int wait_answer(int fd, struct pollfd *p, nfds_t n)
{
	for (;;) {
		if (poll(p, n, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		if (p[0].revents)
			break;
		errno = EPIPE;
		return -1; /* one of the watched processes has ended */
	}
	struct dmig_notify_reply reply;
	ssize_t len = recv(fd, &reply, sizeof(reply), 0);
	if (len == (ssize_t)sizeof(reply) && le32toh(reply.magic) == DMIG_NOTIFY_MAGIC)
		return le32toh((uint32_t)reply.ret) != 0;
	if (len >= 0)
		errno = len == 0 ? EPIPE : EBADMSG;
	return -1;
}

int main(int argc, char **argv)
{
	const char *action = getenv("CRTOOLS_SCRIPT_ACTION");
	const char *path = argc > 1 ? argv[1] : getenv(DMIG_NOTIFY_ENV);
	if (!action || !path) {
		fprintf(stderr, "dmigrate-hook: started by CRIU as an action script, with %s set\n",
			DMIG_NOTIFY_ENV);
		return 2;
	}
	int fd = connect_to(path);
	if (fd < 0)
		return fail(path);
	/* Before it is told that we are here: CRIU may die on that, and its number would be the reaper's
	 * then. */
	struct pollfd p[1 + MAX_WATCHED] = {{.fd = fd, .events = POLLIN}};
	nfds_t n = 1 + watch_criu(p + 1);
	if (ask(fd, action) < 0)
		return fail("send");
	int r = wait_answer(fd, p, n);
	return r < 0 ? fail(action) : r;
}
