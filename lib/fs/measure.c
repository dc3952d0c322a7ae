/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs/internal.h"

struct measure {
	struct dmig_tree_stats *stats;
	struct dmig_fs__links *links;
};

static int count_folder(
	void *opaque, int fd, const char *path, const struct statx *stx, struct dmig_error **err)
{
	(void)fd, (void)path, (void)stx, (void)err;
	((struct measure *)opaque)->stats->entries++;
	return 0;
}

static int count_name(void *opaque, int dir_fd, const char *name, const char *path, unsigned char d_type,
	struct dmig_error **err)
{
	(void)d_type;
	struct measure *m = opaque;
	struct statx stx;
	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, DMIG_FS_STATX, &stx) < 0)
		return errno == ENOENT ? 0 : dmig_fs__fail(err, errno, "read the attributes of", path);
	m->stats->entries++;
	if (!S_ISREG(stx.stx_mode))
		return 0;
	uint64_t dev = (uint64_t)stx.stx_dev_major << 32 | stx.stx_dev_minor;
	int r = stx.stx_nlink > 1 ? dmig_fs__links_add(m->links, dev, stx.stx_ino, "") : 0;
	if (r == -EEXIST)
		return 0;
	if (r < 0)
		return dmig_error_set(err, ENOMEM, "out of memory");
	uint64_t allocated = stx.stx_blocks * 512;
	m->stats->files++;
	m->stats->bytes += allocated < stx.stx_size ? allocated : stx.stx_size; /* holes are not sent */
	return 0;
}

int dmig_tree_measure(int root_fd, bool one_filesystem, struct dmig_tree_stats *ret, struct dmig_error **err)
{
	struct measure m = {.stats = ret, .links = dmig_fs__links_new()};
	struct dmig_fs__walk walk = {
		.root_fd = root_fd,
		.one_filesystem = one_filesystem,
		.folder = count_folder,
		.name = count_name,
		.opaque = &m,
	};
	*ret = (struct dmig_tree_stats){0};
	int r = m.links ? dmig_fs__walk(&walk, err) : dmig_error_set(err, ENOMEM, "out of memory");
	dmig_fs__links_free(m.links);
	return r;
}

struct check {
	struct dmig_fs__xattrs xattrs;
	enum dmig_fs__marks marks;
};

static int check_folder(
	void *opaque, int fd, const char *path, const struct statx *stx, struct dmig_error **err)
{
	(void)stx;
	struct check *c = opaque;
	return dmig_fs__xattrs_read(&c->xattrs, &(struct dmig_fs__object){.fd = fd}, c->marks, path, err);
}

static int check_name(void *opaque, int dir_fd, const char *name, const char *path, unsigned char d_type,
	struct dmig_error **err)
{
	(void)d_type;
	struct check *c = opaque;
	struct dmig_fs__object o = {.fd = -1, .dir_fd = dir_fd, .name = name};
	return dmig_fs__xattrs_read(&c->xattrs, &o, c->marks, path, err);
}

int dmig_tree_check_upper(int root_fd, bool userxattr, struct dmig_error **err)
{
	struct check c = {.marks = userxattr ? DMIG_FS_MARKS_USER : DMIG_FS_MARKS_TRUSTED};
	struct dmig_fs__walk walk = {
		.root_fd = root_fd,
		.one_filesystem = true,
		.folder = check_folder,
		.name = check_name,
		.opaque = &c,
	};
	int r = dmig_fs__xattrs_init(&c.xattrs, err);
	if (r == 0)
		r = dmig_fs__walk(&walk, err);
	dmig_fs__xattrs_free(&c.xattrs);
	return r;
}
