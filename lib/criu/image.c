/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "criu/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "criu-images.pb-c.h"
#include "criu/image-file.h"

/* Address space ends here at the latest: the end of a run must be a valid u64. */
#define MAX_PAGES (UINT64_MAX / DMIG_IMAGE_PAGE)

static int no_memory(struct dmig_error **err)
{
	return dmig_error_set(err, ENOMEM, "out of memory");
}

int dmig_image_inventory(
	const void *buf, size_t len, struct dmig_image_inventory *ret, struct dmig_error **err)
{
	struct dmig_image_file f;
	const uint8_t *msg;
	size_t size;
	int r = dmig_image_file_open(&f, buf, len, 0, DMIG_MAGIC_INVENTORY, "inventory", err);
	if (r == 0)
		r = dmig_image_file_only(&f, &msg, &size, err);
	if (r < 0)
		return r;
	DmigImg__Inventory *m = dmig_img__inventory__unpack(NULL, size, msg);
	if (!m)
		return dmig_image_file_bad(&f, "not readable", err);
	*ret = (struct dmig_image_inventory){.version = m->img_version, .tcp_close = m->tcp_close};
	dmig_img__inventory__free_unpacked(m, NULL);
	return 0;
}

static int add_task(struct dmig_image_pstree *t, const uint8_t *msg, size_t size,
	const struct dmig_image_file *f, struct dmig_error **err)
{
	if (dmig_image__grow((void **)&t->tasks, t->n, sizeof(*t->tasks)) < 0)
		return no_memory(err);
	DmigImg__PstreeItem *m = dmig_img__pstree_item__unpack(NULL, size, msg);
	if (!m)
		return dmig_image_file_bad(f, "not readable", err);
	t->tasks[t->n++] = (struct dmig_image_task){.pid = m->pid,
		.ppid = m->ppid,
		.pgid = m->pgid,
		.sid = m->sid,
		.n_threads = (uint32_t)m->n_threads};
	dmig_img__pstree_item__free_unpacked(m, NULL);
	return 0;
}

int dmig_image_pstree(const void *buf, size_t len, struct dmig_image_pstree *ret, struct dmig_error **err)
{
	struct dmig_image_pstree t = {0};
	struct dmig_image_file f;
	const uint8_t *msg;
	size_t size;
	int r = dmig_image_file_open(&f, buf, len, DMIG_MAGIC_COMMON, DMIG_MAGIC_PSTREE, "pstree", err);
	while (r >= 0 && (r = dmig_image_file_next(&f, &msg, &size, err)) > 0)
		r = add_task(&t, msg, size, &f, err);
	if (r < 0) {
		dmig_image_pstree_free(&t);
		return r;
	}
	*ret = t;
	return 0;
}

void dmig_image_pstree_free(struct dmig_image_pstree *t)
{
	free(t->tasks);
	memset(t, 0, sizeof(*t));
}

static int pagemap_head(struct dmig_image_file *f, struct dmig_image_pagemap *p, struct dmig_error **err)
{
	const uint8_t *msg;
	size_t size;
	int r = dmig_image_file_next(f, &msg, &size, err);
	if (r <= 0)
		return r < 0 ? r : dmig_image_file_bad(f, "empty", err);
	DmigImg__PagemapHead *m = dmig_img__pagemap_head__unpack(NULL, size, msg);
	if (!m)
		return dmig_image_file_bad(f, "not readable", err);
	p->pages_id = m->pages_id;
	dmig_img__pagemap_head__free_unpacked(m, NULL);
	return 0;
}

static int check_run(const struct dmig_image_pagemap *p, const struct dmig_image_run *run,
	const struct dmig_image_file *f, struct dmig_error **err)
{
	uint64_t first = run->vaddr / DMIG_IMAGE_PAGE;
	if (run->vaddr % DMIG_IMAGE_PAGE || run->pages == 0 || run->pages > MAX_PAGES - first)
		return dmig_image_file_bad(f, "has an impossible address", err);
	if (run->flags & ~(DMIG_PE_PARENT | DMIG_PE_LAZY | DMIG_PE_PRESENT))
		return dmig_image_file_bad(f, "has an unknown flag", err);
	if (p->n == 0)
		return 0;
	const struct dmig_image_run *last = &p->runs[p->n - 1];
	if (run->vaddr < last->vaddr + last->pages * DMIG_IMAGE_PAGE)
		return dmig_image_file_bad(f, "is not in order", err);
	return 0;
}

static int add_run(struct dmig_image_pagemap *p, const uint8_t *msg, size_t size,
	const struct dmig_image_file *f, struct dmig_error **err)
{
	if (dmig_image__grow((void **)&p->runs, p->n, sizeof(*p->runs)) < 0)
		return no_memory(err);
	DmigImg__PagemapRun *m = dmig_img__pagemap_run__unpack(NULL, size, msg);
	if (!m)
		return dmig_image_file_bad(f, "not readable", err);
	struct dmig_image_run run = {.vaddr = m->vaddr,
		.pages = m->has_nr_pages ? m->nr_pages : m->compat_nr_pages,
		.flags = m->has_flags ? m->flags : (m->in_parent ? DMIG_PE_PARENT : DMIG_PE_PRESENT)};
	dmig_img__pagemap_run__free_unpacked(m, NULL);
	int r = check_run(p, &run, f, err);
	if (r == 0)
		p->runs[p->n++] = run;
	return r;
}

