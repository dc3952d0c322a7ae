/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "criu/image.h"
#include "util/cleanup.h"
#include "util/io.h"

static int read_image(int dir, const char *name, char **ret, size_t *ret_len, struct dmig_error **err)
{
	struct stat st;
	/* A link or a FIFO has no business among images, and opening one could reach elsewhere or block. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return dmig_error_set(err, errno, "cannot look at %s: %m", name);
	if (!S_ISREG(st.st_mode))
		return dmig_error_set(err, EBADMSG, "%s is not a regular file", name);
	int r = dmig_read_file_at(dir, name, DMIG_IMAGE_MAX_FILE, ret, ret_len);
	return r < 0 ? dmig_error_set(err, -r, "cannot read %s: %s", name, strerror(-r)) : 0;
}

static int add_inventory(int dir, struct dmig_criu_summary *s, struct dmig_error **err)
{
	cleanup_free char *buf = NULL;
	size_t len;
	struct dmig_image_inventory inv;
	int r = read_image(dir, "inventory.img", &buf, &len, err);
	if (r == 0)
		r = dmig_image_inventory(buf, len, &inv, err);
	if (r == 0)
		s->version = inv.version;
	return r;
}

static int add_pstree(int dir, struct dmig_criu_summary *s, struct dmig_error **err)
{
	cleanup_free char *buf = NULL;
	size_t len;
	struct dmig_image_pstree t;
	int r = read_image(dir, "pstree.img", &buf, &len, err);
	if (r == 0)
		r = dmig_image_pstree(buf, len, &t, err);
	if (r < 0)
		return r;
	s->processes = t.n;
	for (size_t i = 0; i < t.n; i++)
		s->threads += t.tasks[i].n_threads;
	dmig_image_pstree_free(&t);
	return 0;
}

static void count_run(struct dmig_criu_summary *s, const struct dmig_image_run *run)
{
	if (run->flags & DMIG_PE_PRESENT)
		s->pages_present += run->pages;
	else if (run->flags & DMIG_PE_LAZY)
		s->pages_lazy += run->pages;
	else if (run->flags & DMIG_PE_PARENT)
		s->pages_parent += run->pages;
	else
		s->pages_zero += run->pages;
}

static int add_pagemap(int dir, const char *name, struct dmig_criu_summary *s, struct dmig_error **err)
{
	cleanup_free char *buf = NULL;
	size_t len;
	struct dmig_image_pagemap p;
	int r = read_image(dir, name, &buf, &len, err);
	if (r == 0)
		r = dmig_image_pagemap(buf, len, &p, err);
	if (r < 0)
		return dmig_error_wrap(err, "%s", name);
	for (size_t i = 0; i < p.n; i++)
		count_run(s, &p.runs[i]);
	dmig_image_pagemap_free(&p);
	return 0;
}

static int add_file(int dir, const char *name, struct dmig_criu_summary *s, struct dmig_error **err)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return dmig_error_set(err, errno, "cannot look at %s: %m", name);
	if (!S_ISREG(st.st_mode))
		return 0;
	s->files++;
	s->bytes += (uint64_t)st.st_size;
	if (strncmp(name, "pages-", 6) == 0)
		s->page_bytes += (uint64_t)st.st_size;
	return strncmp(name, "pagemap-", 8) == 0 ? add_pagemap(dir, name, s, err) : 0;
}

int dmig_criu_image_summary(const char *images_dir, struct dmig_criu_summary *ret, struct dmig_error **err)
{
	struct dmig_criu_summary s = {0};
	int dir = open(images_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = dir < 0 ? NULL : fdopendir(dir);
	if (!d)
		return dmig_error_set(err, errno, "cannot open %s: %m", images_dir);
	int r = add_inventory(dir, &s, err);
	if (r == 0)
		r = add_pstree(dir, &s, err);
	struct dirent *e;
	while (r == 0 && (e = readdir(d)))
		r = add_file(dir, e->d_name, &s, err);
	if (r == 0)
		*ret = s;
	return r;
}
