/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/fs/compare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "support/test.h"
#include "util/cleanup.h"

#define MAX_INODES 65536 /* files with several names in one test */
/* Bytes by which the space of equal files may differ: metadata blocks, preallocation. */
#define BLOCK_SLACK (1 << 20)

struct compare {
	const char *roots[2];
	int flags, differences;
	struct {
		ino_t a, b;
		char first[64]; /* for messages */
	} links[MAX_INODES];
	size_t n_links;
};

static void differ(struct compare *c, const char *path, const char *what)
{
	c->differences++;
	printf("DIFFERENCE %s: %s (%s, %s)\n", path, what, c->roots[0], c->roots[1]);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted names of a folder; the caller frees them. */
static size_t list(const char *root, const char *path, char ***ret)
{
	cleanup_free char *full = dmig_asprintf("%s/%s", root, path);
	cleanup_dir DIR *d = opendir(full);
	size_t n = 0, cap = 0;
	char **names = NULL;
	struct dirent *e;
	assert_non_null(d);
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (n == cap)
			names = realloc(names, (cap = cap ? cap * 2 : 64) * sizeof(*names));
		names[n++] = strdup(e->d_name);
	}
	if (n)
		qsort(names, n, sizeof(*names), by_name);
	*ret = names;
	return n;
}

static void free_names(char **names, size_t n)
{
	while (n)
		free(names[--n]);
	free(names);
}

/* All xattrs as one text that is the same for equal sets. */
static size_t xattr_text(const char *full, char *text, size_t size)
{
	static char names[65536], value[65536];
	char *sorted[256];
	size_t n = 0, used = 0;
	ssize_t len = llistxattr(full, names, sizeof(names));
	if (len < 0)
		return 0;
	for (char *p = names; p < names + len && n < 256; p += strlen(p) + 1)
		sorted[n++] = p;
	qsort(sorted, n, sizeof(*sorted), by_name);
	for (size_t i = 0; i < n; i++) {
		ssize_t v = lgetxattr(full, sorted[i], value, sizeof(value));
		assert_true(v >= 0);
		size_t name_len = strlen(sorted[i]) + 1;
		assert_true(used + name_len + sizeof(v) + (size_t)v <= size);
		memcpy(text + used, sorted[i], name_len);
		memcpy(text + used + name_len, &v, sizeof(v));
		memcpy(text + used + name_len + sizeof(v), value, (size_t)v);
		used += name_len + sizeof(v) + (size_t)v;
	}
	return used;
}

static void compare_xattrs(struct compare *c, const char *path, char *const full[2])
{
	static char text[2][1 << 20];
	size_t len[2];
	for (int i = 0; i < 2; i++)
		len[i] = xattr_text(full[i], text[i], sizeof(text[i]));
	if (len[0] != len[1] || memcmp(text[0], text[1], len[0]) != 0)
		differ(c, path, "xattrs");
}

static void compare_contents(struct compare *c, const char *path, char *const full[2], off_t size)
{
	static char buf[2][1 << 20];
	int fd[2];
	for (int i = 0; i < 2; i++) {
		fd[i] = open(full[i], O_RDONLY | O_NOATIME | O_CLOEXEC);
		assert_true(fd[i] >= 0);
	}
	for (off_t at = 0; at < size;) {
		off_t data = lseek(fd[0], at, SEEK_DATA), other = lseek(fd[1], at, SEEK_DATA);
		if (data < 0 && other < 0)
			break;
		at = data < 0 || (other >= 0 && other < data) ? other : data;
		at -= at % (off_t)sizeof(buf[0]);
		ssize_t n = pread(fd[0], buf[0], sizeof(buf[0]), at),
			m = pread(fd[1], buf[1], sizeof(buf[1]), at);
		assert_true(n > 0);
		if (n != m || memcmp(buf[0], buf[1], (size_t)n) != 0) {
			differ(c, path, "contents");
			break;
		}
		at += n;
	}
	close(fd[0]);
	close(fd[1]);
}

