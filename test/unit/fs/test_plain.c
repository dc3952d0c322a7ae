/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "support/test.h"
#include "unit/fs/compare.h"
#include "unit/fs/memory.h"
#include "unit/fs/place.h"

/* Trees of the plain kind: contents, names, links, types. */

static const struct dmig_tree_send_opts send_opts = {
	.kind = DMIG_STREAM_VOLUME, .name = "data", .compress = true};
static const struct dmig_tree_recv_opts recv_opts = {.sync = true};

static void move_and_compare(struct place *p, int flags)
{
	memory_move(p->from_fd, &send_opts, p->to_fd, &recv_opts);
	assert_int_equal(compare_trees(p->from, p->to, flags), 0);
}

static void empty_tree(void **state)
{
	(void)state;
	struct place p;
	place_new(&p, 0);
	assert_int_equal(fchmod(p.from_fd, 01777), 0);
	assert_int_equal(fchown(p.from_fd, 999, 998), 0);
	move_and_compare(&p, COMPARE_LINKS);
	place_free(&p);
}

static void contents_of_every_size(void **state)
{
	(void)state;
	static const long sizes[] = {0, 1, 255, 256, 4095, 4096, 4097, DMIG_FS_CHUNK - 1, DMIG_FS_CHUNK,
		DMIG_FS_CHUNK + 1, 3 * DMIG_FS_CHUNK + 17, 5000000};
	struct place p;
	char *data = calloc(1, 5000000);
	assert_non_null(data);
	place_new(&p, 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char name[32];
		snprintf(name, sizeof(name), "zeros-%ld", sizes[i]);
		memset(data, 0, 5000000);
		place_file(p.from_fd, name, data, sizes[i]);
		place_fill(data, (unsigned long)sizes[i], i);
		snprintf(name, sizeof(name), "noise-%ld", sizes[i]);
		place_file(p.from_fd, name, data, sizes[i]);
		for (long j = 0; j < sizes[i]; j++)
			data[j] &= 3;
		snprintf(name, sizeof(name), "packs-%ld", sizes[i]);
		place_file(p.from_fd, name, data, sizes[i]);
	}
	free(data);
	move_and_compare(&p, COMPARE_LINKS | COMPARE_BLOCKS);
	place_free(&p);
}

static void odd_names(void **state)
{
	(void)state;
	char longest[NAME_MAX + 1];
	memset(longest, 'n', NAME_MAX);
	longest[NAME_MAX] = '\0';
	const char *names[] = {"line\nbreak", "tab\tquote\"'", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8b",
		"not utf-8 \xff\xfe\x80", " ", "...", "..x", "-rf", "*", "back\\slash", "\x01\x1b[31m",
		longest};
	struct place p;
	place_new(&p, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		place_file(p.from_fd, names[i], names[i], (long)strlen(names[i]));
		char *folder = dmig_asprintf("d%.250s", names[i]);
		assert_int_equal(mkdirat(p.from_fd, folder, 0755), 0);
		char *below = dmig_asprintf("%s/%s", folder, names[i]);
		assert_int_equal(symlinkat(names[i], p.from_fd, below), 0);
		free(folder);
		free(below);
	}
	move_and_compare(&p, COMPARE_LINKS);
	place_free(&p);
}

static void every_type(void **state)
{
	(void)state;
	struct place p;
	place_new(&p,
		1); /* tmpfs knows no holes at the end of devices' xattrs; a disk is what volumes are on */
	assert_int_equal(mknodat(p.from_fd, "null", S_IFCHR | 0666, makedev(1, 3)), 0);
	assert_int_equal(mknodat(p.from_fd, "zero-zero", S_IFCHR | 0600, makedev(0, 0)), 0);
	assert_int_equal(mknodat(p.from_fd, "large", S_IFBLK | 0640, makedev(259, 0x12345)), 0);
	assert_int_equal(mknodat(p.from_fd, "fifo", S_IFIFO | 0622, 0), 0);
	assert_int_equal(mknodat(p.from_fd, "socket", S_IFSOCK | 0777, 0), 0);
	assert_int_equal(fchmodat(p.from_fd, "fifo", 0622, 0), 0);
	assert_int_equal(fchownat(p.from_fd, "fifo", 4000000000u, 7, 0), 0);
	assert_int_equal(symlinkat("../to/../nowhere", p.from_fd, "link"), 0);
	assert_int_equal(fchownat(p.from_fd, "link", 12, 34, AT_SYMLINK_NOFOLLOW), 0);
	char target[4096];
	memset(target, 't', sizeof(target));
	for (size_t i = 100; i < sizeof(target); i += 100)
		target[i] = '/';
	target[4095] = '\0';
	assert_int_equal(symlinkat(target, p.from_fd, "long link"), 0);
	struct timespec old[2] = {{.tv_sec = 1, .tv_nsec = 2}, {.tv_sec = -3, .tv_nsec = 999999999}};
	const char *names[] = {"null", "large", "fifo", "socket", "link", "long link"};
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(utimensat(p.from_fd, names[i], old, AT_SYMLINK_NOFOLLOW), 0);
	move_and_compare(&p, COMPARE_LINKS);
	place_free(&p);
}

