/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "runtime/placeholder.h"
#include "runtime/record.h"
#include "runtime/remains.h"
#include "util/cleanup.h"

static char *folder;

static int move_folders(void **state)
{
	(void)state;
	folder = test_mkdir();
	setenv("DMIGRATE_STATE_DIR", folder, 1);
	setenv("DMIGRATE_RUN_DIR", folder, 1);
	return 0;
}

static int remove_folders(void **state)
{
	(void)state;
	test_rmdir(folder);
	return 0;
}

static void record_comes_and_goes(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	assert_int_equal(dmig_target_record_state("c1"), -ENOENT);
	assert_ok(dmig_target_record_write("c1", "0123456789abcdef", &err), err);
	assert_int_equal(dmig_target_record_state("c1"), 0);
	cleanup_free char *path = dmig_target_record_path("c1");
	cleanup_free char *text = NULL;
	assert_int_equal(dmig_read_file(path, 100, &text, NULL), 0);
	assert_string_equal(text, "uncommitted 0123456789abcdef\n");
	assert_int_equal(dmig_target_record_remove("c1"), 0);
	assert_int_equal(dmig_target_record_remove("c1"), 0);
	assert_int_equal(dmig_target_record_state("c1"), -ENOENT);
}

static void names_stay_in_their_folder(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	static const char *const bad[] = {"", ".", "..", "a/b", "../x", "a b", "a\nb"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(dmig_target_id_valid(bad[i]));
		assert_null(dmig_target_record_path(bad[i]));
		assert_false(dmig_target_is_recorded(bad[i]));
		assert_fails(dmig_target_record_write(bad[i], "m", &err), err, EINVAL);
	}
	assert_true(dmig_target_id_valid("Az09_.-+"));
}

static void info_survives(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_target_info struct dmig_target_info out = {0};
	char root[] = "/r", bundle[] = "/b with blank", run_dir[] = "/run/x", cgroup[] = "/c",
	     two_lines[] = "/a\npid 1";
	struct dmig_target_info in = {.root = root,
		.bundle = bundle,
		.run_dir = run_dir,
		.cgroup = cgroup,
		.pid = 77,
		.start = 123456789012ull};
	assert_ok(dmig_target_record_write("c2", "m", &err), err);
	assert_ok(dmig_target_info_write("c2", &in, &err), err);
	assert_ok(dmig_target_info_read("c2", &out, &err), err);
	assert_string_equal(out.root, in.root);
	assert_string_equal(out.bundle, in.bundle);
	assert_string_equal(out.run_dir, in.run_dir);
	assert_string_equal(out.cgroup, in.cgroup);
	assert_int_equal(out.pid, 77);
	assert_true(out.start == in.start);
	in.bundle = two_lines;
	assert_fails(dmig_target_info_write("c2", &in, &err), err, EINVAL);
	assert_int_equal(dmig_target_record_remove("c2"), 0);
	assert_fails(dmig_target_info_read("c2", &out, &err), err, ENOENT);
}

static void damaged_info_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"root /r\n",
		"root r\nbundle /b\nrun_dir /x\npid 7\nstart 1\n",
		"root /r\nroot /s\nbundle /b\nrun_dir /x\npid 7\nstart 1\n",
		"root /r\nbundle /b\nrun_dir /x\npid 1\nstart 1\n",
		"root /r\nbundle /b\nrun_dir /x\npid -7\nstart 1\n",
		"root /r\nbundle /b\nrun_dir /x\npid 99999999999\nstart 1\n",
		"root /r\nbundle /b\nrun_dir /x\npid 7x\nstart 1\n",
		"root /r\nbundle /b\nrun_dir /x\npid 7\nstart 0\n",
		"pid\n",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dmig_target_info info = {0};
		char text[200];
		strcpy(text, bad[i]);
		assert_int_equal(dmig_target_info_parse(text, &info), -EINVAL);
	}
}

