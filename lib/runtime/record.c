/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/record.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/placeholder.h"
#include "runtime/target.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/paths.h"

#define MAX_INFO 16384 /* bytes: three paths and two numbers */
/* Milliseconds between looks at a lock: nothing tells when a lock goes, and a helper ends in tens of them. */
#define LOCK_POLL_MS 5

bool dmig_target_id_valid(const char *id)
{
	size_t len = strlen(id);
	if (len == 0 || len > DMIG_TARGET_MAX_ID || !strcmp(id, ".") || !strcmp(id, ".."))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)id[i]) && !strchr("_.-+", id[i]))
			return false;
	return true;
}

static char *path_in(const char *dir, const char *below, const char *id, const char *suffix)
{
	if (dmig_target_id_valid(id))
		return dmig_asprintf("%s/%s/%s%s", dir, below, id, suffix);
	errno = EINVAL;
	return NULL;
}

char *dmig_target_record_path(const char *id)
{
	return path_in(dmig_state_dir(), "targets", id, "");
}

char *dmig_target_run_path(const char *id, const char *suffix)
{
	return path_in(dmig_run_dir(), "target", id, suffix);
}

bool dmig_target_is_recorded(const char *id)
{
	cleanup_free char *path = dmig_target_record_path(id);
	return path && access(path, F_OK) == 0;
}

static int make_parent(const char *path)
{
	cleanup_free char *dir = strdup(path);
	if (!dir)
		return -ENOMEM;
	*strrchr(dir, '/') = '\0';
	return dmig_mkdir_p(dir, 0700);
}

int dmig_target_record_write(const char *id, const char *migration_id, struct dmig_error **err)
{
	cleanup_free char *path = dmig_target_record_path(id);
	cleanup_free char *socket = dmig_target_run_path(id, ".sock");
	if (!path || !socket)
		return dmig_error_set(err, errno, "\"%s\" cannot be the id of a container", id);
	int r = make_parent(path);
	if (r == 0)
		r = make_parent(socket);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot make the folders of %s: %s", path, strerror(-r));
	cleanup_free char *line = dmig_asprintf("uncommitted %s\n", migration_id);
	if (!line)
		return dmig_error_set(err, ENOMEM, "out of memory");
	return dmig_write_file_atomic(path, line, strlen(line), 0600, err);
}

int dmig_target_record_remove(const char *id)
{
	static const char *const suffixes[] = {".info", ".helper", ".sock"};
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		cleanup_free char *path = dmig_target_run_path(id, suffixes[i]);
		if (!path || (unlink(path) < 0 && errno != ENOENT))
			return -errno;
	}
	cleanup_free char *record = dmig_target_record_path(id);
	if (!record || (unlink(record) < 0 && errno != ENOENT))
		return -errno;
	return 0;
}

/* Paths come from containerd; a newline would make two lines of one. */
static bool one_line(const char *s)
{
	return !s || !strchr(s, '\n');
}

int dmig_target_info_write(const char *id, const struct dmig_target_info *info, struct dmig_error **err)
{
	cleanup_free char *path = dmig_target_run_path(id, ".info");
	cleanup_free char *text = dmig_asprintf(
		"root %s\nbundle %s\nrun_dir %s\ncgroup %s\npid %d\nstart %llu\n", info->root, info->bundle,
		info->run_dir, info->cgroup ? info->cgroup : "", (int)info->pid, info->start);
	if (!path || !text)
		return dmig_error_set(err, ENOMEM, "out of memory");
	if (!one_line(info->root) || !one_line(info->bundle) || !one_line(info->run_dir) ||
		!one_line(info->cgroup))
		return dmig_error_set(err, EINVAL, "a path of container %s has a line break in it", id);
	return dmig_write_file_atomic(path, text, strlen(text), 0600, err);
}

static int copy_path(char **field, const char *value)
{
	if (*field || (*value && *value != '/'))
		return -EINVAL;
	if (!*value)
		return 0;
	*field = strdup(value);
	return *field ? 0 : -ENOMEM;
}

