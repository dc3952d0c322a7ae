/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "util/cleanup.h"

static char *folder;

static int make_folder(void **state)
{
	(void)state;
	folder = test_mkdir();
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	test_rmdir(folder);
	return 0;
}

static char *in_folder(const char *name)
{
	char *path = dmig_asprintf("%s/%s", folder, name);
	assert_non_null(path);
	return path;
}

static void full_reads_and_writes(void **state)
{
	(void)state;
	int p[2];
	char buf[8] = {0};
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(dmig_write_full(p[1], "abcd", 4), 0);
	assert_int_equal(dmig_read_full(p[0], buf, 3), 0);
	assert_string_equal(buf, "abc");
	close(p[1]);
	assert_int_equal(dmig_read_full(p[0], buf, 2), -EPIPE);
	assert_int_equal(dmig_read_full(p[0], buf, 0), 0);
	close(p[0]);
	assert_int_equal(dmig_read_full(p[0], buf, 1), -EBADF);
	assert_int_equal(dmig_write_full(-1, "x", 1), -EBADF);
}

static void small_files(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *path = in_folder("file"), *data = NULL, *more = NULL;
	struct stat st;
	size_t len;
	mode_t saved = umask(0);
	assert_ok(dmig_write_file_atomic(path, "he\0llo", 6, 0640, &err), err);
	umask(saved);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(dmig_read_file(path, 6, &data, &len), 0);
	assert_int_equal(len, 6);
	assert_memory_equal(data, "he\0llo", 7);
	assert_int_equal(dmig_read_file(path, 5, &more, NULL), -EFBIG);
	assert_null(more);
	assert_int_equal(dmig_read_file("/proc/self/status", 1 << 16, &more, NULL), 0);
	assert_non_null(strstr(more, "Pid:"));
	cleanup_free char *none = in_folder("no/file");
	assert_fails(dmig_write_file_atomic(none, "x", 1, 0600, &err), err, ENOENT);
}

static void atomic_write_leaves_nothing_behind(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *path = in_folder("target"), *dir = in_folder("only");
	assert_int_equal(mkdir(dir, 0700), 0);
	cleanup_free char *inside = in_folder("only/target");
	assert_int_equal(mkdir(inside, 0700), 0); /* rename over a folder fails */
	assert_true(dmig_write_file_atomic(inside, "x", 1, 0600, &err) < 0);
	assert_int_equal(rmdir(inside), 0);
	assert_int_equal(rmdir(dir), 0); /* so it is empty */
}

static void folders(void **state)
{
	(void)state;
	cleanup_free char *deep = in_folder("a/b/c"), *top = in_folder("a"), *file = in_folder("a/b/file");
	cleanup_free char *outside = in_folder("outside"), *link = in_folder("a/link");
	assert_int_equal(dmig_mkdir_p(deep, 0700), 0);
	assert_int_equal(dmig_mkdir_p(deep, 0700), 0);
	assert_int_equal(dmig_mkdir_p("", 0700), -ENAMETOOLONG);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(open(outside, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(symlink(folder, link), 0);
	assert_int_equal(dmig_remove_tree(top), 0);
	assert_int_equal(access(top, F_OK), -1);
	assert_int_equal(access(outside, F_OK), 0); /* the link was not followed */
	assert_int_equal(dmig_remove_tree(top), 0);
}

static void knobs(void **state)
{
	(void)state;
	cleanup_free char *path = in_folder("knob"), *data = NULL;
	assert_int_equal(dmig_write_knob(path, "1"), -ENOENT);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(dmig_write_knob(path, "1"), 0);
	assert_int_equal(dmig_read_file(path, 10, &data, NULL), 0);
	assert_string_equal(data, "1");
}

static void poll_and_clock(void **state)
{
	(void)state;
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	int64_t start = dmig_now_ms();
	assert_int_equal(dmig_poll_one(p[0], POLLIN, 0), 0);
	assert_int_equal(dmig_poll_one(p[0], POLLIN, 20), 0);
	assert_true(dmig_now_ms() - start >= 19);
	assert_int_equal(dmig_write_full(p[1], "x", 1), 0);
	assert_int_equal(dmig_poll_one(p[0], POLLIN, -1), 1);
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_reads_and_writes),
		cmocka_unit_test(small_files),
		cmocka_unit_test(atomic_write_leaves_nothing_behind),
		cmocka_unit_test(folders),
		cmocka_unit_test(knobs),
		cmocka_unit_test(poll_and_clock),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
