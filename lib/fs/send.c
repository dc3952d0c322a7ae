/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/internal.h"
#include "util/cleanup.h"

/* Looks at a name that keeps changing its type under us, in a tree that others write to, before it counts as
 * gone. */
#define MAX_LOOKS 3
/* What a look says when the name is no longer of the type that was expected. */
#define LOOK_AGAIN 1

int dmig_fs__sender_init(struct dmig_fs__sender *s, struct dmig_error **err)
{
	s->plain = malloc(DMIG_FS_CHUNK);
	s->packed = malloc(DMIG_FS_CHUNK);
	s->entry = malloc(DMIG_WIRE_MAX_PAYLOAD);
	s->sum = dmig_sum_new();
	s->links = dmig_fs__links_new();
	s->next_report = DMIG_FS_PROGRESS_STEP;
	*s->stats = (struct dmig_tree_stats){0};
	if (!s->plain || !s->packed || !s->entry || !s->sum || !s->links)
		return dmig_error_set(err, ENOMEM, "out of memory");
	return dmig_fs__xattrs_init(&s->xattrs, err);
}

void dmig_fs__sender_free(struct dmig_fs__sender *s)
{
	free(s->plain);
	free(s->packed);
	free(s->entry);
	dmig_sum_free(s->sum);
	dmig_fs__links_free(s->links);
	dmig_fs__xattrs_free(&s->xattrs);
}

int dmig_fs__send_frame(
	struct dmig_fs__sender *s, enum dmig_msg type, const void *head, ssize_t len, struct dmig_error **err)
{
	if (len < 0)
		return dmig_error_set(err, (int)-len, "cannot encode %s: %s", dmig_wire_name((uint16_t)type),
			strerror((int)-len));
	s->stats->wire_bytes += sizeof(struct dmig_frame_header) + (size_t)len;
	return s->out.send(s->out.opaque, type, 0, head, (size_t)len, NULL, 0, err);
}

int dmig_fs__send_begin(struct dmig_fs__sender *s, struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_stream_begin begin = {.kind = s->opts->kind, .name = s->opts->name};
	ssize_t n = dmig_wire_encode_stream_begin(&begin, buf, sizeof(buf));
	return dmig_fs__send_frame(s, DMIG_MSG_STREAM_BEGIN, buf, n, err);
}

int dmig_fs__send_end(struct dmig_fs__sender *s, struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_stream_end end = {
		.entries = s->stats->entries, .files = s->stats->files, .bytes = s->stats->bytes};
	ssize_t n = dmig_wire_encode_stream_end(&end, buf, sizeof(buf));
	return dmig_fs__send_frame(s, DMIG_MSG_STREAM_END, buf, n, err);
}

int dmig_fs__send_entry(
	struct dmig_fs__sender *s, const struct dmig_wire_entry *entry, struct dmig_error **err)
{
	ssize_t n = dmig_wire_encode_entry(entry, s->entry, DMIG_WIRE_MAX_PAYLOAD);
	if (n < 0)
		return dmig_fs__fail(
			err, (int)-n, "describe (name and attributes have to fit into 1 MiB)", entry->path);
	s->stats->entries++;
	return dmig_fs__send_frame(s, DMIG_MSG_ENTRY, s->entry, n, err);
}

static struct dmig_wire_time wire_time(const struct statx_timestamp *t)
{
	return (struct dmig_wire_time){.sec = t->tv_sec, .nsec = t->tv_nsec};
}

