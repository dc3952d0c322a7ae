/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "support/test.h"
#include "unit/fs/memory.h"
#include "unit/fs/place.h"

/* A peer that sends what no sender of ours would: nothing outside of the tree changes, and the error says
 * why. */

#define ROOT                                                                                                 \
	{                                                                                                    \
		.type = DMIG_ENTRY_FOLDER, .path = "", .mode = 0755                                          \
	}
#define FOLDER(p)                                                                                            \
	{                                                                                                    \
		.type = DMIG_ENTRY_FOLDER, .path = p, .mode = 0755                                           \
	}
#define LINK(p, t)                                                                                           \
	{                                                                                                    \
		.type = DMIG_ENTRY_SYMLINK, .path = p, .target = t, .mode = 0777                             \
	}
#define EMPTY(p)                                                                                             \
	{                                                                                                    \
		.type = DMIG_ENTRY_FILE, .path = p, .mode = 0666                                             \
	}
#define HARDLINK(p, t)                                                                                       \
	{                                                                                                    \
		.type = DMIG_ENTRY_HARDLINK, .path = p, .hardlink = t                                        \
	}
#define WHITEOUT(p)                                                                                          \
	{                                                                                                    \
		.type = DMIG_ENTRY_WHITEOUT, .path = p                                                       \
	}

/* Entries and what becomes of them. `outside` lies beside the tree with one file in it. */
static const struct attack {
	struct dmig_wire_entry entries[6];
	int n, result;
	bool overlay;
} attacks[] = {
	{{ROOT, LINK("a", "../outside"), EMPTY("a/new")}, 3, -ENOTDIR, false},
	{{ROOT, LINK("a", "../outside"), FOLDER("a/new")}, 3, -ENOTDIR, true},
	{{ROOT, LINK("a", "../outside"), LINK("a/new", "x")}, 3, -ENOTDIR, false},
	{{ROOT, LINK("a", "../outside"), WHITEOUT("a/file")}, 3, -ENOTDIR, true},
	{{ROOT, LINK("a", "../outside"), HARDLINK("b", "a/file")}, 3, -ENOTDIR, false},
	{{ROOT, LINK("a", "../outside/file"), HARDLINK("b", "a"), EMPTY("b")}, 4, 0, false},
	/* A folder whose times are due at the end has become a link by then. */
	{{ROOT, FOLDER("a"), FOLDER("a/file"), LINK("a", "../outside")}, 4, -ENOTDIR, false},
	{{ROOT, FOLDER("a"), LINK("a", "../outside")}, 3, 0, false},
	{{ROOT, FOLDER("a"), EMPTY("a/x"), LINK("a", "../outside"), EMPTY("a/y")}, 5, -ENOTDIR, false},
	/* The folder of what is linked to stays open; then it is taken away under the receiver. */
	{{ROOT, FOLDER("a"), EMPTY("a/file"), HARDLINK("b", "a/file"), LINK("a", "../outside"),
		 HARDLINK("c", "a/file")},
		6, -ENOENT, false},
	{{ROOT, LINK("a", "../outside/file"), EMPTY("a")}, 3, 0, false},
	{{ROOT, LINK("a", "../outside/file"), EMPTY("a")}, 3, 0, true},
	{{ROOT, LINK("a", "../outside"), FOLDER("a")}, 3, 0, true},
	{{ROOT, WHITEOUT("a")}, 2, -EPROTO, false},
	{{ROOT, ROOT}, 2, -EPROTO, false},
	{{FOLDER("a")}, 1, -EPROTO, false},
	{{EMPTY("")}, 1, -EPROTO, false},
	{{ROOT, EMPTY("a/b")}, 2, -ENOENT, false},
	{{ROOT, HARDLINK("a", "b")}, 2, -ENOENT, false},
	{{ROOT, EMPTY("a"), EMPTY("a/b")}, 3, -ENOTDIR, false},
	{{ROOT, {.type = DMIG_ENTRY_FOLDER, .path = "a", .flags = DMIG_ENTRY_OPAQUE}}, 2, -EPROTO, false},
	{{ROOT, {.type = DMIG_ENTRY_FILE, .path = "a", .uid = ~0u}}, 2, -EPROTO, false},
};

