/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "fs/internal.h"
#include "util/cleanup.h"

#define DEFAULT_ACL "system.posix_acl_default"

/* Longest "/proc/self/fd/N/NAME". */
#define PROC_PATH (NAME_MAX + 32)

/* l*xattr calls take no folder: this names an object of it without following a link. */
static const char *proc_path(const struct dmig_fs__object *o, char buf[PROC_PATH])
{
	snprintf(buf, PROC_PATH, "/proc/self/fd/%d/%s", o->dir_fd, o->name);
	return buf;
}

static ssize_t list(const struct dmig_fs__object *o, char *buf, size_t size)
{
	char path[PROC_PATH];
	ssize_t n = o->fd >= 0 ? flistxattr(o->fd, buf, size) : llistxattr(proc_path(o, path), buf, size);
	return n >= 0 ? n : errno == ENOTSUP ? 0 : -errno;
}

static ssize_t get(const struct dmig_fs__object *o, const char *name, void *buf, size_t size)
{
	char path[PROC_PATH];
	ssize_t n = o->fd >= 0 ? fgetxattr(o->fd, name, buf, size)
			       : lgetxattr(proc_path(o, path), name, buf, size);
	return n >= 0 ? n : -errno;
}

static int set(const struct dmig_fs__object *o, const struct dmig_wire_xattr *x)
{
	char path[PROC_PATH];
	int r = o->fd >= 0 ? fsetxattr(o->fd, x->name, x->value, x->len, 0)
			   : lsetxattr(proc_path(o, path), x->name, x->value, x->len, 0);
	return r < 0 ? -errno : 0;
}

static int drop(const struct dmig_fs__object *o, const char *name)
{
	char path[PROC_PATH];
	int r = o->fd >= 0 ? fremovexattr(o->fd, name) : lremovexattr(proc_path(o, path), name);
	return r < 0 && errno != ENODATA ? -errno : 0;
}

bool dmig_fs__has_default_acl(int dir_fd)
{
	return fgetxattr(dir_fd, DEFAULT_ACL, NULL, 0) > 0;
}

