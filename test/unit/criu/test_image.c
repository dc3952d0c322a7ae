/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Real images of a program with two processes, one of them with two threads; the same files are the fuzz
 * corpus. */
#include "support/test.h"

#include "criu/image-file.h"
#include "criu/image.h"
#include "util/cleanup.h"

#include <errno.h>
#include <sys/stat.h>

struct file {
	char *data;
	size_t len;
};

static struct file load(const char *name)
{
	struct file f;
	cleanup_free char *path = dmig_asprintf(CORPUS "/%s", name);
	assert_int_equal(dmig_read_file(path, 1 << 20, &f.data, &f.len), 0);
	return f;
}

static void inventory(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_image_inventory inv;
	struct file f = load("criu_inventory/real");
	assert_ok(dmig_image_inventory(f.data, f.len, &inv, &err), err);
	assert_int_equal(inv.version, 2);
	assert_false(inv.tcp_close);
	free(f.data);
}

static void pstree(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_image_pstree t;
	struct file f = load("criu_pstree/real");
	assert_ok(dmig_image_pstree(f.data, f.len, &t, &err), err);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.tasks[0].n_threads, 2);
	assert_int_equal(t.tasks[1].ppid, t.tasks[0].pid);
	dmig_image_pstree_free(&t);
	free(f.data);
}

static void pagemap(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_image_pagemap p;
	struct file f = load("criu_pagemap/real");
	uint64_t present = 0;
	assert_ok(dmig_image_pagemap(f.data, f.len, &p, &err), err);
	for (size_t i = 0; i < p.n; i++)
		present += p.runs[i].flags & DMIG_PE_PRESENT ? p.runs[i].pages : 0;
	assert_int_equal(present, 19);
	dmig_image_pagemap_free(&p);
	free(f.data);
}

static void mm(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_image_mm m;
	struct file f = load("criu_mm/real");
	assert_ok(dmig_image_mm(f.data, f.len, &m, &err), err);
	assert_int_equal(m.n, 15);
	assert_true(m.vmas[0].start < m.vmas[0].end);
	dmig_image_mm_free(&m);
	free(f.data);
}

static void stats(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_image_stats s;
	struct file f = load("criu_stats/real");
	assert_ok(dmig_image_stats(f.data, f.len, &s, &err), err);
	assert_true(s.has_dump && !s.has_restore);
	assert_int_equal(s.pages_written, 39);
	assert_true(s.frozen_us > 0);
	free(f.data);
}

/* Every prefix of a good file is refused or is a shorter good file; nothing else happens. */
static void cut_files(void **state)
{
	(void)state;
	struct file f = load("criu_pagemap/real");
	for (size_t n = 0; n < f.len; n++) {
		cleanup_error struct dmig_error *err = NULL;
		struct dmig_image_pagemap p;
		if (dmig_image_pagemap(f.data, n, &p, &err) == 0)
			dmig_image_pagemap_free(&p);
		else
			assert_int_equal(err->code, EBADMSG);
	}
	free(f.data);
}

static void another_kind_is_refused(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_image_mm m;
	struct file f = load("criu_pagemap/real");
	assert_fails(dmig_image_mm(f.data, f.len, &m, &err), err, EBADMSG);
	free(f.data);
}

/* One pagemap run as CRIU writes it: vaddr, nr_pages (compat 0), flags. */
static size_t put_run(uint8_t *out, uint64_t vaddr, uint64_t pages, uint32_t flags)
{
	uint8_t *p = out + 4;
	const uint64_t values[] = {vaddr, 0, flags, pages};
	const uint8_t tags[] = {1 << 3, 2 << 3, 4 << 3, 5 << 3};
	for (int i = 0; i < 4; i++) {
		*p++ = tags[i];
		uint64_t v = values[i];
		for (; v >= 0x80; v >>= 7)
			*p++ = (uint8_t)(v | 0x80);
		*p++ = (uint8_t)v;
	}
	uint32_t size = (uint32_t)(p - out - 4);
	memcpy(out, &size, 4);
	return (size_t)(p - out);
}