static void hard_links(void **state)
{
	(void)state;
	struct place p;
	place_new(&p, 1);
	assert_int_equal(mkdirat(p.from_fd, "a", 0755), 0);
	assert_int_equal(mkdirat(p.from_fd, "b", 0755), 0);
	place_file(p.from_fd, "a/file", "once", 4);
	place_file(p.from_fd, "other", "else", 4);
	assert_int_equal(linkat(p.from_fd, "a/file", p.from_fd, "b/second", 0), 0);
	assert_int_equal(linkat(p.from_fd, "a/file", p.from_fd, "third", 0), 0);
	assert_int_equal(symlinkat("x", p.from_fd, "symlink"), 0);
	assert_int_equal(linkat(p.from_fd, "symlink", p.from_fd, "b/same symlink", 0), 0);
	assert_int_equal(mknodat(p.from_fd, "fifo", S_IFIFO | 0600, 0), 0);
	assert_int_equal(linkat(p.from_fd, "fifo", p.from_fd, "a/same fifo", 0), 0);
	for (int i = 0; i < 600; i++) { /* the table has to grow */
		char name[32], second[32];
		snprintf(name, sizeof(name), "a/n%d", i);
		snprintf(second, sizeof(second), "b/m%d", 599 - i);
		place_file(p.from_fd, name, name, 5);
		assert_int_equal(linkat(p.from_fd, name, p.from_fd, second, 0), 0);
	}
	/* One name of an inode may lie outside of the tree. */
	char *outside = dmig_asprintf("%s/outside", p.base);
	assert_int_equal(linkat(p.from_fd, "other", AT_FDCWD, outside, 0), 0);
	free(outside);
	memory_move(p.from_fd, &send_opts, p.to_fd, &recv_opts);
	assert_int_equal(unlinkat(AT_FDCWD, (outside = dmig_asprintf("%s/outside", p.base)), 0), 0);
	free(outside);
	assert_int_equal(compare_trees(p.from, p.to, COMPARE_LINKS), 0);
	place_free(&p);
}

static void sparse_files_cost_their_data(void **state)
{
	(void)state;
	struct place p;
	struct memory m = {0};
	struct dmig_tree_stats sent, received, measured;
	cleanup_error struct dmig_error *err = NULL;
	place_new(&p, 0);
	int fd = openat(p.from_fd, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 4l << 30), 0);
	assert_int_equal(dmig_pwrite_full(fd, "begin", 5, 0), 0);
	assert_int_equal(dmig_pwrite_full(fd, "middle", 6, (2ul << 30) + 5), 0);
	close(fd);
	fd = openat(p.from_fd, "only a hole", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 1l << 40), 0);
	close(fd);
	assert_ok(memory_send(&m, p.from_fd, &send_opts, &sent, &err), err);
	assert_true(m.len < 65536);
	assert_ok(memory_recv(&m, p.to_fd, &recv_opts, &received, &err), err);
	assert_int_equal(compare_trees(p.from, p.to, COMPARE_LINKS | COMPARE_BLOCKS), 0);
	assert_ok(dmig_tree_measure(p.from_fd, true, &measured, &err), err);
	assert_int_equal(measured.files, sent.files);
	assert_int_equal(measured.entries, sent.entries);
	assert_int_equal(measured.bytes, sent.bytes);
	memory_free(&m);
	place_free(&p);
}