static void helper_file_is_locked_and_read(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_helper_note note = {.runc = 5, .start = 9}, out;
	assert_ok(dmig_target_record_write("c3", "m", &err), err);
	assert_int_equal(dmig_helper_read("c3", &out), -ENOENT);
	assert_int_equal(dmig_helper_wait_gone("c3", 0), 0);
	int fd = dmig_helper_open("c3");
	assert_true(fd >= 0);
	assert_int_equal(dmig_helper_open("c3"), -EBUSY);
	assert_int_equal(dmig_helper_read("c3", &out), 0);
	assert_int_equal(out.runc, 0);
	assert_int_equal(dmig_helper_write(fd, &note), 0);
	note.ended = true;
	note.status = 137;
	assert_int_equal(dmig_helper_write(fd, &note), 0);
	assert_int_equal(dmig_helper_read("c3", &out), 0);
	assert_true(out.ended && out.status == 137 && out.runc == 5 && out.start == 9 && !out.buried);
	assert_int_equal(dmig_helper_wait_gone("c3", 20), -ETIMEDOUT);
	close(fd);
	assert_int_equal(dmig_helper_wait_gone("c3", 1000), 0);
	dmig_target_record_remove("c3");
}

static void state_goes_aside_and_back(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *root = dmig_asprintf("%s/runc/moby/", folder);
	cleanup_free char *file = dmig_asprintf("%sc4/state.json", root);
	cleanup_free char *dir = dmig_asprintf("%sc4", root);
	cleanup_free char *aside = dmig_asprintf("%s/runc/.dmigrate-c4", folder);
	struct dmig_target_info info = {.root = root};
	assert_int_equal(dmig_mkdir_p(dir, 0700), 0);
	assert_ok(dmig_write_file_atomic(file, "P", 1, 0600, &err), err);
	assert_ok(dmig_state_put_back(&info, "c4", &err), err); /* nothing aside: nothing happens */
	assert_int_equal(access(file, F_OK), 0);
	assert_ok(dmig_state_aside(&info, "c4", &err), err);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(access(aside, F_OK), 0);
	/* A restore that broke off leaves its own. */
	assert_int_equal(dmig_mkdir_p(dir, 0700), 0);
	assert_ok(dmig_write_file_atomic(file, "X", 1, 0600, &err), err);
	assert_ok(dmig_state_put_back(&info, "c4", &err), err);
	assert_ok(dmig_state_put_back(&info, "c4", &err), err);
	cleanup_free char *text = NULL;
	assert_int_equal(dmig_read_file(file, 10, &text, NULL), 0);
	assert_string_equal(text, "P");
	assert_int_equal(access(aside, F_OK), -1);
	assert_int_equal(dmig_state_drop(&info, "c4"), 0);
}

static void a_process_is_known_by_number_and_start(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	unsigned long long start = dmig_process_start(pid);
	assert_true(start > 0);
	assert_true(dmig_process_runs(pid, start));
	assert_false(dmig_process_runs(pid, start + 1));
	kill(pid, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	assert_false(dmig_process_runs(pid, start));
	assert_true(dmig_process_start(pid) == start);
	waitpid(pid, NULL, 0);
	assert_true(dmig_process_start(pid) == 0);
}

static void recovery_without_a_record_does_nothing(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	assert_ok(dmig_target_recover("c5", &err), err);
	assert_int_equal(dmig_target_outcome("c5", 0, &err), 1);
	assert_ok(dmig_target_record_write("c5", "m", &err), err);
	assert_ok(dmig_target_recover("c5", &err), err); /* never created */
	assert_int_equal(dmig_target_record_state("c5"), 0);
	dmig_target_record_remove("c5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_comes_and_goes),
		cmocka_unit_test(names_stay_in_their_folder),
		cmocka_unit_test(info_survives),
		cmocka_unit_test(damaged_info_is_refused),
		cmocka_unit_test(helper_file_is_locked_and_read),
		cmocka_unit_test(state_goes_aside_and_back),
		cmocka_unit_test(a_process_is_known_by_number_and_start),
		cmocka_unit_test(recovery_without_a_record_does_nothing),
	};
	return cmocka_run_group_tests(tests, move_folders, remove_folders);
}
