/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include "criu/internal.h"
#include "criu/notify-wire.h"
#include "criu/notify.h"
#include "util/cleanup.h"
#include "util/spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Long for a loaded machine; nothing here waits for it when all is well. */
#define SOON_MS 10000

struct fixture {
	char *dir, *path;
	struct dmig_notify *n;
	struct dmig_error *err;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->dir = test_mkdir();
	f->path = dmig_asprintf("%s/notify.sock", f->dir);
	assert_ok(dmig_notify_new(f->path, &f->n, &f->err), f->err);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	dmig_notify_free(f->n);
	assert_int_not_equal(access(f->path, F_OK), 0);
	free(f->path);
	test_rmdir(f->dir);
	free(f);
	return 0;
}

static void ask(int fd, const char *action, int root)
{
	struct dmig_notify_request req = {.magic = DMIG_NOTIFY_MAGIC, .version = 1, .root_pid = root};
	strcpy(req.action, action);
	assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
}

static void expect(struct fixture *f, enum dmig_criu_stage stage)
{
	struct dmig_notify_event ev;
	assert_ok(dmig_notify_next(f->n, SOON_MS, -1, &ev, &f->err), f->err);
	assert_int_equal(ev.stage, stage);
}

static void all_stages_of_one_criu(void **state)
{
	struct fixture *f = *state;
	struct dmig_notify_event ev;
	struct dmig_notify_reply reply;
	int fd = dmig_unix_connect(f->path);
	assert_true(fd >= 0);
	for (int s = DMIG_CRIU_PRE_DUMP; s <= DMIG_CRIU_POST_RESUME; s++) {
		ask(fd, dmig_criu_stage_name((enum dmig_criu_stage)s), 4242);
		assert_int_equal(dmig_poll_one(dmig_notify_fd(f->n), POLLIN, SOON_MS), 1);
		assert_ok(dmig_notify_next(f->n, SOON_MS, -1, &ev, &f->err), f->err);
		assert_int_equal(ev.stage, s);
		assert_int_equal(ev.root_pid, 4242);
		assert_int_equal(dmig_notify_peer(f->n), getpid());
		assert_ok(dmig_notify_answer(f->n, s == 3, s * 10, &f->err), f->err);
		assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
		assert_int_equal(reply.magic, DMIG_NOTIFY_MAGIC);
		assert_int_equal(reply.ret, s == 3);
		assert_int_equal(reply.value, s * 10);
	}
	ask(fd, "orphan-pts-master", 0);
	expect(f, DMIG_CRIU_OTHER);
	close(fd);
}

static void answer_needs_an_open_stage(void **state)
{
	struct fixture *f = *state;
	assert_fails(dmig_notify_answer(f->n, 0, 0, &f->err), f->err, EINVAL);
}

static void time_and_cancel_end_the_wait(void **state)
{
	struct fixture *f = *state;
	struct dmig_notify_event ev;
	int p[2];
	assert_int_equal(pipe(p), 0);
	assert_fails(dmig_notify_next(f->n, 1, p[0], &ev, &f->err), f->err, ETIMEDOUT);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_fails(dmig_notify_next(f->n, -1, p[0], &ev, &f->err), f->err, ECANCELED);
	close(p[0]);
	close(p[1]);
}

static void end_of_criu_is_reported_once(void **state)
{
	struct fixture *f = *state;
	struct dmig_notify_event ev;
	int fd = dmig_unix_connect(f->path);
	ask(fd, "pre-dump", 0);
	expect(f, DMIG_CRIU_PRE_DUMP);
	close(fd); /* while the stage is open */
	assert_int_equal(dmig_poll_one(dmig_notify_fd(f->n), POLLIN, SOON_MS), 1);
	assert_fails(dmig_notify_next(f->n, SOON_MS, -1, &ev, &f->err), f->err, EPIPE);
	assert_fails(dmig_notify_next(f->n, 1, -1, &ev, &f->err), f->err, ETIMEDOUT);
}

static void one_that_never_spoke_is_nothing(void **state)
{
	struct fixture *f = *state;
	close(dmig_unix_connect(f->path));
	int fd = dmig_unix_connect(f->path);
	ask(fd, "post-freeze", 1);
	expect(f, DMIG_CRIU_POST_FREEZE);
	close(fd);
}

static void shut_fails_open_and_waiting_stages(void **state)
{
	struct fixture *f = *state;
	struct dmig_notify_event ev;
	char c;
	int a = dmig_unix_connect(f->path), b = dmig_unix_connect(f->path);
	ask(a, "post-dump", 1);
	ask(b, "post-dump", 1);
	expect(f, DMIG_CRIU_POST_DUMP);
	dmig_notify_shut(f->n);
	assert_true(recv(a, &c, 1, 0) <= 0);
	assert_true(recv(b, &c, 1, 0) <= 0);
	assert_int_equal(dmig_unix_connect(f->path), -ECONNREFUSED);
	assert_fails(dmig_notify_next(f->n, -1, -1, &ev, &f->err), f->err, EPIPE);
	close(a);
	close(b);
}

