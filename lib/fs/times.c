/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/internal.h"
#include "util/cleanup.h"

struct folder_times {
	char *path;
	struct timespec times[2];
};

struct dmig_fs__times {
	struct folder_times *v;
	size_t n, cap;
};

struct dmig_fs__times *dmig_fs__times_new(void)
{
	return calloc(1, sizeof(struct dmig_fs__times));
}

void dmig_fs__times_free(struct dmig_fs__times *t)
{
	if (!t)
		return;
	while (t->n)
		free(t->v[--t->n].path);
	free(t->v);
	free(t);
}

void dmig_fs__timespecs(const struct dmig_wire_entry *entry, struct timespec ret[2])
{
	ret[0] = (struct timespec){.tv_sec = entry->atime.sec, .tv_nsec = entry->atime.nsec};
	ret[1] = (struct timespec){.tv_sec = entry->mtime.sec, .tv_nsec = entry->mtime.nsec};
}

int dmig_fs__times_add(struct dmig_fs__times *t, const struct dmig_wire_entry *entry)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		struct folder_times *bigger = realloc(t->v, cap * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		t->v = bigger;
		t->cap = cap;
	}
	struct folder_times *f = &t->v[t->n];
	f->path = strdup(entry->path);
	if (!f->path)
		return -ENOMEM;
	dmig_fs__timespecs(entry, f->times);
	t->n++;
	return 0;
}

static int apply_root(int root_fd, const struct timespec times[2])
{
	cleanup_fd int fd = dmig_fs__open_folder(root_fd, "", 0);
	if (fd < 0)
		return fd;
	return futimens(fd, times) < 0 ? -errno : 0;
}

int dmig_fs__times_apply(
	const struct dmig_fs__times *t, struct dmig_fs__parent *parent, struct dmig_error **err)
{
	for (size_t i = t->n; i-- > 0;) {
		const struct folder_times *f = &t->v[i];
		const char *name;
		int r;
		if (*f->path == '\0')
			r = apply_root(parent->root_fd, f->times);
		else if ((r = dmig_fs__parent_of(parent, f->path, &name)) == 0)
			r = utimensat(parent->fd, name, f->times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
		if (r < 0)
			return dmig_fs__fail(err, -r, "set the times of", f->path);
	}
	return 0;
}
