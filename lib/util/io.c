/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/cleanup.h"

int dmig_read_full(int fd, void *buf, size_t len)
{
	char *p = buf;
	while (len) {
		ssize_t n = read(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EPIPE;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int dmig_write_full(int fd, const void *buf, size_t len)
{
	const char *p = buf;
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int dmig_pwrite_full(int fd, const void *buf, size_t len, uint64_t offset)
{
	const char *p = buf;
	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

static int read_all(int fd, size_t max, char **ret, size_t *ret_len)
{
	cleanup_free char *buf = NULL;
	size_t len = 0, cap = 0;

	for (;;) {
		if (cap - len < 2) {
			cap = cap ? cap * 2 : 4096;
			char *bigger = realloc(buf, cap);
			if (!bigger)
				return -ENOMEM;
			buf = bigger;
		}
		ssize_t n = read(fd, buf + len, cap - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}
	buf[len] = '\0';
	if (ret_len)
		*ret_len = len;
	*ret = steal_ptr(&buf);
	return 0;
}

int dmig_read_file_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len)
{
	cleanup_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return read_all(fd, max, ret, ret_len);
}

int dmig_read_file(const char *path, size_t max, char **ret, size_t *ret_len)
{
	return dmig_read_file_at(AT_FDCWD, path, max, ret, ret_len);
}

static int fsync_folder_of(const char *path)
{
	cleanup_free char *dir = strdup(path);
	if (!dir)
		return -ENOMEM;
	char *slash = strrchr(dir, '/');
	const char *name = ".";
	if (slash == dir)
		name = "/";
	else if (slash) {
		*slash = '\0';
		name = dir;
	}
	cleanup_fd int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

int dmig_write_file_atomic(const char *path, const void *data, size_t len, mode_t mode, struct dmig_error **err)
{
	cleanup_free char *tmp = dmig_asprintf("%s.XXXXXX", path);
	if (!tmp)
		return dmig_error_set(err, ENOMEM, "out of memory");
	cleanup_fd int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return dmig_error_set(err, errno, "cannot create %s: %m", tmp);
	int r = dmig_write_full(fd, data, len);
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(tmp, path) < 0))
		r = -errno;
	if (r < 0) {
		unlink(tmp);
		return dmig_error_set(err, -r, "cannot write %s: %s", path, strerror(-r));
	}
	r = fsync_folder_of(path);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot sync the folder of %s: %s", path, strerror(-r));
	return 0;
}

int dmig_write_knob(const char *path, const char *text)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, strlen(text));
	return n < 0 ? -errno : 0;
}

int dmig_mkdir_p(const char *path, mode_t mode)
{
	char buf[PATH_MAX];
	size_t len = strlen(path);
	if (len == 0 || len >= sizeof(buf))
		return -ENAMETOOLONG;
	memcpy(buf, path, len + 1);
	for (char *p = buf + 1;; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		char saved = *p;
		*p = '\0';
		if (mkdir(buf, mode) < 0 && errno != EEXIST)
			return -errno;
		*p = saved;
		if (!saved)
			return 0;
	}
}

static int remove_below(int dirfd, const char *name, dev_t dev);

static int remove_folder(int dirfd, const char *name, dev_t dev)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	cleanup_dir DIR *d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -errno;
	}
	int first = 0;
	struct dirent *e;
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		int r = remove_below(fd, e->d_name, dev);
		if (r < 0 && first == 0)
			first = r;
	}
	if (first)
		return first;
	return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int remove_below(int dirfd, const char *name, dev_t dev)
{
	struct stat st;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dirfd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	if (st.st_dev != dev)
		return -EXDEV;
	return remove_folder(dirfd, name, dev);
}

int dmig_remove_tree(const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	return remove_below(AT_FDCWD, path, st.st_dev);
}

char *dmig_asprintf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	va_start(ap, fmt);
	int r = vasprintf(&s, fmt, ap);
	va_end(ap);
	return r < 0 ? NULL : s;
}

int64_t dmig_now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t dmig_now_ms(void)
{
	return dmig_now_us() / 1000;
}

int dmig_poll_one(int fd, short events, int timeout_ms)
{
	int64_t deadline = timeout_ms < 0 ? -1 : dmig_now_ms() + timeout_ms;
	for (;;) {
		struct pollfd p = {.fd = fd, .events = events};
		int r = poll(&p, 1, timeout_ms);
		if (r >= 0)
			return r > 0;
		if (errno != EINTR)
			return -errno;
		if (deadline >= 0) {
			int64_t left = deadline - dmig_now_ms();
			timeout_ms = left > 0 ? (int)left : 0;
		}
	}
}
