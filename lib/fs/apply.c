/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/internal.h"
#include "util/cleanup.h"

/* What a name has until its own attributes are applied: nobody else gets at it. */
#define PRIVATE_FILE 0600
#define PRIVATE_FOLDER 0700

static int make_node(int dir_fd, const char *name, const struct dmig_wire_entry *e)
{
	mode_t type = S_IFSOCK;
	if (e->type == DMIG_ENTRY_CHAR)
		type = S_IFCHR;
	else if (e->type == DMIG_ENTRY_BLOCK)
		type = S_IFBLK;
	else if (e->type == DMIG_ENTRY_FIFO)
		type = S_IFIFO;
	dev_t device = makedev((unsigned)(e->rdev >> 32), (unsigned)e->rdev);
	return mknodat(dir_fd, name, type | PRIVATE_FILE, device) < 0 ? -errno : 0;
}

static int make_hardlink(struct dmig_fs__receiver *r, const char *name)
{
	const char *first;
	int k = dmig_fs__parent_of(&r->linked, r->entry.hardlink, &first);
	if (k < 0)
		return k;
	return linkat(r->linked.fd, first, r->parent.fd, name, 0) < 0 ? -errno : 0;
}

/* A new name of any type. For a file the result is its fd, else 0. */
static int make(struct dmig_fs__receiver *r, const char *name)
{
	int dir_fd = r->parent.fd, k;
	switch (r->entry.type) {
	case DMIG_ENTRY_FILE:
		k = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PRIVATE_FILE);
		break;
	case DMIG_ENTRY_FOLDER:
		k = mkdirat(dir_fd, name, PRIVATE_FOLDER);
		break;
	case DMIG_ENTRY_SYMLINK:
		k = symlinkat(r->entry.target, dir_fd, name);
		break;
	case DMIG_ENTRY_HARDLINK:
		return make_hardlink(r, name);
	default:
		return make_node(dir_fd, name, &r->entry);
	}
	return k < 0 ? -errno : k;
}

/* The same where something may be in the way. */
static int make_anew(struct dmig_fs__receiver *r, const char *name, struct dmig_error **err)
{
	int k = make(r, name);
	if (k == -EEXIST) {
		k = dmig_fs__remove(r->parent.fd, name, r->entry.path, err);
		if (k < 0)
			return k;
		k = make(r, name);
	}
	return k < 0 ? dmig_fs__fail(err, -k, "create", r->entry.path) : k;
}

static int apply_file(struct dmig_fs__receiver *r, const char *name, struct dmig_error **err)
{
	int fd = r->opts->overlay && r->entry.size == 0 ? dmig_fs__reuse_empty(r->parent.fd, name) : -ENOENT;
	r->existed = fd >= 0;
	if (fd < 0)
		fd = make_anew(r, name, err);
	if (fd < 0)
		return fd;
	r->fd = fd;
	return 0;
}

static int finish_folder(struct dmig_fs__receiver *r, int fd, bool exact, struct dmig_error **err)
{
	struct dmig_fs__object o = {.fd = fd};
	int k = dmig_fs__attrs_apply(&o, &r->entry, exact, err);
	if (k == 0 && dmig_fs__times_add(r->times, &r->entry) < 0)
		k = dmig_error_set(err, ENOMEM, "out of memory");
	return k;
}

static int make_folder(struct dmig_fs__receiver *r, const char *name, struct dmig_error **err)
{
	int k = make_anew(r, name, err);
	if (k < 0)
		return k;
	int fd = dmig_fs__open_folder(r->parent.fd, name, DMIG_FS_STAY);
	return fd < 0 ? dmig_fs__fail(err, -fd, "open", r->entry.path) : fd;
}

/* A folder that is there already keeps what it holds, unless that is to be hidden. */
static int apply_folder(struct dmig_fs__receiver *r, const char *name, struct dmig_error **err)
{
	bool opaque = r->entry.flags & DMIG_ENTRY_OPAQUE, exact = r->parent.default_acl;
	if (opaque && !r->opts->overlay)
		return dmig_error_set(err, EPROTO, "opaque folder in a stream that is no overlay");
	cleanup_fd int fd = -ENOENT;
	if (!opaque && (r->opts->overlay || r->opts->keep_extra)) {
		fd = dmig_fs__open_folder(r->parent.fd, name, DMIG_FS_STAY);
		exact |= fd >= 0;
	}
	if (fd == -ENOENT || fd == -ENOTDIR)
		fd = make_folder(r, name, err);
	else if (fd < 0)
		dmig_fs__fail(err, -fd, "open", r->entry.path);
	return fd < 0 ? fd : finish_folder(r, fd, exact, err);
}

static int apply_root(struct dmig_fs__receiver *r, struct dmig_error **err)
{
	bool opaque = r->entry.flags & DMIG_ENTRY_OPAQUE;
	if (r->rooted || r->entry.type != DMIG_ENTRY_FOLDER || (opaque && !r->opts->overlay))
		return dmig_error_set(err, EPROTO, "ENTRY: not a root of this tree");
	r->rooted = true;
	if (opaque || (!r->opts->overlay && !r->opts->keep_extra)) {
		int k = dmig_fs__empty(r->root_fd, err);
		if (k < 0)
			return k;
	}
	cleanup_fd int fd = dmig_fs__open_folder(r->root_fd, "", 0);
	if (fd < 0)
		return dmig_fs__fail(err, -fd, "open", "");
	return finish_folder(r, fd, true, err);
}

static int apply_special(struct dmig_fs__receiver *r, const char *name, struct dmig_error **err)
{
	int k = make_anew(r, name, err);
	if (k < 0 || r->entry.type == DMIG_ENTRY_HARDLINK)
		return k;
	struct dmig_fs__object o = {.fd = -1, .dir_fd = r->parent.fd, .name = name};
	return dmig_fs__attrs_apply(&o, &r->entry, r->parent.default_acl, err);
}

int dmig_fs__apply(struct dmig_fs__receiver *r, struct dmig_error **err)
{
	const char *name;
	if (*r->entry.path == '\0')
		return apply_root(r, err);
	if (!r->rooted)
		return dmig_error_set(err, EPROTO, "ENTRY: the root of the tree did not come first");
	int k = dmig_fs__parent_of(&r->parent, r->entry.path, &name);
	if (k < 0)
		return dmig_fs__fail(err, -k, "reach the folder of", r->entry.path);
	switch (r->entry.type) {
	case DMIG_ENTRY_FILE:
		return apply_file(r, name, err);
	case DMIG_ENTRY_FOLDER:
		return apply_folder(r, name, err);
	case DMIG_ENTRY_WHITEOUT:
		return dmig_fs__apply_whiteout(r, name, err);
	default:
		return apply_special(r, name, err);
	}
}