static size_t put_head(uint8_t *out)
{
	const uint32_t words[] = {DMIG_MAGIC_COMMON, DMIG_MAGIC_PAGEMAP, 2};
	const uint8_t pages_id[] = {1 << 3, 7};
	memcpy(out, words, sizeof(words));
	memcpy(out + sizeof(words), pages_id, 2);
	return sizeof(words) + 2;
}

static void expect_run(uint64_t vaddr, uint64_t pages, uint32_t flags, int want)
{
	struct dmig_image_pagemap p;
	struct dmig_error *err = NULL;
	uint8_t buf[256];
	size_t n = put_head(buf);
	n += put_run(buf + n, 0x10000, 16, DMIG_PE_LAZY); /* ends at 0x20000 */
	n += put_run(buf + n, vaddr, pages, flags);
	if (want) {
		assert_fails(dmig_image_pagemap(buf, n, &p, &err), err, want);
		return;
	}
	assert_ok(dmig_image_pagemap(buf, n, &p, &err), err);
	assert_int_equal(p.pages_id, 7);
	assert_int_equal(p.n, 2);
	assert_int_equal(p.runs[1].pages, pages);
	dmig_image_pagemap_free(&p);
}

static void impossible_runs_are_refused(void **state)
{
	(void)state;
	expect_run(0x20000, 1, DMIG_PE_PRESENT, 0);
	expect_run(0x20000, UINT64_C(1) << 40, DMIG_PE_LAZY, 0);
	expect_run(0x1f000, 1, DMIG_PE_PRESENT, EBADMSG);
	expect_run(0x20001, 1, DMIG_PE_PRESENT, EBADMSG);
	expect_run(0x20000, 0, DMIG_PE_PRESENT, EBADMSG);
	expect_run(0x20000, 1, 8, EBADMSG);
	expect_run(UINT64_MAX - 4095, 1, DMIG_PE_PRESENT, EBADMSG);
	expect_run(0x20000, UINT64_C(1) << 52, DMIG_PE_PRESENT, EBADMSG);
}

static void put(const char *dir, const char *name, const char *from)
{
	struct file f = load(from);
	cleanup_free char *path = dmig_asprintf("%s/%s", dir, name);
	struct dmig_error *err = NULL;
	assert_ok(dmig_write_file_atomic(path, f.data, f.len, 0600, &err), err);
	free(f.data);
}

static void summary(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_criu_summary s;
	char *dir = test_mkdir();
	assert_fails(dmig_criu_image_summary(dir, &s, &err), err, ENOENT);
	put(dir, "inventory.img", "criu_inventory/real");
	put(dir, "pstree.img", "criu_pstree/real");
	put(dir, "pagemap-1.img", "criu_pagemap/real");
	put(dir, "pagemap-shmem-2.img", "criu_pagemap/shmem");
	put(dir, "pages-1.img", "criu_stats/real");
	assert_ok(dmig_criu_image_summary(dir, &s, &err), err);
	assert_int_equal(s.processes, 2);
	assert_int_equal(s.threads, 3);
	assert_int_equal(s.pages_present, 20);
	assert_int_equal(s.files, 5);
	assert_int_equal(s.page_bytes, 45);
	assert_int_equal(s.version, 2);
	test_rmdir(dir);
}

static void summary_opens_regular_files_only(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_criu_summary s;
	char *dir = test_mkdir();
	cleanup_free char *fifo = dmig_asprintf("%s/inventory.img", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_fails(dmig_criu_image_summary(dir, &s, &err), err, EBADMSG);
	test_rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inventory),
		cmocka_unit_test(pstree),
		cmocka_unit_test(pagemap),
		cmocka_unit_test(mm),
		cmocka_unit_test(stats),
		cmocka_unit_test(cut_files),
		cmocka_unit_test(another_kind_is_refused),
		cmocka_unit_test(impossible_runs_are_refused),
		cmocka_unit_test(summary),
		cmocka_unit_test(summary_opens_regular_files_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