int dmig_fs__xattrs_init(struct dmig_fs__xattrs *x, struct dmig_error **err)
{
	x->names = malloc(XATTR_LIST_MAX);
	x->values = malloc(DMIG_WIRE_MAX_PAYLOAD);
	return x->names && x->values ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

void dmig_fs__xattrs_free(struct dmig_fs__xattrs *x)
{
	free(x->names);
	free(x->values);
}

/* Labels and signatures that are the policy and the key of one host; each host makes its own. */
static bool host_bound(const char *name)
{
	return !strcmp(name, "security.selinux") || !strcmp(name, "security.evm");
}

static const char *mark_prefix(enum dmig_fs__marks marks)
{
	return marks == DMIG_FS_MARKS_TRUSTED ? "trusted.overlay." : "user.overlay.";
}

/*
 * A mark of the overlay itself. Some are only hints for its inode numbers; with others the upper directory
 * alone does not say what the merged tree looks like.
 */
static int read_mark(struct dmig_fs__xattrs *x, const struct dmig_fs__object *o, const char *name,
	const char *mark, const char *path, struct dmig_error **err)
{
	char value[2];
	if (!strcmp(mark, "redirect"))
		return dmig_fs__refuse(err, EOPNOTSUPP, path,
			"renamed by overlay feature redirect_dir, which cannot be moved");
	if (!strcmp(mark, "metacopy"))
		return dmig_fs__refuse(err, EOPNOTSUPP, path,
			"only attributes copied up (overlay feature metacopy), which cannot be moved");
	if (!strcmp(mark, "nlink"))
		return dmig_fs__refuse(err, EOPNOTSUPP, path,
			"hard link kept by overlay feature index, which cannot be moved");
	if (!strcmp(mark, "protattr"))
		dmig_fs__warn(path, "immutable or append-only, which the copy will not be");
	if (!strcmp(mark, "opaque")) {
		if (get(o, name, value, sizeof(value)) != 1 || *value != 'y')
			return dmig_fs__refuse(
				err, EOPNOTSUPP, path, "carries an overlay mark of an unknown kind");
		x->opaque = true;
	}
	return 0;
}

/*
 * An overlay in the container, on top of ours: the kernel puts "overlay." once more into the name of its
 * marks. Takes it out again (in place), which is the name that the merged tree shows.
 */
static const char escape[] = "overlay.";

static const char *unescape(char *name, size_t prefix_len)
{
	memmove(name + sizeof(escape) - 1, name, prefix_len);
	return name + sizeof(escape) - 1;
}

static int add(struct dmig_fs__xattrs *x, const struct dmig_fs__object *o, const char *name, size_t *used,
	const char *path, struct dmig_error **err)
{
	if (x->n == DMIG_WIRE_MAX_XATTRS)
		return dmig_fs__refuse(err, E2BIG, path, "has more than 64 extended attributes");
	size_t room = DMIG_WIRE_MAX_PAYLOAD - *used;
	ssize_t n = get(o, name, x->values + *used,
		room < DMIG_WIRE_MAX_XATTR_VALUE ? room : DMIG_WIRE_MAX_XATTR_VALUE);
	if (n == -ENODATA)
		return 0;
	if (n < 0)
		return dmig_fs__fail(err, (int)-n, "read an extended attribute of", path);
	x->list[x->n++] =
		(struct dmig_wire_xattr){.name = name, .value = x->values + *used, .len = (uint32_t)n};
	*used += (size_t)n;
	return 0;
}

static int read_one(struct dmig_fs__xattrs *x, const struct dmig_fs__object *o, enum dmig_fs__marks marks,
	char *name, size_t *used, const char *path, struct dmig_error **err)
{
	const char *prefix = mark_prefix(marks);
	size_t prefix_len = strlen(prefix);
	if (host_bound(name))
		return 0;
	if (marks == DMIG_FS_MARKS_NONE || strncmp(name, prefix, prefix_len) != 0)
		return add(x, o, name, used, path, err);
	if (strncmp(name + prefix_len, escape, sizeof(escape) - 1) != 0)
		return read_mark(x, o, name, name + prefix_len, path, err);
	uint16_t before = x->n;
	int r = add(x, o, name, used, path, err);
	if (r == 0 && x->n > before)
		x->list[before].name = unescape(name, prefix_len);
	return r;
}

int dmig_fs__xattrs_read(struct dmig_fs__xattrs *x, const struct dmig_fs__object *o,
	enum dmig_fs__marks marks, const char *path, struct dmig_error **err)
{
	size_t used = 0;
	x->n = 0;
	x->opaque = false;
	ssize_t len = list(o, x->names, XATTR_LIST_MAX);
	if (len == -ENOENT)
		return 0; /* gone since it was listed */
	if (len < 0)
		return dmig_fs__fail(err, (int)-len, "list the extended attributes of", path);
	for (char *name = x->names, *next; name < x->names + len; name = next) {
		next = name + strlen(name) + 1;
		int r = read_one(x, o, marks, name, &used, path, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool in_entry(const struct dmig_wire_entry *entry, const char *name)
{
	for (size_t i = 0; i < entry->n_xattrs; i++)
		if (!strcmp(entry->xattrs[i].name, name))
			return true;
	return false;
}

int dmig_fs__xattrs_drop_others(
	const struct dmig_fs__object *o, const struct dmig_wire_entry *entry, struct dmig_error **err)
{
	cleanup_free char *names = malloc(XATTR_LIST_MAX);
	if (!names)
		return dmig_error_set(err, ENOMEM, "out of memory");
	ssize_t len = list(o, names, XATTR_LIST_MAX);
	if (len < 0)
		return dmig_fs__fail(err, (int)-len, "list the extended attributes of", entry->path);
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		if (host_bound(name) || in_entry(entry, name))
			continue;
		int r = drop(o, name);
		if (r < 0)
			return dmig_fs__fail(err, -r, "remove an extended attribute of", entry->path);
	}
	return 0;
}

int dmig_fs__xattrs_set(
	const struct dmig_fs__object *o, const struct dmig_wire_entry *entry, struct dmig_error **err)
{
	for (size_t i = 0; i < entry->n_xattrs; i++) {
		int r = host_bound(entry->xattrs[i].name) ? 0 : set(o, &entry->xattrs[i]);
		if (r == -EOPNOTSUPP)
			return dmig_fs__refuse(err, EOPNOTSUPP, entry->path,
				"the filesystem there takes no such extended attribute");
		if (r == -ENOSPC)
			return dmig_fs__refuse(err, ENOSPC, entry->path,
				"no room for its extended attributes (ext4 holds 4 KiB of them without "
				"ea_inode)");
		if (r < 0)
			return dmig_fs__fail(err, -r, "set an extended attribute of", entry->path);
	}
	return 0;
}
