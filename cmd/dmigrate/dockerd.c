/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dockerd.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "util/cleanup.h"
#include "util/io.h"

#define MAX_COMMAND (128 << 10) /* one argument's limit in Linux (MAX_ARG_STRLEN) */
#define MAX_STATUS 65536
#define MAX_SOCKETS (64 << 20) /* /proc/net/unix of a host with some 100,000 sockets */
#define ACCEPTS "00010000"     /* flags column of a listening socket (__SO_ACCEPTCON) */

static int connect_stream(const char *path, struct dmig_error **err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(a.sun_path))
		return dmig_error_set(err, ENAMETOOLONG, "%s: too long for a socket", path);
	strcpy(a.sun_path, path);
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return dmig_error_set(err, errno, "cannot connect to %s: %m", path);
	return steal_fd(&fd);
}

/* The kernel shows the name that was bound, which may differ from ours by the link /var/run -> /run. */
static bool same_socket(const char *bound, const char *path)
{
	char a[PATH_MAX], b[PATH_MAX];
	return !strcmp(bound, path) || (realpath(bound, a) && realpath(path, b) && !strcmp(a, b));
}

/* Line: "ADDRESS: REFS PROTOCOL FLAGS TYPE STATE INODE PATH". Returns the inode of a listener at path, else
 * 0. */
static unsigned long listener_inode(char *line, const char *path)
{
	char *field[8] = {NULL}, *rest = NULL;
	size_t n = 0;
	for (char *f = strtok_r(line, " ", &rest); f && n < 8; f = strtok_r(NULL, " ", &rest))
		field[n++] = f;
	if (n < 8 || strcmp(field[3], ACCEPTS) || !same_socket(field[7], path))
		return 0;
	return strtoul(field[6], NULL, 10);
}

static unsigned long find_listener(const char *path)
{
	cleanup_free char *text = NULL;
	unsigned long inode = 0;
	if (dmig_read_file("/proc/net/unix", MAX_SOCKETS, &text, NULL) < 0)
		return 0;
	char *rest = text;
	for (char *line; !inode && (line = strsep(&rest, "\n"));)
		inode = listener_inode(line, path);
	return inode;
}

static bool holds(const char *pid, const char *link)
{
	char dir[300], target[64];
	snprintf(dir, sizeof(dir), "/proc/%s/fd", pid);
	cleanup_dir DIR *d = opendir(dir);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
		if (n > 0 && (size_t)n == strlen(link) && !memcmp(target, link, (size_t)n))
			return true;
	}
	return false;
}

pid_t dmig_dockerd_holder(const char *socket_path, pid_t but)
{
	char link[48];
	unsigned long inode = find_listener(socket_path);
	cleanup_dir DIR *d = inode ? opendir("/proc") : NULL;
	struct dirent *e;
	snprintf(link, sizeof(link), "socket:[%lu]", inode);
	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && atoi(e->d_name) != but && holds(e->d_name, link))
			return atoi(e->d_name);
	return 0;
}

/*
 * The peer is who called listen(). With socket activation that is pid 1, which holds the socket for dockerd;
 * then it is the other holder that serves it. (Without another one dockerd is pid 1 itself, in a container.)
 */
static int find_pid(const char *path, pid_t *ret, struct dmig_error **err)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	cleanup_fd int fd = connect_stream(path, err);
	if (fd < 0)
		return fd;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return dmig_error_set(err, errno, "%s: %m", path);
	pid_t holder = peer.pid == 1 ? dmig_dockerd_holder(path, 1) : 0;
	*ret = holder ? holder : peer.pid;
	if (*ret <= 0)
		return dmig_error_set(
			err, ESRCH, "%s is served by a process that cannot be seen from here", path);
	return 0;
}

int dmig_dockerd_find(const char *socket_path, struct dmig_dockerd *ret, struct dmig_error **err)
{
	char path[64];
	*ret = (struct dmig_dockerd){.pidfd = -1};
	int r = find_pid(socket_path, &ret->pid, err);
	if (r < 0)
		return r;
	ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)ret->pid);
	r = ret->pidfd < 0 ? -errno : dmig_read_file(path, MAX_COMMAND, &ret->command, NULL);
	return r < 0 ? dmig_error_set(err, -r, "dockerd (process %d) ended", (int)ret->pid) : 0;
}

void dmig_dockerd_clear(struct dmig_dockerd *d)
{
	dmig_closep(&d->pidfd);
	free(d->command);
	d->command = NULL;
}

const char *dmig_dockerd_option(const struct dmig_dockerd *d, const char *name)
{
	size_t n = strlen(name);
	for (const char *arg = d->command; *arg; arg += strlen(arg) + 1) {
		const char *word = arg + strspn(arg, "-");
		if (word == arg || strncmp(word, name, n))
			continue;
		if (word[n] == '=')
			return word + n + 1;
		if (word[n] == '\0')
			return word + n + 1; /* the next argument, or the empty end */
	}
	return NULL;
}

/* Go programs that handle a signal have it in the set of caught ones. */
static bool catches_hangup(pid_t pid)
{
	char path[64];
	cleanup_free char *text = NULL;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (dmig_read_file(path, MAX_STATUS, &text, NULL) < 0)
		return false;
	const char *caught = strstr(text, "\nSigCgt:");
	return caught && (strtoull(caught + strlen("\nSigCgt:"), NULL, 16) & (1ULL << (SIGHUP - 1)));
}

int dmig_dockerd_reload(const struct dmig_dockerd *d, struct dmig_error **err)
{
	if (!catches_hangup(d->pid))
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EPERM,
			"process %d serves Docker's socket but is not a dockerd that can reload",
			(int)d->pid);
	if (syscall(SYS_pidfd_send_signal, d->pidfd, SIGHUP, NULL, 0) < 0)
		return dmig_error_set(err, errno, "cannot signal dockerd (process %d): %m", (int)d->pid);
	return 0;
}
