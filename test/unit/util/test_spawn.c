/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "util/cleanup.h"
#include "util/spawn.h"

#define PATIENCE 20000 /* ms */

/* `sh -c script` with dmig_run(). */
static int shell(
	const char *script, const char *const *env, int timeout_ms, char **ret_out, struct dmig_error **err)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	return dmig_run(argv, env, timeout_ms, ret_out, err);
}

static void run_collects_output(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *out = NULL, *none = NULL;
	assert_ok(shell("echo one; echo two", NULL, PATIENCE, &out, &err), err);
	assert_string_equal(out, "one\ntwo\n");
	assert_ok(shell("true", NULL, -1, &none, &err), err);
	assert_string_equal(none, "");
}

static void run_tells_why_it_failed(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	char *out = NULL;
	assert_int_equal(shell("echo no such thing >&2; exit 3", NULL, PATIENCE, &out, &err), -EIO);
	assert_null(out);
	assert_string_equal(err->message, "sh failed (exit code 3): no such thing");
	dmig_error_freep(&err);
	assert_fails(shell("kill -9 $$", NULL, PATIENCE, NULL, &err), err, EIO);
	const char *const argv[] = {"no-such-program-anywhere", NULL};
	assert_fails(dmig_run(argv, NULL, PATIENCE, NULL, &err), err, ENOENT);
	const char *const bad[] = {"/dev/null", NULL};
	assert_fails(dmig_run(bad, NULL, PATIENCE, NULL, &err), err, EACCES);
}

static void run_has_a_limit(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	int64_t start = dmig_now_ms();
	assert_fails(shell("exec sleep 30", NULL, 100, NULL, &err), err, ETIMEDOUT);
	assert_true(dmig_now_ms() - start < 10000);
}

static void grandchild_holds_nobody(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *out = NULL;
	int64_t start = dmig_now_ms();
	assert_ok(shell("echo up; sleep 5 & exit 0", NULL, PATIENCE, &out, &err), err);
	assert_string_equal(out, "up\n");
	assert_true(dmig_now_ms() - start < 4000);
}

static void large_output_is_cut_not_stuck(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *out = NULL;
	assert_ok(shell("head -c 3000000 /dev/zero | tr '\\0' x", NULL, PATIENCE, &out, &err), err);
	assert_int_equal(strlen(out), 1 << 20);
}

static void environment_is_merged(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *out = NULL;
	setenv("DMIG_TEST_A", "old", 1);
	setenv("DMIG_TEST_B", "kept", 1);
	const char *const env[] = {"DMIG_TEST_A=new", NULL};
	assert_ok(shell("echo $DMIG_TEST_A $DMIG_TEST_B", env, PATIENCE, &out, &err), err);
	assert_string_equal(out, "new kept\n");
}

static void only_listed_descriptors_pass(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	int p[2], other = open("/dev/null", O_RDONLY); /* not close-on-exec on purpose */
	char buf[100] = {0};
	assert_int_equal(pipe(p), 0);
	cleanup_free char *script =
		dmig_asprintf("echo kept >&%d; test -e /proc/self/fd/%d && echo leaked >&%d; cat <&0 >&%d",
			p[1], other, p[1], p[1]);
	const char *const argv[] = {"sh", "-c", script, NULL};
	const int keep[] = {p[1]};
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	s.argv = argv;
	s.keep_fds = keep;
	s.n_keep_fds = 1;
	cleanup_fd int pidfd = -1;
	pid_t pid = dmig_spawn(&s, &pidfd, &err);
	assert_ok(pid, err);
	close(p[1]);
	close(other);
	int status = dmig_wait_pid(pid, pidfd, PATIENCE);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(read(p[0], buf, sizeof(buf) - 1) > 0);
	assert_string_equal(buf, "kept\n");
	close(p[0]);
}

static void wait_has_a_limit(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	const char *const argv[] = {"sleep", "30", NULL};
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	s.argv = argv;
	s.parent_death_signal = SIGKILL;
	pid_t pid = dmig_spawn(&s, NULL, &err);
	assert_ok(pid, err);
	assert_int_equal(dmig_wait_pid(pid, -1, 30), -ETIMEDOUT);
	assert_int_equal(kill(pid, SIGTERM), 0);
	int status = dmig_wait_pid(pid, -1, PATIENCE);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(dmig_wait_pid(pid, -1, -1), -ECHILD);
}

static void child_has_plain_signals(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *out = NULL;
	sigset_t set, saved;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &saved);
	signal(SIGUSR2, SIG_IGN);
	int r = shell("grep -E '^Sig(Blk|Ign)' /proc/self/status", NULL, PATIENCE, &out, &err);
	sigprocmask(SIG_SETMASK, &saved, NULL);
	signal(SIGUSR2, SIG_DFL);
	assert_ok(r, err);
	unsigned long long blocked, ignored;
	assert_int_equal(sscanf(out, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
	assert_int_equal(blocked, 0);
	/* 32 and 33 are the C library's own: it lets nobody change them, and they may come ignored from our parent. */
	assert_int_equal(ignored & ~(3ULL << 31), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_collects_output),
		cmocka_unit_test(run_tells_why_it_failed),
		cmocka_unit_test(run_has_a_limit),
		cmocka_unit_test(grandchild_holds_nobody),
		cmocka_unit_test(large_output_is_cut_not_stuck),
		cmocka_unit_test(environment_is_merged),
		cmocka_unit_test(only_listed_descriptors_pass),
		cmocka_unit_test(wait_has_a_limit),
		cmocka_unit_test(child_has_plain_signals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
