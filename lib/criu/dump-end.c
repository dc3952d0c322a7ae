/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "criu/dump-internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

#define MAX_SMALL_FILE 4096
/* ms after SIGKILL: the kernel tears down CRIU's memory and lets its tracees go. */
#define KILL_TIMEOUT_MS 2000

static bool is_criu(pid_t pid)
{
	char path[64];
	cleanup_free char *name = NULL;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	return dmig_read_file(path, MAX_SMALL_FILE, &name, NULL) == 0 && strcmp(name, "criu\n") == 0;
}

/* runc's children stand under the thread that started them. */
static pid_t criu_below(pid_t runc)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)runc);
	cleanup_dir DIR *d = opendir(path);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		char name[PATH_MAX];
		cleanup_free char *text = NULL;
		snprintf(name, sizeof(name), "%s/children", e->d_name);
		if (e->d_name[0] == '.' || dmig_read_file_at(dirfd(d), name, MAX_SMALL_FILE, &text, NULL) < 0)
			continue;
		char *save = NULL;
		for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
			if (is_criu((pid_t)strtol(w, NULL, 10)))
				return (pid_t)strtol(w, NULL, 10);
	}
	return 0;
}

/*
 * A pidfd of the CRIU that serves this dump, or -1. Below runc while that lives; later our CRIU is known as
 * the process that made the connection. The name is checked after the pidfd was taken, so a reused number is
 * not hit.
 */
static int find_criu(struct dmig_dump *d)
{
	pid_t pid = d->ended ? 0 : criu_below(d->runc);
	if (pid <= 0)
		pid = dmig_notify_peer(d->notify);
	if (pid <= 0)
		return -1;
	cleanup_fd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd >= 0 && is_criu(pid) ? steal_fd(&fd) : -1;
}

static int wait_criu(struct dmig_dump *d, int timeout_ms, struct dmig_error **err)
{
	cleanup_fd int criu = find_criu(d);
	dmig_notify_shut(d->notify);
	if (criu < 0 || dmig_poll_one(criu, POLLIN, timeout_ms) == 1)
		return 0;
	log_warn("dump: CRIU did not end within %d ms and is killed", timeout_ms);
	syscall(SYS_pidfd_send_signal, criu, SIGKILL, NULL, 0);
	dmig_poll_one(criu, POLLIN, KILL_TIMEOUT_MS);
	return dmig_error_set(err, ETIMEDOUT, "CRIU did not end within %d ms and was killed", timeout_ms);
}

int dmig_dump__end_criu(struct dmig_dump *d, int timeout_ms, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL;
	int r = wait_criu(d, timeout_ms, err);
	int n = dmig_freezer_release_tcp(d->freezer, &e);
	if (n < 0)
		log_warn("dump: %s", e ? e->message : "sockets may be left in repair mode");
	else if (n > 0)
		log_info("dump: CRIU left %d sockets in repair mode, ended", n);
	return r;
}
