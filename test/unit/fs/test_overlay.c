/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "support/test.h"
#include "unit/fs/churn.h"
#include "unit/fs/compare.h"
#include "unit/fs/memory.h"
#include "unit/fs/place.h"

/* An upper directory, applied through a merged tree over the same lower layers, gives the same merged tree.
 */

static const struct dmig_tree_send_opts send_opts = {
	.kind = DMIG_STREAM_ROOTFS, .name = "", .overlay = true, .compress = true};
static const struct dmig_tree_recv_opts recv_opts = {.overlay = true};

/* Sides share their lower layers: lower2 is below lower1. */
struct side {
	char *upper, *work, *merged;
	int upper_fd, merged_fd;
};
struct world {
	struct place place;
	char *lower1, *lower2;
	struct side sides[3];
};

static char *folder(const char *base, const char *name, int i)
{
	char *path = dmig_asprintf("%s/%s%d", base, name, i);
	assert_non_null(path);
	assert_int_equal(mkdir(path, 0755), 0);
	return path;
}

static int open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void mount_side(struct world *w, struct side *s, const char *more)
{
	char *options = dmig_asprintf("lowerdir=%s:%s,upperdir=%s,workdir=%s,index=off%s", w->lower1,
		w->lower2, s->upper, s->work, more);
	if (mount("overlay", s->merged, "overlay", 0, options) < 0)
		fail_msg("overlay with %s: %s", options, strerror(errno));
	free(options);
	s->merged_fd = open_folder(s->merged);
}

static void unmount_side(struct side *s)
{
	close(s->merged_fd);
	assert_int_equal(umount(s->merged), 0);
}

static void world_new_with(struct world *w, int on_disk, unsigned seed, const char *more)
{
	place_new(&w->place, on_disk);
	const char *base = w->place.from;
	w->lower1 = folder(base, "lower", 1);
	w->lower2 = folder(base, "lower", 2);
	int fd = open_folder(w->lower2);
	churn(fd, seed, 400);
	close(fd);
	/* The upper one of the lower layers is made as an image's layer is: as an overlay. */
	char *work = folder(base, "work", 9), *merged = folder(base, "merged", 9);
	char *options = dmig_asprintf(
		"lowerdir=%s,upperdir=%s,workdir=%s,index=off%s", w->lower2, w->lower1, work, more);
	assert_int_equal(mount("overlay", merged, "overlay", 0, options), 0);
	fd = open_folder(merged);
	churn(fd, seed + 1, 200);
	close(fd);
	assert_int_equal(umount(merged), 0);
	free(options);
	free(work);
	free(merged);
	for (int i = 0; i < 3; i++) {
		struct side *s = &w->sides[i];
		s->upper = folder(base, "upper", i);
		s->work = folder(base, "work", i);
		s->merged = folder(base, "merged", i);
		s->upper_fd = open_folder(s->upper);
		mount_side(w, s, more);
	}
}

static void world_new(struct world *w, int on_disk, unsigned seed)
{
	world_new_with(w, on_disk, seed, "");
}

static void world_free(struct world *w)
{
	for (int i = 0; i < 3; i++) {
		struct side *s = &w->sides[i];
		unmount_side(s);
		close(s->upper_fd);
		free(s->upper);
		free(s->work);
		free(s->merged);
	}
	free(w->lower1);
	free(w->lower2);
	place_free(&w->place);
}

static void expect_same(struct world *w, int a, int b, unsigned seed)
{
	int differences = compare_trees(w->sides[a].merged, w->sides[b].merged, COMPARE_LINKS);
	if (differences)
		fail_msg("seed %u: %d differences between %d and %d", seed, differences, a, b);
}

static void move(struct world *w, int from, int to)
{
	memory_move(w->sides[from].upper_fd, &send_opts, w->sides[to].merged_fd, &recv_opts);
}

/* There, the same again, still so after a new mount, and on from there. */
static void random_round(int on_disk, unsigned seed)
{
	struct world w;
	world_new(&w, on_disk, seed);
	churn(w.sides[0].merged_fd, seed + 2, 400);
	move(&w, 0, 1);
	expect_same(&w, 0, 1, seed);
	move(&w, 0, 1);
	expect_same(&w, 0, 1, seed);
	unmount_side(&w.sides[1]);
	mount_side(&w, &w.sides[1], "");
	expect_same(&w, 0, 1, seed);
	churn(w.sides[1].merged_fd, seed + 3, 200);
	move(&w, 1, 2);
	expect_same(&w, 1, 2, seed);
	world_free(&w);
}

