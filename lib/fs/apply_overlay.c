/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>

#include "fs/internal.h"
#include "util/cleanup.h"

int dmig_fs__apply_whiteout(struct dmig_fs__receiver *r, const char *name, struct dmig_error **err)
{
	if (!r->opts->overlay)
		return dmig_error_set(err, EPROTO, "whiteout in a stream that is no overlay");
	return dmig_fs__remove(r->parent.fd, name, r->entry.path, err);
}

/*
 * Docker binds files over empty ones that the runtime made (/etc/hosts, ...). Removing such a name would
 * silently take away what other mount namespaces have mounted on it.
 */
static bool is_empty_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size == 0 && st->st_nlink == 1;
}

int dmig_fs__reuse_empty(int dir_fd, const char *name)
{
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!is_empty_file(&st)) /* before it is opened: that alone makes some devices act */
		return -EEXIST;
	cleanup_fd int fd = openat(dir_fd, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return is_empty_file(&st) ? steal_fd(&fd) : -EEXIST;
}
