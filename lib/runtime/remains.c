/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/remains.h"

#include <ctype.h>
#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "criu/freezer.h"
#include "util/cleanup.h"
#include "util/io.h"

#define MAX_STAT 4096             /* bytes of /proc/PID/stat */
#define MAX_MOUNTINFO (16u << 20) /* bytes; hosts with thousands of containers exist */
/* No event says that a process was reaped or a cgroup ran empty on v1: first and longest pause in
 * microseconds. */
#define FIRST_PAUSE_US 200
#define MAX_PAUSE_US 10000
/* What a process that was killed shows as exit code: 128 + SIGKILL. */
#define EXIT_KILLED 137

/* Pauses that double; false once the deadline is over. */
static bool pause_until(int64_t deadline_ms, long *pause_us)
{
	if (dmig_now_ms() >= deadline_ms)
		return false;
	nanosleep(&(struct timespec){.tv_nsec = *pause_us * 1000}, NULL);
	*pause_us = *pause_us * 2 < MAX_PAUSE_US ? *pause_us * 2 : MAX_PAUSE_US;
	return true;
}

struct stat_fields {
	char state;
	pid_t parent;
	unsigned long long start;
};

static int read_stat(pid_t pid, struct stat_fields *ret)
{
	char path[64];
	cleanup_free char *text = NULL;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int r = dmig_read_file(path, MAX_STAT, &text, NULL);
	if (r < 0)
		return r;
	/* The name in parentheses may hold anything: count from the last one. */
	char *p = strrchr(text, ')');
	int parent;
	if (!p || sscanf(p + 1,
			  " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			  &ret->state, &parent, &ret->start) != 3)
		return -EPROTO;
	ret->parent = parent;
	return 0;
}

unsigned long long dmig_process_start(pid_t pid)
{
	struct stat_fields f;
	return read_stat(pid, &f) < 0 ? 0 : f.start;
}

bool dmig_process_runs(pid_t pid, unsigned long long start)
{
	struct stat_fields f;
	return read_stat(pid, &f) == 0 && f.start == start && f.state != 'Z' && f.state != 'X';
}

static char *state_dir(const struct dmig_target_info *info, const char *id)
{
	return dmig_asprintf("%s/%s", info->root, id);
}

static char *aside_dir(const struct dmig_target_info *info, const char *id)
{
	size_t len = strlen(info->root);
	while (len > 1 && info->root[len - 1] == '/')
		len--;
	while (len > 0 && info->root[len - 1] != '/')
		len--;
	return dmig_asprintf("%.*s.dmigrate-%s", (int)len, info->root, id);
}

int dmig_state_aside(const struct dmig_target_info *info, const char *id, struct dmig_error **err)
{
	cleanup_free char *from = state_dir(info, id);
	cleanup_free char *to = aside_dir(info, id);
	if (!from || !to)
		return dmig_error_set(err, ENOMEM, "out of memory");
	if (rename(from, to) < 0)
		return dmig_error_set(err, errno, "cannot move %s to %s: %m", from, to);
	return 0;
}

/* runc restore mounts the root filesystem inside its state folder and dies without unmounting when it is
 * killed. */
static int remove_state(const char *dir)
{
	cleanup_free char *mount = dmig_asprintf("%s/criu-root", dir);
	if (!mount)
		return -ENOMEM;
	while (umount2(mount, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		;
	return dmig_remove_tree(dir);
}

int dmig_state_put_back(const struct dmig_target_info *info, const char *id, struct dmig_error **err)
{
	cleanup_free char *from = aside_dir(info, id);
	cleanup_free char *to = state_dir(info, id);
	if (!from || !to)
		return dmig_error_set(err, ENOMEM, "out of memory");
	if (access(from, F_OK) < 0)
		return errno == ENOENT ? 0 : dmig_error_set(err, errno, "cannot see %s: %m", from);
	int r = remove_state(to);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot remove %s: %s", to, strerror(-r));
	if (rename(from, to) < 0 && errno != ENOENT)
		return dmig_error_set(err, errno, "cannot move %s back to %s: %m", from, to);
	return 0;
}

int dmig_state_drop(const struct dmig_target_info *info, const char *id)
{
	cleanup_free char *dir = aside_dir(info, id);
	return dir ? dmig_remove_tree(dir) : -ENOMEM;
}

/* Also true when the cgroup is gone: then ret stays NULL. */
static int open_cgroup(const struct dmig_target_info *info, struct dmig_freezer **ret)
{
	*ret = NULL;
	if (!info->cgroup || access(info->cgroup, F_OK) < 0)
		return 0;
	return dmig_freezer_open_path(info->cgroup, ret, NULL);
}

/* How many are in the cgroup; is P one of them? */
static size_t count_members(struct dmig_freezer *cgroup, pid_t pid, bool *ret_has)
{
	cleanup_free pid_t *pids = NULL;
	size_t n = 0;
	*ret_has = false;
	if (!cgroup || dmig_freezer_pids(cgroup, &pids, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		*ret_has |= pids[i] == pid;
	return n;
}

bool dmig_remains_alive(const struct dmig_target_info *info)
{
	struct dmig_freezer *cgroup;
	bool has;
	if (open_cgroup(info, &cgroup) < 0)
		return false;
	size_t n = count_members(cgroup, info->pid, &has);
	dmig_freezer_free(cgroup);
	return n > 0;
}

static void kill_children(pid_t parent)
{
	cleanup_dir DIR *proc = opendir("/proc");
	struct dirent *e;
	while (proc && (e = readdir(proc))) {
		struct stat_fields f;
		pid_t pid = atoi(e->d_name);
		if (isdigit((unsigned char)e->d_name[0]) && read_stat(pid, &f) == 0 && f.parent == parent)
			kill(pid, SIGKILL);
	}
}

static bool runc_runs(const struct dmig_helper_note *runc)
{
	return runc && runc->runc && dmig_process_runs(runc->runc, runc->start);
}

static void kill_runc(const struct dmig_helper_note *runc)
{
	if (!runc_runs(runc))
		return;
	kill_children(runc->runc);
	kill(runc->runc, SIGKILL);
}

/* One round of signals. Returns whether anything was still there. */
static bool kill_round(
	const struct dmig_target_info *info, struct dmig_freezer *cgroup, const struct dmig_helper_note *runc)
{
	bool has;
	size_t n = count_members(cgroup, info->pid, &has);
	bool placeholder = dmig_process_runs(info->pid, info->start);
	if (has || placeholder)
		kill(info->pid, SIGKILL);
	if (n)
		dmig_freezer_kill(cgroup, NULL);
	kill_runc(runc);
	return n || placeholder || runc_runs(runc);
}

static void wait_for_runc(const struct dmig_helper_note *runc, int grace_ms)
{
	if (!runc_runs(runc))
		return;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, runc->runc, 0);
	if (pidfd >= 0)
		dmig_poll_one(pidfd, POLLIN, grace_ms);
}

/* mountinfo writes blanks in paths as \040; our folders have none. Mount points of the line, or NULL. */
static const char *mount_point_below(char *line, const char *folder, size_t len)
{
	char *save = NULL, *word = strtok_r(line, " ", &save);
	for (int i = 0; word && i < 4; i++)
		word = strtok_r(NULL, " ", &save);
	return word && !strncmp(word, folder, len) && word[len] == '/' ? word : NULL;
}

/* CRIU mounts the v1 cgroup hierarchies in its work folder: a rm -r of it must not find them. */
static void unmount_leftovers(const struct dmig_target_info *info)
{
	cleanup_free char *work = dmig_asprintf("%s/restore", info->run_dir);
	cleanup_free char *text = NULL;
	char *save = NULL;
	if (!work || dmig_read_file("/proc/self/mountinfo", MAX_MOUNTINFO, &text, NULL) < 0)
		return;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *point = mount_point_below(line, work, strlen(work));
		/* Detaching a mount takes those on it along; they are listed behind it and fail. */
		if (point)
			umount2(point, MNT_DETACH | UMOUNT_NOFOLLOW);
	}
}

int dmig_remains_kill(const struct dmig_target_info *info, const struct dmig_helper_note *runc, int grace_ms,
	int timeout_ms, struct dmig_error **err)
{
	long pause_us = FIRST_PAUSE_US;
	struct dmig_freezer *cgroup;
	int r = open_cgroup(info, &cgroup);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot open the cgroup %s: %s", info->cgroup, strerror(-r));
	wait_for_runc(runc, grace_ms);
	int64_t deadline = dmig_now_ms() + timeout_ms;
	while (kill_round(info, cgroup, runc)) {
		if (!pause_until(deadline, &pause_us)) {
			r = dmig_error_set(err, ETIMEDOUT, "what runs in %s does not end", info->cgroup);
			break;
		}
	}
	dmig_freezer_free(cgroup);
	if (info->run_dir)
		unmount_leftovers(info);
	return r;
}

static int make_tombstone(pid_t pid)
{
	/* CLONE_PARENT: a child of the shim from the start; the signal of its end is then that of the caller,
	 * SIGCHLD. */
	struct clone_args args = {.flags = CLONE_PARENT, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
	long r = syscall(SYS_clone3, &args, sizeof(args));
	if (r == 0)
		_exit(EXIT_KILLED);
	return r < 0 ? -errno : 0;
}

int dmig_tombstone(pid_t pid, int timeout_ms)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	long pause_us = FIRST_PAUSE_US;
	int r;
	while ((r = make_tombstone(pid)) == -EEXIST)
		if (!pause_until(deadline, &pause_us))
			break;
	return r;
}