static void describe(
	struct dmig_wire_entry *e, enum dmig_entry_type type, const char *path, const struct statx *stx)
{
	memset(e, 0, sizeof(*e));
	e->type = type;
	e->path = path;
	e->mode = stx->stx_mode & 07777;
	e->uid = stx->stx_uid;
	e->gid = stx->stx_gid;
	e->mtime = wire_time(&stx->stx_mtime);
	e->atime = wire_time(&stx->stx_atime);
	if (stx->stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		dmig_fs__warn(path, "immutable or append-only, which the copy will not be");
}

static enum dmig_fs__marks marks_of(const struct dmig_tree_send_opts *opts)
{
	if (!opts->overlay)
		return DMIG_FS_MARKS_NONE;
	return opts->userxattr ? DMIG_FS_MARKS_USER : DMIG_FS_MARKS_TRUSTED;
}

static int add_xattrs(struct dmig_fs__sender *s, struct dmig_wire_entry *e, const struct dmig_fs__object *o,
	struct dmig_error **err)
{
	int r = dmig_fs__xattrs_read(&s->xattrs, o, marks_of(s->opts), e->path, err);
	if (r < 0)
		return r;
	memcpy(e->xattrs, s->xattrs.list, s->xattrs.n * sizeof(e->xattrs[0]));
	e->n_xattrs = s->xattrs.n;
	if (s->xattrs.opaque && e->type == DMIG_ENTRY_FOLDER)
		e->flags |= DMIG_ENTRY_OPAQUE;
	return 0;
}

static int send_folder(
	void *opaque, int fd, const char *path, const struct statx *stx, struct dmig_error **err)
{
	struct dmig_fs__sender *s = opaque;
	struct dmig_wire_entry e;
	describe(&e, DMIG_ENTRY_FOLDER, path, stx);
	int r = add_xattrs(s, &e, &(struct dmig_fs__object){.fd = fd}, err);
	return r < 0 ? r : dmig_fs__send_entry(s, &e, err);
}

static uint64_t device_of(const struct statx *stx)
{
	return (uint64_t)stx->stx_dev_major << 32 | stx->stx_dev_minor;
}

/* Send the entry, or only a link to the first name of the same inode. 1: the entry itself went out. */
static int send_named(struct dmig_fs__sender *s, const struct dmig_wire_entry *e, const struct statx *stx,
	struct dmig_error **err)
{
	const char *first =
		stx->stx_nlink > 1 ? dmig_fs__links_find(s->links, device_of(stx), stx->stx_ino) : NULL;
	if (first) {
		struct dmig_wire_entry link = {
			.type = DMIG_ENTRY_HARDLINK, .path = e->path, .hardlink = first};
		return dmig_fs__send_entry(s, &link, err);
	}
	int r = dmig_fs__send_entry(s, e, err);
	if (r == 0 && stx->stx_nlink > 1 &&
		dmig_fs__links_add(s->links, device_of(stx), stx->stx_ino, e->path) < 0)
		r = dmig_error_set(err, ENOMEM, "out of memory");
	return r < 0 ? r : 1;
}

/* O_NONBLOCK: should it be a fifo by now, we must not wait for its other end. */
static int open_file(int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags | O_NOATIME);
	if (fd < 0 && errno == EPERM) /* O_NOATIME is for the owner and CAP_FOWNER */
		fd = openat(dir_fd, name, flags);
	return fd < 0 ? -errno : fd;
}

static int send_file(
	struct dmig_fs__sender *s, int dir_fd, const char *name, const char *path, struct dmig_error **err)
{
	struct statx stx;
	struct dmig_wire_entry e;
	cleanup_fd int fd = open_file(dir_fd, name);
	if (fd == -ENOENT || fd == -ESTALE)
		return 0;
	if (fd == -ELOOP || fd == -ENXIO)
		return LOOK_AGAIN;
	if (fd < 0)
		return dmig_fs__fail(err, -fd, "open", path);
	if (statx(fd, "", AT_EMPTY_PATH, DMIG_FS_STATX, &stx) < 0)
		return dmig_fs__fail(err, errno, "read the attributes of", path);
	if (!S_ISREG(stx.stx_mode))
		return LOOK_AGAIN;
	describe(&e, DMIG_ENTRY_FILE, path, &stx);
	e.size = stx.stx_size;
	int r = add_xattrs(s, &e, &(struct dmig_fs__object){.fd = fd}, err);
	if (r == 0)
		r = send_named(s, &e, &stx, err);
	if (r <= 0)
		return r;
	return dmig_fs__send_content(s, fd, path, 0, stx.stx_size, stx.stx_blocks * 512 < stx.stx_size, err);
}

static bool is_whiteout(const struct dmig_fs__sender *s, const struct statx *stx)
{
	return s->opts->overlay && S_ISCHR(stx->stx_mode) && !stx->stx_rdev_major && !stx->stx_rdev_minor;
}

static int read_target(int dir_fd, const char *name, char target[PATH_MAX], struct dmig_wire_entry *e)
{
	ssize_t n = readlinkat(dir_fd, name, target, PATH_MAX);
	if (n < 0)
		return -errno;
	if (n == PATH_MAX)
		return -ENAMETOOLONG;
	target[n] = '\0';
	e->target = target;
	return 0;
}

