/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_IMAGE_H
#define DMIG_CRIU_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/*
 * Readers of CRIU's image files. The files may come from the other host or from disk, so every byte is
 * hostile: all functions take (buffer, length), do no I/O and stay inside the limits below. What they return
 * is allocated; the matching _free() accepts NULL and zeroes the struct.
 *
 * Container: magic (two words, the inventory one), then messages of {u32 size, protobuf}, all little-endian.
 */

/* Bytes of one image file that we read: a mm image of 65530 areas has 5 MiB, a pagemap of 4 million runs
 * has 64. */
#define DMIG_IMAGE_MAX_FILE (64u << 20)
/* Bytes of one message. protobuf-c needs up to 16 times that while it unpacks. */
#define DMIG_IMAGE_MAX_MESSAGE (16u << 20)
/* CRIU's images use the machine's smallest page. */
#define DMIG_IMAGE_PAGE 4096u

struct dmig_image_inventory {
	uint32_t version; /* of the image format: 1 or 2 */
	bool tcp_close;
};
int dmig_image_inventory(
	const void *buf, size_t len, struct dmig_image_inventory *ret, struct dmig_error **err);

struct dmig_image_task {
	uint32_t pid, ppid, pgid, sid; /* as the container sees them */
	uint32_t n_threads;
};
struct dmig_image_pstree {
	struct dmig_image_task *tasks;
	size_t n;
};
int dmig_image_pstree(const void *buf, size_t len, struct dmig_image_pstree *ret, struct dmig_error **err);
void dmig_image_pstree_free(struct dmig_image_pstree *t);

/* Flags of a run; none at all is a page that is all zero. */
#define DMIG_PE_PARENT 1u  /* in the images of an earlier dump */
#define DMIG_PE_LAZY 2u    /* may come later */
#define DMIG_PE_PRESENT 4u /* in pages-ID.img */
struct dmig_image_run {
	uint64_t vaddr; /* page-aligned; for shared memory an offset */
	uint64_t pages; /* at least 1; the end fits 64 bits */
	uint32_t flags;
};
struct dmig_image_pagemap {
	uint32_t pages_id;
	struct dmig_image_run *runs; /* ascending, not overlapping */
	size_t n;
};
/* pagemap-PID.img and pagemap-shmem-ID.img */
int dmig_image_pagemap(const void *buf, size_t len, struct dmig_image_pagemap *ret, struct dmig_error **err);
void dmig_image_pagemap_free(struct dmig_image_pagemap *p);

struct dmig_image_vma {
	uint64_t start, end; /* page-aligned, start < end */
	uint64_t pgoff, shmid;
	uint32_t prot, flags; /* as in mmap(2) */
	uint32_t status;      /* CRIU's VMA_* bits */
};
struct dmig_image_mm {
	uint32_t exe_file_id;
	struct dmig_image_vma *vmas; /* ascending, not overlapping */
	size_t n;
};
int dmig_image_mm(const void *buf, size_t len, struct dmig_image_mm *ret, struct dmig_error **err);
void dmig_image_mm_free(struct dmig_image_mm *m);

/* stats-dump and stats-restore, which CRIU writes to its work folder at its end. Times in us. */
struct dmig_image_stats {
	bool has_dump, has_restore;
	uint32_t freezing_us, frozen_us, memdump_us, memwrite_us;
	uint64_t pages_scanned, pages_skipped, pages_written,
		pages_lazy; /* shared memory included in scanned and written */
	uint32_t forking_us, restore_us;
	uint64_t pages_restored;
};
int dmig_image_stats(const void *buf, size_t len, struct dmig_image_stats *ret, struct dmig_error **err);

/* A whole set of images, for the report and for `inspect`. */
struct dmig_criu_summary {
	uint32_t version;
	size_t processes, threads;
	uint64_t pages_present;     /* stored in the images, shared memory included */
	uint64_t pages_lazy;        /* listed only */
	uint64_t pages_zero;        /* listed without content */
	uint64_t pages_parent;      /* in an earlier dump */
	uint64_t bytes, page_bytes; /* of all files; of pages-*.img */
	size_t files;
};
int dmig_criu_image_summary(const char *images_dir, struct dmig_criu_summary *ret, struct dmig_error **err);

#endif
