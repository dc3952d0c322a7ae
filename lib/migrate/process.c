/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"
#include "util/paths.h"

/* The kernel needs a moment to take a killed process apart. */
#define KILL_WAIT_MS 2000
/* runc has one CRIU; more children than this is not a runc of ours. */
#define MAX_CHILDREN 64

/*
 * PF_EXITING of the kernel, in /proc/PID/stat. The init of a pid namespace shows as sleeping for as long as its threads are
 * not reaped, and those of a container that CRIU has stopped are CRIU's to reap.
 */
#define EXITING 0x4u

unsigned long long dmig_process_start_time(pid_t pid)
{
	char path[64];
	cleanup_free char *stat = NULL;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (dmig_read_file(path, 4096, &stat, NULL) < 0)
		return 0;
	char *p = strrchr(stat, ')'); /* the name may hold anything, spaces and parentheses too */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

bool dmig_process_is_dead(pid_t pid)
{
	char path[64];
	cleanup_free char *stat = NULL;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (dmig_read_file(path, 4096, &stat, NULL) < 0)
		return true;
	const char *p = strrchr(stat, ')');
	char state;
	unsigned flags;
	if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return true;
	return state == 'Z' || state == 'X' || flags & EXITING;
}

static size_t children_of(pid_t pid, pid_t *out, size_t max)
{
	char path[64];
	cleanup_free char *text = NULL;
	size_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	if (dmig_read_file(path, 4096, &text, NULL) < 0)
		return 0;
	for (char *p = text; *p && n < max;) {
		char *end;
		long child = strtol(p, &end, 10);
		if (end == p)
			break;
		out[n++] = (pid_t)child;
		p = end;
	}
	return n;
}

static int wait_gone(int pidfd, pid_t pid, int timeout_ms)
{
	int r = dmig_poll_one(pidfd, POLLIN, timeout_ms);
	waitpid(pid, NULL, WNOHANG); /* reap it if it is ours */
	return r;
}

static void kill_children(pid_t pid)
{
	pid_t kids[MAX_CHILDREN];
	size_t n = children_of(pid, kids, MAX_CHILDREN);
	for (size_t i = 0; i < n; i++)
		kill(kids[i], SIGKILL);
}

int dmig_process_end_tree(pid_t pid, unsigned long long start, int timeout_ms, struct dmig_error **err)
{
	if (pid <= 1 || start == 0)
		return 0;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0 || dmig_process_start_time(pid) != start)
		return 0;
	if (wait_gone(pidfd, pid, timeout_ms) == 1)
		return 0;
	kill_children(pid);
	syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	if (wait_gone(pidfd, pid, KILL_WAIT_MS) == 1)
		return 0;
	return dmig_error_set(err, ETIMEDOUT, "process %d does not end, not even by SIGKILL", (int)pid);
}

char *dmig_criu_dir(void)
{
	char *path = dmig_libexec_path("criu");
	if (!path || access(path, X_OK) < 0) {
		free(path);
		return NULL;
	}
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return path;
}