static int parse_number(const char *text, unsigned long long max, unsigned long long *ret)
{
	char *end;
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno || *end || *ret > max ? -EINVAL : 0;
}

static int parse_line(char *line, struct dmig_target_info *info)
{
	char *value = strchr(line, ' ');
	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(line, "root"))
		return copy_path(&info->root, value);
	if (!strcmp(line, "bundle"))
		return copy_path(&info->bundle, value);
	if (!strcmp(line, "run_dir"))
		return copy_path(&info->run_dir, value);
	if (!strcmp(line, "cgroup"))
		return copy_path(&info->cgroup, value);
	unsigned long long n;
	if (!strcmp(line, "pid")) {
		int r = parse_number(value, INT32_MAX, &n);
		info->pid = r < 0 ? 0 : (pid_t)n;
		return r;
	}
	if (!strcmp(line, "start"))
		return parse_number(value, UINT64_MAX, &info->start);
	return 0; /* a newer version's */
}

int dmig_target_info_parse(char *text, struct dmig_target_info *ret)
{
	cleanup_target_info struct dmig_target_info info = {0};
	char *save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		int r = parse_line(line, &info);
		if (r < 0)
			return r;
	}
	if (!info.root || !info.bundle || !info.run_dir || info.pid <= 1 || !info.start)
		return -EINVAL;
	*ret = info;
	info = (struct dmig_target_info){0};
	return 0;
}

int dmig_target_info_read(const char *id, struct dmig_target_info *ret, struct dmig_error **err)
{
	cleanup_free char *path = dmig_target_run_path(id, ".info");
	cleanup_free char *text = NULL;
	if (!path)
		return dmig_error_set(err, errno, "\"%s\" cannot be the id of a container", id);
	int r = dmig_read_file(path, MAX_INFO, &text, NULL);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read %s: %s", path, strerror(-r));
	r = dmig_target_info_parse(text, ret);
	return r < 0 ? dmig_error_set(err, -r, "%s is damaged", path) : 0;
}

void dmig_target_info_clear(struct dmig_target_info *info)
{
	free(info->root);
	free(info->bundle);
	free(info->run_dir);
	free(info->cgroup);
	*info = (struct dmig_target_info){0};
}

int dmig_helper_open(const char *id)
{
	cleanup_free char *path = dmig_target_run_path(id, ".helper");
	if (!path)
		return -errno;
	cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return steal_fd(&fd);
}

/* One short pwrite replaces what is there: all numbers have a fixed width, so that a reader never sees half
 * of two. */
int dmig_helper_write(int fd, const struct dmig_helper_note *note)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%10d %20llu %1d %3d %1d\n", (int)note->runc, note->start,
		note->ended, note->status & 0xff, note->buried);
	return dmig_pwrite_full(fd, line, (size_t)len, 0);
}

int dmig_helper_read(const char *id, struct dmig_helper_note *ret)
{
	cleanup_free char *path = dmig_target_run_path(id, ".helper");
	cleanup_free char *text = NULL;
	*ret = (struct dmig_helper_note){0};
	int r = path ? dmig_read_file(path, 256, &text, NULL) : -errno;
	if (r < 0 || !*text)
		return r;
	int runc, ended, status, buried;
	unsigned long long start;
	if (sscanf(text, "%d %llu %d %d %d", &runc, &start, &ended, &status, &buried) != 5 || runc < 0)
		return -EINVAL;
	*ret = (struct dmig_helper_note){
		.runc = runc, .start = start, .ended = ended, .status = status, .buried = buried};
	return 0;
}

int dmig_helper_wait_gone(const char *id, int timeout_ms)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	for (;;) {
		cleanup_free char *path = dmig_target_run_path(id, ".helper");
		cleanup_fd int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (fd < 0)
			return errno == ENOENT ? 0 : -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (dmig_now_ms() >= deadline)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){.tv_nsec = LOCK_POLL_MS * 1000000}, NULL);
	}
}
