/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs/internal.h"
#include "util/cleanup.h"

/* Folders that are still to be visited, as paths: so depth costs memory and no file descriptors. */
struct pending {
	char **paths;
	size_t n, cap;
};

static void pending_free(struct pending *p)
{
	while (p->n)
		free(p->paths[--p->n]);
	free(p->paths);
}
#define cleanup_pending __attribute__((cleanup(pending_free)))

static int pending_push(struct pending *p, const char *path)
{
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 64;
		char **bigger = realloc(p->paths, cap * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		p->paths = bigger;
		p->cap = cap;
	}
	p->paths[p->n] = strdup(path);
	return p->paths[p->n] ? (int)p->n++ : -ENOMEM;
}

/* In a tree that others share something may go, or become something else, between two looks at it. */
static bool vanished(int code)
{
	return code == ENOENT || code == ENOTDIR || code == ESTALE;
}

static unsigned char type_of(int fd, const struct dirent *e)
{
	struct stat st;
	if (e->d_type != DT_UNKNOWN || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return e->d_type;
	return IFTODT(st.st_mode);
}

struct visit {
	const struct dmig_fs__walk *walk;
	struct pending pending;
	char path[PATH_MAX]; /* of the name being looked at */
	uint64_t mount;      /* of the root */
};

static int visit_name(
	struct visit *v, int fd, size_t folder_len, const struct dirent *e, struct dmig_error **err)
{
	size_t len = strlen(e->d_name), at = folder_len ? folder_len + 1 : 0;
	if (at + len > DMIG_WIRE_MAX_PATH)
		return dmig_fs__fail(err, ENAMETOOLONG, "send a name of more than 4095 bytes in", v->path);
	if (folder_len)
		v->path[folder_len] = '/';
	memcpy(v->path + at, e->d_name, len + 1);
	int r;
	if (type_of(fd, e) == DT_DIR) {
		r = pending_push(&v->pending, v->path);
		if (r < 0)
			dmig_error_set(err, ENOMEM, "out of memory");
	} else {
		r = v->walk->name(v->walk->opaque, fd, v->path + at, v->path, e->d_type, err);
	}
	v->path[folder_len] = '\0';
	return r < 0 ? r : 0;
}

/* Takes fd. */
static int visit_names(struct visit *v, int fd, struct dmig_error **err)
{
	size_t folder_len = strlen(v->path);
	cleanup_dir DIR *d = fdopendir(fd);
	if (!d) {
		int code = errno;
		close(fd);
		return dmig_fs__fail(err, code, "list", v->path);
	}
	for (;;) {
		errno = 0;
		struct dirent *e = readdir(d);
		if (!e && errno)
			return dmig_fs__fail(err, errno, "list", v->path);
		if (!e)
			return 0;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		int r = visit_name(v, dirfd(d), folder_len, e, err);
		if (r < 0)
			return r;
	}
}

static bool other_mount(struct visit *v, const struct statx *stx)
{
	if (*v->path == '\0')
		v->mount = stx->stx_mnt_id;
	return stx->stx_mnt_id != v->mount;
}

static int visit_folder(struct visit *v, struct dmig_error **err)
{
	struct statx stx;
	cleanup_fd int fd = dmig_fs__open_folder(v->walk->root_fd, v->path, 0);
	if (fd < 0 && *v->path && vanished(-fd))
		return 0;
	if (fd < 0)
		return dmig_fs__fail(err, -fd, "open", v->path);
	if (statx(fd, "", AT_EMPTY_PATH, DMIG_FS_STATX, &stx) < 0)
		return dmig_fs__fail(err, errno, "read the attributes of", v->path);
	int r = v->walk->folder(v->walk->opaque, fd, v->path, &stx, err);
	if (r < 0)
		return r;
	if (other_mount(v, &stx) && v->walk->one_filesystem)
		return 0;
	return visit_names(v, steal_fd(&fd), err);
}

int dmig_fs__walk(const struct dmig_fs__walk *w, struct dmig_error **err)
{
	struct visit *v = calloc(1, sizeof(*v));
	if (!v)
		return dmig_error_set(err, ENOMEM, "out of memory");
	v->walk = w;
	int r = visit_folder(v, err);
	while (r == 0 && v->pending.n) {
		char *path = v->pending.paths[--v->pending.n];
		memcpy(v->path, path, strlen(path) + 1);
		free(path);
		r = visit_folder(v, err);
	}
	pending_free(&v->pending);
	free(v);
	return r;
}