static void compare_links(struct compare *c, const char *path, const struct stat st[2])
{
	if (st[0].st_nlink != st[1].st_nlink)
		differ(c, path, "link count");
	if (st[0].st_nlink < 2 && st[1].st_nlink < 2)
		return;
	for (size_t i = 0; i < c->n_links; i++)
		if (c->links[i].a == st[0].st_ino || c->links[i].b == st[1].st_ino) {
			if (c->links[i].a != st[0].st_ino || c->links[i].b != st[1].st_ino)
				differ(c, path, "hard links");
			return;
		}
	assert_true(c->n_links < MAX_INODES);
	c->links[c->n_links].a = st[0].st_ino;
	c->links[c->n_links++].b = st[1].st_ino;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static void compare_stat(struct compare *c, const char *path, const struct stat st[2])
{
	if (st[0].st_mode != st[1].st_mode)
		differ(c, path, "type or mode");
	if (st[0].st_uid != st[1].st_uid || st[0].st_gid != st[1].st_gid)
		differ(c, path, "owner");
	if (!same_time(&st[0].st_mtim, &st[1].st_mtim))
		differ(c, path, "mtime");
	if (S_ISREG(st[0].st_mode) && !same_time(&st[0].st_atim, &st[1].st_atim))
		differ(c, path, "atime");
	if ((S_ISCHR(st[0].st_mode) || S_ISBLK(st[0].st_mode)) && st[0].st_rdev != st[1].st_rdev)
		differ(c, path, "device");
	if ((S_ISREG(st[0].st_mode) || S_ISLNK(st[0].st_mode)) && st[0].st_size != st[1].st_size)
		differ(c, path, "size");
	if (c->flags & COMPARE_LINKS && !S_ISDIR(st[0].st_mode))
		compare_links(c, path, st);
	if (c->flags & COMPARE_BLOCKS && llabs((st[0].st_blocks - st[1].st_blocks) * 512) > BLOCK_SLACK)
		differ(c, path, "space used");
}

static void compare_targets(struct compare *c, const char *path, char *const full[2])
{
	char a[PATH_MAX], b[PATH_MAX];
	ssize_t n = readlink(full[0], a, sizeof(a)), m = readlink(full[1], b, sizeof(b));
	if (n < 0 || n != m || memcmp(a, b, (size_t)n) != 0)
		differ(c, path, "target of the link");
}

static void compare_name(struct compare *c, const char *path);

static void compare_folders(struct compare *c, const char *path)
{
	char **a, **b;
	size_t n = list(c->roots[0], path, &a), m = list(c->roots[1], path, &b), i = 0, j = 0;
	while (i < n || j < m) {
		int order = i == n ? 1 : j == m ? -1 : strcmp(a[i], b[j]);
		cleanup_free char *child =
			dmig_asprintf("%s%s%s", path, *path ? "/" : "", order <= 0 ? a[i] : b[j]);
		if (order == 0)
			compare_name(c, child);
		else
			differ(c, child, order < 0 ? "only in the first" : "only in the second");
		i += order <= 0;
		j += order >= 0;
	}
	free_names(a, n);
	free_names(b, m);
}

static void compare_name(struct compare *c, const char *path)
{
	struct stat st[2];
	char *full[2];
	for (int i = 0; i < 2; i++) {
		full[i] = dmig_asprintf("%s/%s", c->roots[i], path);
		if (lstat(full[i], &st[i]) < 0)
			fail_msg("%s: %s", full[i], strerror(errno));
	}
	compare_stat(c, path, st);
	compare_xattrs(c, path, full);
	if (S_ISLNK(st[0].st_mode) && S_ISLNK(st[1].st_mode))
		compare_targets(c, path, full);
	if (S_ISREG(st[0].st_mode) && S_ISREG(st[1].st_mode))
		compare_contents(c, path, full, st[0].st_size);
	bool folders = S_ISDIR(st[0].st_mode) && S_ISDIR(st[1].st_mode);
	free(full[0]);
	free(full[1]);
	if (folders)
		compare_folders(c, path);
}

int compare_trees(const char *a, const char *b, int flags)
{
	static struct compare c;
	c = (struct compare){.roots = {a, b}, .flags = flags};
	compare_name(&c, "");
	return c.differences;
}