static void random_changes_on_tmpfs(void **state)
{
	(void)state;
	for (unsigned seed = 100; seed < 130; seed++)
		random_round(0, seed);
}

static void random_changes_on_disk(void **state)
{
	(void)state;
	for (unsigned seed = 1000; seed < 1010; seed++)
		random_round(1, seed);
}

static void file(struct world *w, int side, const char *name, const char *text)
{
	place_file(w->sides[side].merged_fd, name, text, (long)strlen(text));
}

/* Each known case on its own; the lower tree is random, its names do not start with "x". */
static void known_cases(void **state)
{
	(void)state;
	struct world w;
	world_new(&w, 1, 7);
	for (int i = 0; i < 3; i++)
		unmount_side(&w.sides[i]);
	int low = open_folder(w.lower2);
	static const char *const folders[] = {"x", "x/opaque", "x/opaque/sub", "x/emptied", "x/becomes file",
		"x/gone", "x/gone/deep", "x/kept", "x/deep", "x/deep/er"};
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		assert_int_equal(mkdirat(low, folders[i], 0755), 0);
	static const char *const files[] = {"x/opaque/old", "x/opaque/sub/old", "x/emptied/old",
		"x/becomes file/old", "x/gone/old", "x/gone/deep/old", "x/kept/one", "x/kept/two",
		"x/becomes folder", "x/becomes link", "x/chmod", "x/renamed over", "x/deep/er/attributes",
		"x/linked"};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		place_file(low, files[i], files[i], (long)strlen(files[i]));
	int kept = openat(low, "x/kept", O_RDONLY | O_DIRECTORY);
	assert_int_equal(fsetxattr(kept, "user.lower", "y", 1, 0), 0);
	close(kept);
	close(low);
	for (int i = 0; i < 3; i++)
		mount_side(&w, &w.sides[i], "");

	int m = w.sides[0].merged_fd;
	cleanup_error struct dmig_error *err = NULL;
	int x = openat(m, "x", O_RDONLY | O_DIRECTORY);
	assert_ok(dmig_fs__remove(x, "opaque", "x/opaque", &err), err);
	assert_int_equal(mkdirat(x, "opaque", 0700), 0);
	file(&w, 0, "x/opaque/new", "new");
	assert_int_equal(unlinkat(x, "emptied/old", 0), 0);
	assert_ok(dmig_fs__remove(x, "becomes file", "x/becomes file", &err), err);
	file(&w, 0, "x/becomes file", "file");
	assert_ok(dmig_fs__remove(x, "gone", "x/gone", &err), err);
	assert_int_equal(unlinkat(x, "becomes folder", 0), 0);
	assert_int_equal(mkdirat(x, "becomes folder", 0711), 0);
	file(&w, 0, "x/becomes folder/new", "new");
	assert_int_equal(unlinkat(x, "becomes link", 0), 0);
	assert_int_equal(symlinkat("kept", x, "becomes link"), 0);
	assert_int_equal(fchmodat(x, "chmod", 04711, 0), 0);
	file(&w, 0, "x/temporary", "renamed");
	assert_int_equal(renameat(x, "temporary", x, "renamed over"), 0);
	assert_int_equal(fchownat(x, "deep/er/attributes", 5, 6, 0), 0);
	assert_int_equal(linkat(x, "linked", x, "kept/link", 0), 0);
	assert_int_equal(unlinkat(x, "kept/two", 0), 0);
	kept = openat(x, "kept", O_RDONLY | O_DIRECTORY);
	assert_int_equal(fremovexattr(kept, "user.lower"), 0);
	close(kept);
	struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 6, .tv_nsec = 7}};
	assert_int_equal(utimensat(x, "deep", times, 0), 0);
	close(x);
	assert_int_equal(fchmod(m, 0711), 0);
	assert_int_equal(fchown(m, 3, 4), 0);

	assert_ok(dmig_tree_check_upper(w.sides[0].upper_fd, false, &err), err);
	move(&w, 0, 1);
	expect_same(&w, 0, 1, 7);
	world_free(&w);
}