static void expect_outside_untouched(int outside, const struct stat before[2])
{
	static const char *const names[] = {".", "file"};
	for (int i = 0; i < 2; i++) {
		struct stat now;
		assert_int_equal(fstatat(outside, names[i], &now, 0), 0);
		assert_int_equal(now.st_ctim.tv_sec, before[i].st_ctim.tv_sec);
		assert_int_equal(now.st_ctim.tv_nsec, before[i].st_ctim.tv_nsec);
		assert_int_equal(now.st_nlink, before[i].st_nlink);
		assert_int_equal(now.st_mode, before[i].st_mode);
	}
}

static void put_attack(struct memory *m, const struct attack *a)
{
	uint64_t files = 0;
	for (int i = 0; i < a->n; i++) {
		memory_put_entry(m, &a->entries[i]);
		if (a->entries[i].type != DMIG_ENTRY_FILE)
			continue;
		memory_put_entry_end(m, dmig_sum_of("", 0), 0);
		files++;
	}
	memory_put_end(m, (uint64_t)a->n, files, 0);
}

static void attack(struct place *p, int outside, int tree, const struct attack *a, size_t number)
{
	struct memory m = {0};
	struct dmig_tree_stats stats;
	struct stat before[2];
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_tree_recv_opts opts = {.overlay = a->overlay};
	(void)p;
	assert_int_equal(fstat(outside, &before[0]), 0);
	assert_int_equal(fstatat(outside, "file", &before[1], 0), 0);
	put_attack(&m, a);
	struct dmig_fs__receiver r = {.in = memory_input(&m), .opts = &opts, .stats = &stats};
	int result = dmig_fs__recv_tree(&r, tree, &err);
	if (result != a->result)
		fail_msg("attack %zu: %d instead of %d (%s)", number, result, a->result,
			err ? err->message : "no error");
	assert_true((result < 0) == (err != NULL));
	expect_outside_untouched(outside, before);
	memory_free(&m);
}

static void all_attacks(void)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		struct place p;
		place_new(&p, 1);
		assert_int_equal(mkdirat(p.to_fd, "outside", 0755), 0);
		place_file(p.to_fd, "outside/file", "keep", 4);
		assert_int_equal(mkdirat(p.to_fd, "tree", 0755), 0);
		int outside = openat(p.to_fd, "outside", O_RDONLY | O_DIRECTORY);
		int tree = openat(p.to_fd, "tree", O_RDONLY | O_DIRECTORY);
		attack(&p, outside, tree, &attacks[i], i);
		close(outside);
		close(tree);
		place_free(&p);
	}
}

static void links_lead_nowhere(void **state)
{
	(void)state;
	all_attacks();
}

static void links_lead_nowhere_without_openat2(void **state)
{
	(void)state;
	dmig_fs__no_openat2 = true;
	all_attacks();
	dmig_fs__no_openat2 = false;
}

/* A mount below the tree is neither entered nor emptied. */
static void mounts_are_not_entered(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct place p;
		struct memory m = {0};
		struct stat st;
		struct dmig_tree_stats stats;
		cleanup_error struct dmig_error *err = NULL;
		const struct attack a = {{ROOT, FOLDER("m"), EMPTY("m/x")}, 3, 0, false};
		const struct dmig_tree_recv_opts opts = {.keep_extra = i == 1};
		dmig_fs__no_openat2 = i == 1;
		place_new(&p, 1);
		assert_int_equal(mkdirat(p.to_fd, "m", 0755), 0);
		char *target = dmig_asprintf("%s/m", p.to);
		assert_int_equal(mount("tmpfs", target, "tmpfs", 0, NULL), 0);
		place_file(p.to_fd, "m/file", "keep", 4);
		put_attack(&m, &a);
		struct dmig_fs__receiver r = {.in = memory_input(&m), .opts = &opts, .stats = &stats};
		assert_true(dmig_fs__recv_tree(&r, p.to_fd, &err) < 0);
		assert_non_null(strstr(err->message, "/m"));
		assert_non_null(strstr(err->message, "mounted"));
		assert_int_equal(fstatat(p.to_fd, "m/file", &st, 0), 0);
		assert_int_equal(fstatat(p.to_fd, "m/x", &st, 0), -1);
		assert_int_equal(umount(target), 0);
		free(target);
		memory_free(&m);
		place_free(&p);
	}
	dmig_fs__no_openat2 = false;
}

int main(void)
{
	place_need_root();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_lead_nowhere),
		cmocka_unit_test(links_lead_nowhere_without_openat2),
		cmocka_unit_test(mounts_are_not_entered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