/* Deeper than there may be open files. */
#define DEPTH 1000
static void deep_tree(void **state)
{
	(void)state;
	struct place p;
	struct rlimit limit;
	place_new(&p, 0);
	int fd = dup(p.from_fd);
	for (int i = 0; i < DEPTH; i++) {
		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	place_file(fd, "f", "deep", 4);
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	rlim_t before = limit.rlim_cur;
	limit.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	memory_move(p.from_fd, &send_opts, p.to_fd, &recv_opts);
	memory_move(p.from_fd, &send_opts, p.to_fd, &recv_opts); /* what is in the way is as deep */
	limit.rlim_cur = before;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	char path[2 * DEPTH + 2];
	for (int i = 0; i < DEPTH; i++)
		memcpy(path + 2 * i, "d/", 2);
	memcpy(path + 2 * DEPTH, "f", 2);
	struct stat st;
	assert_int_equal(fstatat(p.to_fd, path, &st, 0), 0);
	assert_int_equal(st.st_size, 4);
	/* rm -r of the test itself has no such care. */
	cleanup_error struct dmig_error *err = NULL;
	assert_ok(dmig_fs__empty(p.from_fd, &err), err);
	assert_ok(dmig_fs__empty(p.to_fd, &err), err);
	place_free(&p);
}

static void make_old_tree(struct place *p)
{
	assert_int_equal(mkdirat(p->to_fd, "extra", 0755), 0);
	place_file(p->to_fd, "extra/file", "x", 1);
	place_file(p->to_fd, "same", "old contents, longer", 20);
	place_file(p->to_fd, "was a file", "x", 1);
	assert_int_equal(mkdirat(p->to_fd, "was a folder", 0755), 0);
	place_file(p->to_fd, "was a folder/file", "x", 1);
	assert_int_equal(mkdirat(p->to_fd, "common", 0755), 0);
	place_file(p->to_fd, "common/extra", "x", 1);
	assert_int_equal(symlinkat("/", p->to_fd, "was a link"), 0);

	place_file(p->from_fd, "same", "new", 3);
	place_file(p->from_fd, "was a folder", "now a file", 10);
	assert_int_equal(mkdirat(p->from_fd, "was a file", 0700), 0);
	assert_int_equal(mkdirat(p->from_fd, "was a link", 0700), 0);
	assert_int_equal(mkdirat(p->from_fd, "common", 0711), 0);
	place_file(p->from_fd, "common/file", "y", 1);
}

static void extra_names_go(void **state)
{
	(void)state;
	struct place p;
	place_new(&p, 0);
	make_old_tree(&p);
	move_and_compare(&p, COMPARE_LINKS);
	place_free(&p);
}

static void extra_names_stay_if_asked(void **state)
{
	(void)state;
	struct place p;
	struct stat st;
	const struct dmig_tree_recv_opts keep = {.keep_extra = true};
	place_new(&p, 0);
	make_old_tree(&p);
	memory_move(p.from_fd, &send_opts, p.to_fd, &keep);
	assert_int_equal(fstatat(p.to_fd, "extra/file", &st, 0), 0);
	assert_int_equal(fstatat(p.to_fd, "common/extra", &st, 0), 0);
	assert_int_equal(unlinkat(p.to_fd, "extra/file", 0), 0);
	assert_int_equal(unlinkat(p.to_fd, "extra", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(p.to_fd, "common/extra", 0), 0);
	struct timespec times[2];
	for (int i = 0; i < 2; i++) { /* we have just touched these two */
		assert_int_equal(fstatat(p.from_fd, i ? "common" : ".", &st, 0), 0);
		times[0] = st.st_atim;
		times[1] = st.st_mtim;
		assert_int_equal(utimensat(p.to_fd, i ? "common" : ".", times, 0), 0);
	}
	assert_int_equal(compare_trees(p.from, p.to, COMPARE_LINKS), 0);
	place_free(&p);
}

static void other_filesystems_stay_out(void **state)
{
	(void)state;
	struct place p;
	struct stat st;
	struct dmig_tree_send_opts one = send_opts;
	place_new(&p, 0);
	assert_int_equal(mkdirat(p.from_fd, "mounted", 0755), 0);
	char *target = dmig_asprintf("%s/mounted", p.from);
	assert_int_equal(mount("tmpfs", target, "tmpfs", 0, NULL), 0);
	place_file(p.from_fd, "mounted/file", "x", 1);
	one.one_filesystem = true;
	memory_move(p.from_fd, &one, p.to_fd, &recv_opts);
	assert_int_equal(fstatat(p.to_fd, "mounted", &st, 0), 0);
	assert_int_equal(fstatat(p.to_fd, "mounted/file", &st, 0), -1);
	move_and_compare(&p, COMPARE_LINKS);
	assert_int_equal(umount2(target, MNT_DETACH), 0);
	free(target);
	place_free(&p);
}

static int count_calls(const struct dmig_tree_stats *stats, void *opaque)
{
	uint64_t *calls = opaque;
	assert_true(stats->bytes >= calls[1]);
	assert_true(stats->bytes - calls[1] <= DMIG_FS_PROGRESS_STEP);
	calls[0]++;
	calls[1] = stats->bytes;
	return 0;
}

static void progress_is_told(void **state)
{
	(void)state;
	struct place p;
	uint64_t sender[2] = {0}, receiver[2] = {0};
	struct dmig_tree_send_opts s = send_opts;
	struct dmig_tree_recv_opts r = recv_opts;
	place_new(&p, 0);
	char *data = calloc(1, 5 << 20);
	place_file(p.from_fd, "large", data, 5 << 20);
	place_file(p.from_fd, "small", data, 5);
	free(data);
	s.progress = count_calls;
	s.opaque = sender;
	r.progress = count_calls;
	r.opaque = receiver;
	memory_move(p.from_fd, &s, p.to_fd, &r);
	assert_in_range(sender[0], 6, 8);
	assert_in_range(receiver[0], 6, 8);
	assert_int_equal(sender[1], (5 << 20) + 5);
	assert_int_equal(receiver[1], (5 << 20) + 5);
	place_free(&p);
}

int main(void)
{
	place_need_root();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_tree),
		cmocka_unit_test(contents_of_every_size),
		cmocka_unit_test(odd_names),
		cmocka_unit_test(every_type),
		cmocka_unit_test(hard_links),
		cmocka_unit_test(sparse_files_cost_their_data),
		cmocka_unit_test(deep_tree),
		cmocka_unit_test(extra_names_go),
		cmocka_unit_test(extra_names_stay_if_asked),
		cmocka_unit_test(other_filesystems_stay_out),
		cmocka_unit_test(progress_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
