/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "fs/internal.h"
#include "util/cleanup.h"

static int change_owner(const struct dmig_fs__object *o, const struct dmig_wire_entry *e)
{
	int r = o->fd >= 0 ? fchown(o->fd, e->uid, e->gid)
			   : fchownat(o->dir_fd, o->name, e->uid, e->gid, AT_SYMLINK_NOFOLLOW);
	return r < 0 ? -errno : 0;
}

/* chmod(2) follows links and devices are not to be opened: hold the inode itself by an O_PATH descriptor. */
static int change_mode_of_name(const struct dmig_fs__object *o, mode_t mode)
{
	char path[64];
	cleanup_fd int fd = openat(o->dir_fd, o->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode) < 0 ? -errno : 0;
}

static int change_mode(const struct dmig_fs__object *o, const struct dmig_wire_entry *e)
{
	if (e->type == DMIG_ENTRY_SYMLINK)
		return 0; /* a link has none */
	if (o->fd < 0)
		return change_mode_of_name(o, e->mode);
	return fchmod(o->fd, e->mode) < 0 ? -errno : 0;
}

static int change_times(const struct dmig_fs__object *o, const struct dmig_wire_entry *e)
{
	struct timespec times[2];
	if (e->type == DMIG_ENTRY_FOLDER)
		return 0; /* times.c, after all that it holds */
	dmig_fs__timespecs(e, times);
	int r = o->fd >= 0 ? futimens(o->fd, times)
			   : utimensat(o->dir_fd, o->name, times, AT_SYMLINK_NOFOLLOW);
	return r < 0 ? -errno : 0;
}

/*
 * chown clears setuid bits and file capabilities, so it comes first; setting an ACL changes the mode's group
 * bits to what the source has anyway, so the mode comes before the xattrs; all of them change ctime alone, so
 * times come last.
 */
int dmig_fs__attrs_apply(const struct dmig_fs__object *o, const struct dmig_wire_entry *entry, bool exact,
	struct dmig_error **err)
{
	if (entry->uid == (uid_t)-1 || entry->gid == (gid_t)-1)
		return dmig_error_set(err, EPROTO, "ENTRY: owner that cannot be");
	int r = change_owner(o, entry);
	if (r < 0)
		return dmig_fs__fail(err, -r, "set the owner of", entry->path);
	if (exact && (r = dmig_fs__xattrs_drop_others(o, entry, err)) < 0)
		return r;
	r = change_mode(o, entry);
	if (r < 0)
		return dmig_fs__fail(err, -r, "set the mode of", entry->path);
	r = dmig_fs__xattrs_set(o, entry, err);
	if (r < 0)
		return r;
	r = change_times(o, entry);
	return r < 0 ? dmig_fs__fail(err, -r, "set the times of", entry->path) : 0;
}