int dmig_image_pagemap(const void *buf, size_t len, struct dmig_image_pagemap *ret, struct dmig_error **err)
{
	struct dmig_image_pagemap p = {0};
	struct dmig_image_file f;
	const uint8_t *msg;
	size_t size;
	int r = dmig_image_file_open(&f, buf, len, DMIG_MAGIC_COMMON, DMIG_MAGIC_PAGEMAP, "pagemap", err);
	if (r == 0)
		r = pagemap_head(&f, &p, err);
	while (r >= 0 && (r = dmig_image_file_next(&f, &msg, &size, err)) > 0)
		r = add_run(&p, msg, size, &f, err);
	if (r < 0) {
		dmig_image_pagemap_free(&p);
		return r;
	}
	*ret = p;
	return 0;
}

void dmig_image_pagemap_free(struct dmig_image_pagemap *p)
{
	free(p->runs);
	memset(p, 0, sizeof(*p));
}

static int copy_vmas(const DmigImg__Mm *m, struct dmig_image_mm *ret, const struct dmig_image_file *f,
	struct dmig_error **err)
{
	uint64_t last_end = 0;
	ret->vmas = calloc(m->n_vmas + 1, sizeof(*ret->vmas));
	if (!ret->vmas)
		return no_memory(err);
	for (size_t i = 0; i < m->n_vmas; i++) {
		const DmigImg__Vma *v = m->vmas[i];
		if (v->start < last_end || v->start >= v->end || (v->start | v->end) % DMIG_IMAGE_PAGE)
			return dmig_image_file_bad(f, "has impossible areas", err);
		last_end = v->end;
		ret->vmas[ret->n++] = (struct dmig_image_vma){.start = v->start,
			.end = v->end,
			.pgoff = v->pgoff,
			.shmid = v->shmid,
			.prot = v->prot,
			.flags = v->flags,
			.status = v->status};
	}
	return 0;
}

int dmig_image_mm(const void *buf, size_t len, struct dmig_image_mm *ret, struct dmig_error **err)
{
	struct dmig_image_mm mm = {0};
	struct dmig_image_file f;
	const uint8_t *msg;
	size_t size;
	int r = dmig_image_file_open(&f, buf, len, DMIG_MAGIC_COMMON, DMIG_MAGIC_MM, "mm", err);
	if (r == 0)
		r = dmig_image_file_only(&f, &msg, &size, err);
	if (r < 0)
		return r;
	DmigImg__Mm *m = dmig_img__mm__unpack(NULL, size, msg);
	if (!m)
		return dmig_image_file_bad(&f, "not readable", err);
	mm.exe_file_id = m->exe_file_id;
	r = copy_vmas(m, &mm, &f, err);
	dmig_img__mm__free_unpacked(m, NULL);
	if (r < 0) {
		dmig_image_mm_free(&mm);
		return r;
	}
	*ret = mm;
	return 0;
}

void dmig_image_mm_free(struct dmig_image_mm *m)
{
	free(m->vmas);
	memset(m, 0, sizeof(*m));
}

int dmig_image_stats(const void *buf, size_t len, struct dmig_image_stats *ret, struct dmig_error **err)
{
	struct dmig_image_file f;
	const uint8_t *msg;
	size_t size;
	int r = dmig_image_file_open(&f, buf, len, DMIG_MAGIC_SERVICE, DMIG_MAGIC_STATS, "stats", err);
	if (r == 0)
		r = dmig_image_file_only(&f, &msg, &size, err);
	if (r < 0)
		return r;
	DmigImg__Stats *m = dmig_img__stats__unpack(NULL, size, msg);
	if (!m)
		return dmig_image_file_bad(&f, "not readable", err);
	*ret = (struct dmig_image_stats){.has_dump = m->dump != NULL, .has_restore = m->restore != NULL};
	if (m->dump) {
		ret->freezing_us = m->dump->freezing_time;
		ret->frozen_us = m->dump->frozen_time;
		ret->memdump_us = m->dump->memdump_time;
		ret->memwrite_us = m->dump->memwrite_time;
		ret->pages_scanned = m->dump->pages_scanned + m->dump->shpages_scanned;
		ret->pages_skipped = m->dump->pages_skipped_parent;
		ret->pages_written = m->dump->pages_written + m->dump->shpages_written;
		ret->pages_lazy = m->dump->pages_lazy;
	}
	if (m->restore) {
		ret->forking_us = m->restore->forking_time;
		ret->restore_us = m->restore->restore_time;
		ret->pages_restored = m->restore->pages_restored;
	}
	dmig_img__stats__free_unpacked(m, NULL);
	return 0;
}
