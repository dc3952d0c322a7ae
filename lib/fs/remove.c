/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs/internal.h"
#include "util/cleanup.h"
#include "util/io.h"

/*
 * Folders that are left to empty, deepest on top, as paths below one folder: so the depth of a tree costs no
 * file descriptors. A folder is looked at again once all that was pushed on top of it is gone.
 */
struct todo {
	char **paths;
	size_t n, cap;
};

static void todo_free(struct todo *t)
{
	while (t->n)
		free(t->paths[--t->n]);
	free(t->paths);
}
#define cleanup_todo __attribute__((cleanup(todo_free)))

static int todo_push(struct todo *t, const char *folder, const char *name)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		char **bigger = realloc(t->paths, cap * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		t->paths = bigger;
		t->cap = cap;
	}
	char *path = dmig_asprintf("%s%s%s", folder, *folder ? "/" : "", name);
	if (!path)
		return -ENOMEM;
	t->paths[t->n++] = path;
	return 0;
}

/* 0 gone; 1 a folder that is not empty; -errno. */
static int remove_one(int dir_fd, const char *name, unsigned char d_type)
{
	if (d_type != DT_DIR && (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT))
		return 0;
	if (d_type != DT_DIR && errno != EISDIR)
		return -errno;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno == ENOTDIR && d_type == DT_DIR)
		return remove_one(dir_fd, name, DT_UNKNOWN);
	return errno == ENOTEMPTY || errno == EEXIST ? 1 : -errno;
}

static int empty_folder(int fd, const char *path, struct todo *todo)
{
	cleanup_dir DIR *d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -errno;
	}
	for (;;) {
		errno = 0;
		struct dirent *e = readdir(d);
		if (!e)
			return -errno;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		int r = remove_one(dirfd(d), e->d_name, e->d_type);
		int pushed = r == 0 ? 0 : todo_push(todo, path, e->d_name); /* a failure: for its message */
		if (r < 0 || pushed < 0)
			return r < 0 ? r : pushed;
	}
}

static int remove_folder(int dir_fd, char *path)
{
	char *slash = strrchr(path, '/');
	if (!slash)
		return remove_one(dir_fd, path, DT_DIR);
	*slash = '\0';
	cleanup_fd int fd = dmig_fs__open_folder(dir_fd, path, DMIG_FS_STAY);
	*slash = '/';
	return fd < 0 ? fd : remove_one(fd, slash + 1, DT_DIR);
}

static int work_off(int dir_fd, struct todo *todo)
{
	while (todo->n) {
		size_t before = todo->n;
		char *path = todo->paths[before - 1];
		int fd = dmig_fs__open_folder(dir_fd, path, DMIG_FS_STAY);
		int r = fd == -ENOENT ? 0 : fd < 0 ? fd : empty_folder(fd, path, todo);
		if (r == 0 && todo->n == before) {
			r = fd == -ENOENT ? 0 : remove_folder(dir_fd, path);
			if (r == 0) {
				free(path);
				todo->n--;
			}
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* What stands on top of the list is what could not be removed. base: what its path begins with, with a slash.
 */
static int fail(struct dmig_error **err, int r, const char *base, size_t base_len, const struct todo *todo)
{
	const char *top = todo->n ? todo->paths[todo->n - 1] : "";
	cleanup_free char *whole = dmig_asprintf("%.*s%s", (int)base_len, base, top);
	return dmig_fs__fail(err, -r, "remove what is in the way at", whole ? whole : base);
}

int dmig_fs__empty(int dir_fd, struct dmig_error **err)
{
	cleanup_todo struct todo todo = {0};
	int fd = dmig_fs__open_folder(dir_fd, "", DMIG_FS_STAY);
	int r = fd < 0 ? fd : empty_folder(fd, "", &todo);
	if (r == 0)
		r = work_off(dir_fd, &todo);
	return r < 0 ? fail(err, r, "", 0, &todo) : 0;
}

int dmig_fs__remove(int dir_fd, const char *name, const char *path, struct dmig_error **err)
{
	cleanup_todo struct todo todo = {0};
	int r = remove_one(dir_fd, name, DT_UNKNOWN);
	if (r == 0)
		return 0;
	int pushed = todo_push(&todo, "", name);
	if (r > 0)
		r = pushed < 0 ? pushed : work_off(dir_fd, &todo);
	return r < 0 ? fail(err, r, path, strlen(path) - strlen(name), &todo) : 0;
}