static enum dmig_entry_type type_of(const struct statx *stx)
{
	switch (stx->stx_mode & S_IFMT) {
	case S_IFLNK:
		return DMIG_ENTRY_SYMLINK;
	case S_IFCHR:
		return DMIG_ENTRY_CHAR;
	case S_IFBLK:
		return DMIG_ENTRY_BLOCK;
	case S_IFIFO:
		return DMIG_ENTRY_FIFO;
	default:
		return DMIG_ENTRY_SOCKET;
	}
}

static int send_special(struct dmig_fs__sender *s, int dir_fd, const char *name, const char *path,
	const struct statx *stx, struct dmig_error **err)
{
	char target[PATH_MAX];
	struct dmig_wire_entry e;
	describe(&e, type_of(stx), path, stx);
	if (S_ISCHR(stx->stx_mode) || S_ISBLK(stx->stx_mode))
		e.rdev = (uint64_t)stx->stx_rdev_major << 32 | stx->stx_rdev_minor;
	if (S_ISLNK(stx->stx_mode)) {
		int r = read_target(dir_fd, name, target, &e);
		if (r == -EINVAL || r == -ENOENT)
			return LOOK_AGAIN;
		if (r < 0)
			return dmig_fs__fail(err, -r, "read the link", path);
	}
	int r = add_xattrs(s, &e, &(struct dmig_fs__object){.fd = -1, .dir_fd = dir_fd, .name = name}, err);
	if (r == 0)
		r = send_named(s, &e, stx, err);
	return r < 0 ? r : 0;
}

static int send_other(
	struct dmig_fs__sender *s, int dir_fd, const char *name, const char *path, struct dmig_error **err)
{
	struct statx stx;
	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, DMIG_FS_STATX, &stx) < 0)
		return errno == ENOENT || errno == ESTALE
			       ? 0
			       : dmig_fs__fail(err, errno, "read the attributes of", path);
	if (S_ISDIR(stx.stx_mode))
		return 0; /* it came after the listing, as anything may that is not listed at all */
	if (S_ISREG(stx.stx_mode))
		return send_file(s, dir_fd, name, path, err);
	if (is_whiteout(s, &stx)) {
		struct dmig_wire_entry e = {.type = DMIG_ENTRY_WHITEOUT, .path = path};
		return dmig_fs__send_entry(s, &e, err);
	}
	return send_special(s, dir_fd, name, path, &stx, err);
}

static int send_name(void *opaque, int dir_fd, const char *name, const char *path, unsigned char d_type,
	struct dmig_error **err)
{
	struct dmig_fs__sender *s = opaque;
	int r = d_type == DT_REG ? send_file(s, dir_fd, name, path, err) : LOOK_AGAIN;
	for (int looks = 0; r == LOOK_AGAIN && looks < MAX_LOOKS; looks++)
		r = send_other(s, dir_fd, name, path, err);
	return r < 0 ? r : 0;
}

static int send_tree(struct dmig_fs__sender *s, int root_fd, struct dmig_error **err)
{
	struct dmig_fs__walk walk = {
		.root_fd = root_fd,
		.one_filesystem = s->opts->one_filesystem || s->opts->overlay,
		.folder = send_folder,
		.name = send_name,
		.opaque = s,
	};
	int r = dmig_fs__send_begin(s, err);
	if (r == 0)
		r = dmig_fs__walk(&walk, err);
	return r < 0 ? r : dmig_fs__send_end(s, err);
}

int dmig_fs__send_tree(struct dmig_fs__sender *s, int root_fd, struct dmig_error **err)
{
	int r = dmig_fs__sender_init(s, err);
	if (r == 0)
		r = send_tree(s, root_fd, err);
	dmig_fs__sender_free(s);
	return r;
}

int dmig_tree_send(struct dmig_conn *conn, int root_fd, const struct dmig_tree_send_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err)
{
	struct dmig_tree_stats own;
	struct dmig_error *why = NULL;
	struct dmig_fs__sender s = {
		.out = dmig_fs__output_to(conn), .opts = opts, .stats = stats ? stats : &own};
	int r = dmig_fs__send_tree(&s, root_fd, &why);
	return r < 0 ? dmig_fs__give_up(&s.out, r, why, err) : 0;
}