static void junk_is_refused(void **state)
{
	struct fixture *f = *state;
	struct dmig_notify_event ev;
	int fd = dmig_unix_connect(f->path);
	assert_int_equal(send(fd, "junk", 4, 0), 4);
	assert_fails(dmig_notify_next(f->n, SOON_MS, -1, &ev, &f->err), f->err, EBADMSG);
	close(fd);
	fd = dmig_unix_connect(f->path);
	ask(fd, "pre-dump", 1);
	expect(f, DMIG_CRIU_PRE_DUMP);
	ask(fd, "pre-dump", 1);
	assert_fails(dmig_notify_next(f->n, SOON_MS, -1, &ev, &f->err), f->err, EPROTO);
	close(fd);
}

static void packet_limits(void **state)
{
	(void)state;
	struct dmig_notify_event ev;
	bool one;
	struct dmig_notify_request req = {
		.magic = DMIG_NOTIFY_MAGIC_HOOK, .version = 1, .action = "post-dump"};
	assert_int_equal(dmig_notify__parse(&req, sizeof(req), &ev, &one), 0);
	assert_true(one);
	assert_int_equal(dmig_notify__parse(&req, sizeof(req) - 1, &ev, &one), -EBADMSG);
	memset(req.action, 'x', sizeof(req.action));
	assert_int_equal(dmig_notify__parse(&req, sizeof(req), &ev, &one), -EBADMSG);
	strcpy(req.action, "x");
	req.version = 2;
	assert_int_equal(dmig_notify__parse(&req, sizeof(req), &ev, &one), -EPROTONOSUPPORT);
	req.version = 1;
	req.root_pid = -1;
	assert_int_equal(dmig_notify__parse(&req, sizeof(req), &ev, &one), -EBADMSG);
}

static pid_t start_hook(struct fixture *f, const char *action, bool by_argument)
{
	cleanup_free char *var = dmig_asprintf("CRTOOLS_SCRIPT_ACTION=%s", action);
	cleanup_free char *sock = dmig_asprintf("%s=%s", DMIG_NOTIFY_ENV, f->path);
	const char *by_env[] = {var, "CRTOOLS_INIT_PID=77", sock, NULL}, *plain[] = {var, NULL};
	const char *with[] = {HOOK, f->path, NULL}, *without[] = {HOOK, NULL};
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	s.argv = by_argument ? with : without;
	s.env = by_argument ? plain : by_env;
	pid_t pid = dmig_spawn(&s, NULL, &f->err);
	assert_ok(pid, f->err);
	return pid;
}

static int exit_code(pid_t pid)
{
	int status = dmig_wait_pid(pid, -1, SOON_MS);
	assert_true(status >= 0 && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void hook_speaks_the_same_packets(void **state)
{
	struct fixture *f = *state;
	struct dmig_notify_event ev;
	for (int verdict = 0; verdict < 2; verdict++) {
		pid_t pid = start_hook(f, "post-dump", verdict);
		assert_ok(dmig_notify_next(f->n, SOON_MS, -1, &ev, &f->err), f->err);
		assert_int_equal(ev.stage, DMIG_CRIU_POST_DUMP);
		assert_int_equal(ev.root_pid, verdict ? 0 : 77);
		assert_int_equal(dmig_notify_peer(f->n), pid);
		assert_ok(dmig_notify_answer(f->n, verdict, 0, &f->err), f->err);
		assert_int_equal(exit_code(pid), verdict);
	}
	/* Its end is no end of CRIU. */
	assert_fails(dmig_notify_next(f->n, 1, -1, &ev, &f->err), f->err, ETIMEDOUT);
}

static void hook_fails_without_a_server(void **state)
{
	struct fixture *f = *state;
	dmig_notify_shut(f->n);
	assert_int_equal(exit_code(start_hook(f, "post-dump", false)), 1);
}

/* Stands for CRIU: starts the hook and waits, as cr_system() does. */
static pid_t start_parent_of_hook(struct fixture *f)
{
	pid_t pid = fork();
	if (pid == 0) {
		pid_t hook = start_hook(f, "post-dump", false);
		waitpid(hook, NULL, 0);
		_exit(0);
	}
	return pid;
}

static void hook_ends_with_its_criu(void **state)
{
	struct fixture *f = *state;
	struct dmig_notify_event ev;
	pid_t criu = start_parent_of_hook(f);
	expect(f, DMIG_CRIU_POST_DUMP);
	kill(criu, SIGKILL);
	waitpid(criu, NULL, 0);
	assert_fails(dmig_notify_next(f->n, SOON_MS, -1, &ev, &f->err), f->err, EPIPE);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_stages_of_one_criu),
		TEST(answer_needs_an_open_stage),
		TEST(time_and_cancel_end_the_wait),
		TEST(end_of_criu_is_reported_once),
		TEST(one_that_never_spoke_is_nothing),
		TEST(shut_fails_open_and_waiting_stages),
		TEST(junk_is_refused),
		TEST(packet_limits),
		TEST(hook_speaks_the_same_packets),
		TEST(hook_fails_without_a_server),
		TEST(hook_ends_with_its_criu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
