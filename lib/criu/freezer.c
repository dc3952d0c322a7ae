/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "criu/freezer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "criu/cgroup-path.h"
#include "criu/freezer-internal.h"
#include "util/cleanup.h"
#include "util/io.h"

/* Bytes. One line per mount; hosts with thousands of containers exist. */
#define MAX_MOUNTINFO (16u << 20)
#define MAX_PROC_FILE (64u << 10)
/* v1 has no event: polls start at 50 us (a few tasks freeze in less) and double up to 5 ms. */
#define FIRST_POLL_US 50
#define MAX_POLL_US 5000
/* v1: a task that was born or attached while freezing can keep the group at FREEZING until it is written
 * again. */
#define REWRITE_AFTER_MS 20

/* Where pid lives in that hierarchy, or NULL. */
static char *path_of(pid_t pid, bool v2)
{
	char name[64];
	cleanup_free char *text = NULL;
	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	if (dmig_read_file(name, MAX_PROC_FILE, &text, NULL) < 0)
		return NULL;
	return dmig_cgroup_path_in(text, v2);
}

static bool contains(const char *cgroup, const char *other)
{
	size_t n = strlen(cgroup);
	return other && strncmp(cgroup, other, n) == 0 && (other[n] == '/' || other[n] == '\0');
}

/*
 * Is the cgroup the container's own? The root is not; nor is one that we or the parent of init live in: that
 * happens where the runtime does not use this hierarchy and the container just inherited a place, and
 * freezing it would stop the host.
 */
static bool is_own_cgroup(const char *path, pid_t init_pid, bool v2)
{
	if (strcmp(path, "/") == 0)
		return false;
	cleanup_free char *ours = path_of(getpid(), v2);
	pid_t parent = dmig_freezer__parent(init_pid);
	cleanup_free char *parents = parent > 0 ? path_of(parent, v2) : NULL;
	return !contains(path, ours) && !contains(path, parents);
}

/* The folder must be visible and have the knob: a v1 hierarchy may stand in mountinfo and be mounted over. */
static int open_folder(const char *path, struct dmig_freezer **ret)
{
	cleanup_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	bool v1 = faccessat(dir, "freezer.state", F_OK, 0) == 0;
	if (!v1 && faccessat(dir, "cgroup.freeze", F_OK, 0) < 0)
		return -errno;
	struct dmig_freezer *f = calloc(1, sizeof(*f));
	if (f)
		f->path = strdup(path);
	if (!f || !f->path) {
		free(f);
		return -ENOMEM;
	}
	f->v2 = !v1;
	f->dir = steal_fd(&dir);
	*ret = f;
	return 0;
}

static int open_in(pid_t init_pid, const char *mountinfo, bool v2, struct dmig_freezer **ret)
{
	cleanup_free char *path = path_of(init_pid, v2);
	if (!path || !is_own_cgroup(path, init_pid, v2))
		return -ENOENT;
	cleanup_free char *folder = dmig_cgroup_folder(mountinfo, v2, path);
	return folder ? open_folder(folder, ret) : -ENOENT;
}

int dmig_freezer_open(pid_t init_pid, struct dmig_freezer **ret, struct dmig_error **err)
{
	cleanup_free char *mountinfo = NULL;
	int r = dmig_read_file("/proc/self/mountinfo", MAX_MOUNTINFO, &mountinfo, NULL);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read /proc/self/mountinfo: %s", strerror(-r));
	/* v1 first: where its freezer is in use, v2 has no controllers of the container, and CRIU uses v1 as
	 * well. */
	r = open_in(init_pid, mountinfo, false, ret);
	if (r < 0)
		r = open_in(init_pid, mountinfo, true, ret);
	if (r < 0)
		return dmig_error_set(err, -r, "process %d has no cgroup of its own with a freezer: %s",
			(int)init_pid, strerror(-r));
	return 0;
}

int dmig_freezer_open_path(const char *path, struct dmig_freezer **ret, struct dmig_error **err)
{
	int r = open_folder(path, ret);
	return r < 0 ? dmig_error_set(err, -r, "%s is no cgroup with a freezer: %s", path, strerror(-r)) : 0;
}

const char *dmig_freezer_path(const struct dmig_freezer *f)
{
	return f->path;
}

bool dmig_freezer_is_v2(const struct dmig_freezer *f)
{
	return f->v2;
}

void dmig_freezer_free(struct dmig_freezer *f)
{
	if (!f)
		return;
	dmig_closep(&f->dir);
	free(f->path);
	free(f);
}

int dmig_freezer__write(struct dmig_freezer *f, const char *knob, const char *text)
{
	cleanup_fd int fd = openat(f->dir, knob, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int knob_says(int fd, const char *word)
{
	char buf[256];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return strstr(buf, word) != NULL;
}

/* v2: cgroup.events is pollable and changes when the last task has stopped, ptrace-stopped ones included. */
static int wait_frozen_v2(struct dmig_freezer *f, int64_t deadline)
{
	cleanup_fd int fd = openat(f->dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		int r = knob_says(fd, "frozen 1");
		if (r != 0)
			return r < 0 ? r : 0;
		int64_t left = deadline - dmig_now_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		r = dmig_poll_one(fd, POLLPRI, (int)left);
		if (r < 0)
			return r;
	}
}

static int wait_frozen_v1(struct dmig_freezer *f, int64_t deadline)
{
	cleanup_fd int fd = openat(f->dir, "freezer.state", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int64_t rewrite = dmig_now_ms() + REWRITE_AFTER_MS;
	for (long us = FIRST_POLL_US;; us = us * 2 < MAX_POLL_US ? us * 2 : MAX_POLL_US) {
		int r = knob_says(fd, "FROZEN");
		if (r != 0)
			return r < 0 ? r : 0;
		int64_t now = dmig_now_ms();
		if (now >= deadline)
			return -ETIMEDOUT;
		if (now >= rewrite) {
			if (pwrite(fd, "FROZEN", 6, 0) < 0)
				return -errno;
			rewrite = now + REWRITE_AFTER_MS;
		}
		struct timespec pause = {.tv_nsec = us * 1000};
		nanosleep(&pause, NULL);
	}
}

int dmig_freezer_freeze(struct dmig_freezer *f, int timeout_ms, struct dmig_error **err)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	int r = f->v2 ? dmig_freezer__write(f, "cgroup.freeze", "1")
		      : dmig_freezer__write(f, "freezer.state", "FROZEN");
	if (r == 0)
		r = f->v2 ? wait_frozen_v2(f, deadline) : wait_frozen_v1(f, deadline);
	if (r == 0)
		return 0;
	dmig_freezer_thaw(f, NULL); /* half frozen helps nobody */
	if (r == -ETIMEDOUT)
		return dmig_error_set(err, ETIMEDOUT, "%s did not freeze within %d ms", f->path, timeout_ms);
	return dmig_error_set(err, -r, "cannot freeze %s: %s", f->path, strerror(-r));
}

int dmig_freezer_thaw(struct dmig_freezer *f, struct dmig_error **err)
{
	int r = f->v2 ? dmig_freezer__write(f, "cgroup.freeze", "0")
		      : dmig_freezer__write(f, "freezer.state", "THAWED");
	return r < 0 ? dmig_error_set(err, -r, "cannot thaw %s: %s", f->path, strerror(-r)) : 0;
}