/* Docker's own names in the merged tree: what is bound over them in another mount namespace stays there. */
static void empty_files_keep_their_inode(void **state)
{
	(void)state;
	struct world w;
	struct stat before, after;
	world_new(&w, 0, 11);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mkdirat(w.sides[i].merged_fd, "etc", 0755), 0);
		file(&w, i, "etc/hosts", "");
	}
	assert_int_equal(fchmodat(w.sides[0].merged_fd, "etc/hosts", 0600, 0), 0);
	char *hosts = dmig_asprintf("%s/etc/hosts", w.sides[1].merged);
	assert_int_equal(setxattr(hosts, "trusted.extra", "", 0, 0), 0);
	free(hosts);
	assert_int_equal(fstatat(w.sides[1].merged_fd, "etc/hosts", &before, 0), 0);
	move(&w, 0, 1);
	assert_int_equal(fstatat(w.sides[1].merged_fd, "etc/hosts", &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	expect_same(&w, 0, 1, 11);
	world_free(&w);
}

static void busy_names_are_reported(void **state)
{
	(void)state;
	struct world w;
	struct memory m = {0};
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	world_new(&w, 0, 12);
	for (int i = 0; i < 2; i++)
		file(&w, i, "xbound", i ? "destination" : "source");
	char *target = dmig_asprintf("%s/xbound", w.sides[1].merged);
	assert_int_equal(mount("/dev/null", target, NULL, MS_BIND, NULL), 0);
	assert_ok(memory_send(&m, w.sides[0].upper_fd, &send_opts, &stats, &err), err);
	assert_int_equal(memory_recv(&m, w.sides[1].merged_fd, &recv_opts, &stats, &err), -EBUSY);
	assert_non_null(strstr(err->message, "/xbound"));
	assert_non_null(strstr(err->message, "mounted"));
	assert_int_equal(umount(target), 0);
	free(target);
	memory_free(&m);
	world_free(&w);
}

static void set_mark(struct world *w, const char *mark, const char *value)
{
	assert_int_equal(mkdirat(w->sides[0].upper_fd, "xmarked", 0755) && errno != EEXIST, 0);
	int fd = openat(w->sides[0].upper_fd, "xmarked", O_RDONLY | O_DIRECTORY);
	assert_int_equal(fsetxattr(fd, mark, value, strlen(value), 0), 0);
	close(fd);
}

/* What the upper directory alone does not say is refused, before the freeze if somebody asks. */
static void foreign_marks_are_refused(void **state)
{
	(void)state;
	static const char *const marks[] = {"redirect", "metacopy", "nlink", "opaque"};
	for (size_t i = 0; i < 4; i++) {
		struct world w;
		struct memory m = {0};
		struct dmig_tree_stats stats;
		cleanup_error struct dmig_error *err = NULL;
		char name[64];
		world_new(&w, 0, 13);
		snprintf(name, sizeof(name), "trusted.overlay.%s", marks[i]);
		set_mark(&w, name, "x");
		assert_fails(dmig_tree_check_upper(w.sides[0].upper_fd, false, &err), err, EOPNOTSUPP);
		assert_int_equal(memory_send(&m, w.sides[0].upper_fd, &send_opts, &stats, &err), -EOPNOTSUPP);
		assert_int_equal(err->class, DMIG_ERR_REFUSED);
		assert_non_null(strstr(err->message, "/xmarked"));
		memory_free(&m);
		world_free(&w);
	}
}

/* An overlay inside the container: our kernel hides its marks under longer names (6.7 and later). */
static void marks_inside_are_kept(void **state)
{
	(void)state;
	struct world w;
	world_new(&w, 0, 14);
	int m = w.sides[0].merged_fd;
	assert_int_equal(mkdirat(m, "xinner", 0755), 0);
	int fd = openat(m, "xinner", O_RDONLY | O_DIRECTORY);
	if (fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0) == 0) {
		assert_int_equal(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0), 0);
		move(&w, 0, 1);
		expect_same(&w, 0, 1, 14);
	}
	close(fd);
	world_free(&w);
}

static void user_marks(void **state)
{
	(void)state;
	struct world w;
	struct dmig_tree_send_opts opts = send_opts;
	world_new_with(&w, 1, 15, ",userxattr");
	churn(w.sides[0].merged_fd, 16, 600);
	opts.userxattr = true;
	memory_move(w.sides[0].upper_fd, &opts, w.sides[1].merged_fd, &recv_opts);
	expect_same(&w, 0, 1, 15);
	world_free(&w);
}

int main(void)
{
	place_need_root();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_cases),
		cmocka_unit_test(random_changes_on_tmpfs),
		cmocka_unit_test(random_changes_on_disk),
		cmocka_unit_test(empty_files_keep_their_inode),
		cmocka_unit_test(busy_names_are_reported),
		cmocka_unit_test(foreign_marks_are_refused),
		cmocka_unit_test(marks_inside_are_kept),
		cmocka_unit_test(user_marks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
