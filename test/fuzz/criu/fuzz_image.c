/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One program per kind of image; what is accepted must also keep the promises of the header. */
#include <assert.h>

#include "criu/image.h"
#include "fuzz/fuzz.h"

#if defined(FUZZ_INVENTORY)
static void run(const uint8_t *data, size_t size, struct dmig_error **err)
{
	struct dmig_image_inventory inv;
	dmig_image_inventory(data, size, &inv, err);
}
#elif defined(FUZZ_PSTREE)
static void run(const uint8_t *data, size_t size, struct dmig_error **err)
{
	struct dmig_image_pstree t;
	if (dmig_image_pstree(data, size, &t, err) == 0)
		dmig_image_pstree_free(&t);
}
#elif defined(FUZZ_PAGEMAP)
static void run(const uint8_t *data, size_t size, struct dmig_error **err)
{
	struct dmig_image_pagemap p;
	if (dmig_image_pagemap(data, size, &p, err) < 0)
		return;
	uint64_t last = 0;
	for (size_t i = 0; i < p.n; i++) {
		assert(p.runs[i].pages > 0 && p.runs[i].vaddr >= last);
		assert(p.runs[i].pages <= (UINT64_MAX - p.runs[i].vaddr) / DMIG_IMAGE_PAGE);
		last = p.runs[i].vaddr + p.runs[i].pages * DMIG_IMAGE_PAGE;
	}
	dmig_image_pagemap_free(&p);
}
#elif defined(FUZZ_MM)
static void run(const uint8_t *data, size_t size, struct dmig_error **err)
{
	struct dmig_image_mm m;
	if (dmig_image_mm(data, size, &m, err) < 0)
		return;
	for (size_t i = 0; i < m.n; i++)
		assert(m.vmas[i].start < m.vmas[i].end && (i == 0 || m.vmas[i].start >= m.vmas[i - 1].end));
	dmig_image_mm_free(&m);
}
#elif defined(FUZZ_STATS)
static void run(const uint8_t *data, size_t size, struct dmig_error **err)
{
	struct dmig_image_stats s;
	dmig_image_stats(data, size, &s, err);
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_error struct dmig_error *err = NULL;
	run(data, size, &err);
	return 0;
}
