/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "support/test.h"
#include "unit/fs/memory.h"

/* How a name is reached, with openat2(2) and without; the table of hard links. Needs no root. */

static void reach(int root)
{
	static const struct {
		const char *path;
		int result;
	} cases[] = {
		{"", 0},
		{"a", 0},
		{"a/b", 0},
		{"a/b/c", -ENOENT},
		{"x", -ENOENT},
		{"a/file", -ENOTDIR},
		{"a/file/x", -ENOTDIR},
		{"link", -ENOTDIR},
		{"link/b", -ENOTDIR},
		{"a/up", -ENOTDIR},
		{"..", -EXDEV},
		{"a/../..", -EXDEV},
		{"proc", -ENOTDIR},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = dmig_fs__open_folder(root, cases[i].path, DMIG_FS_STAY);
		if ((fd < 0 ? fd : 0) != cases[i].result)
			fail_msg("%s: %d instead of %d", cases[i].path, fd, cases[i].result);
		if (fd >= 0)
			close(fd);
	}
}

static void nothing_leaves_the_root(void **state)
{
	(void)state;
	char *base = test_mkdir();
	int root = open(base, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(root, "a", 0755), 0);
	assert_int_equal(mkdirat(root, "a/b", 0755), 0);
	assert_int_equal(symlinkat("a", root, "link"), 0);
	assert_int_equal(symlinkat("../..", root, "a/up"), 0);
	assert_int_equal(symlinkat("/proc/self/root", root, "proc"), 0);
	close(openat(root, "a/file", O_CREAT | O_WRONLY, 0600));
	int by_path = open(base, O_PATH | O_DIRECTORY);
	for (int i = 0; i < 2; i++) {
		dmig_fs__no_openat2 = i;
		reach(root);
		reach(by_path);
	}
	dmig_fs__no_openat2 = false;
	close(by_path);
	close(root);
	test_rmdir(base);
}

static void parents_are_kept_open(void **state)
{
	(void)state;
	char *base = test_mkdir();
	const char *name;
	struct dmig_fs__parent p;
	int root = open(base, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(root, "a", 0755), 0);
	assert_int_equal(mkdirat(root, "ab", 0755), 0);
	dmig_fs__parent_init(&p, root);
	assert_int_equal(dmig_fs__parent_of(&p, "a/x", &name), 0);
	assert_string_equal(name, "x");
	int fd = p.fd;
	assert_int_equal(dmig_fs__parent_of(&p, "a/y", &name), 0);
	assert_int_equal(p.fd, fd);
	assert_string_equal(p.path, "a");
	assert_int_equal(dmig_fs__parent_of(&p, "ab/y", &name), 0);
	assert_string_equal(p.path, "ab");
	assert_int_equal(dmig_fs__parent_of(&p, "z", &name), 0);
	assert_string_equal(p.path, "");
	assert_string_equal(name, "z");
	assert_int_equal(dmig_fs__parent_of(&p, "no/y", &name), -ENOENT);
	assert_int_equal(dmig_fs__parent_of(&p, "no/y", &name), -ENOENT);
	assert_int_equal(dmig_fs__parent_of(&p, "a/y", &name), 0);
	dmig_fs__parent_close(&p);
	close(root);
	test_rmdir(base);
}

static void first_names_are_found(void **state)
{
	(void)state;
	char path[32];
	struct dmig_fs__links *l = dmig_fs__links_new();
	assert_null(dmig_fs__links_find(l, 1, 1));
	for (uint64_t i = 0; i < 5000; i++) {
		snprintf(path, sizeof(path), "p%lu", i);
		assert_int_equal(dmig_fs__links_add(l, i % 3, i, path), 0);
	}
	assert_int_equal(dmig_fs__links_add(l, 0, 3, "again"), -EEXIST);
	for (uint64_t i = 0; i < 5000; i++) {
		snprintf(path, sizeof(path), "p%lu", i);
		assert_string_equal(dmig_fs__links_find(l, i % 3, i), path);
		assert_null(dmig_fs__links_find(l, i % 3 + 1, i));
	}
	dmig_fs__links_free(l);
	dmig_fs__links_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_leaves_the_root),
		cmocka_unit_test(parents_are_kept_open),
		cmocka_unit_test(first_names_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
