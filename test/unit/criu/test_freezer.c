/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Real cgroups of its own, v1 and v2 where they are mounted and writable; removed at the end. */
#include "support/test.h"

#include "criu/freezer.h"
#include "util/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SOON_MS 10000

/* One hierarchy with a group in it: init, its child and, if asked for, a foreign process. */
struct group {
	bool v2;
	char *path, *inner;
	pid_t init, child, foreign;
	int beat; /* init's child writes a byte here all the time */
	struct dmig_freezer *f;
	struct dmig_error *err;
};

static char *mount_point(bool v2)
{
	static const char *const places[2][3] = {
		{"/sys/fs/cgroup/freezer", NULL}, {"/sys/fs/cgroup/unified", "/sys/fs/cgroup", NULL}};
	for (int i = 0; places[v2][i]; i++) {
		cleanup_free char *procs = dmig_asprintf("%s/cgroup.procs", places[v2][i]);
		cleanup_free char *probe = dmig_asprintf("%s/cgroup.controllers", places[v2][i]);
		bool is_v2 = access(probe, F_OK) == 0;
		if (is_v2 == v2 && access(procs, W_OK) == 0)
			return strdup(places[v2][i]);
	}
	return NULL;
}

static void enter(const char *folder)
{
	cleanup_free char *procs = dmig_asprintf("%s/cgroup.procs", folder);
	if (dmig_write_knob(procs, "0") < 0)
		_exit(9);
}

static void beat(int fd)
{
	for (;;) {
		if (write(fd, "x", 1) < 0)
			_exit(0);
		usleep(1000);
	}
}

static void run_init(struct group *g, int out)
{
	enter(g->path);
	pid_t child = fork();
	if (child == 0) {
		enter(g->inner);
		beat(out);
	}
	if (write(out, &child, sizeof(child)) < 0)
		_exit(9);
	for (;;)
		pause();
}

static int setup(struct group *g)
{
	cleanup_free char *mount = mount_point(g->v2);
	if (!mount)
		return -1;
	int p[2];
	g->path = dmig_asprintf("%s/dmig-test-%d", mount, (int)getpid());
	g->inner = dmig_asprintf("%s/inner", g->path);
	assert_int_equal(mkdir(g->path, 0755), 0);
	assert_int_equal(mkdir(g->inner, 0755), 0);
	assert_int_equal(pipe(p), 0);
	g->init = fork();
	if (g->init == 0)
		run_init(g, p[1]);
	close(p[1]);
	g->beat = p[0];
	/* A beat may come before the number: the number is the only thing that is not 'x'. */
	unsigned char buf[sizeof(pid_t)];
	size_t have = 0;
	while (have < sizeof(buf)) {
		assert_int_equal(read(g->beat, buf + have, 1), 1);
		if (have || buf[0] != 'x')
			have++;
	}
	memcpy(&g->child, buf, sizeof(buf));
	assert_ok(dmig_freezer_open(g->init, &g->f, &g->err), g->err);
	assert_string_equal(dmig_freezer_path(g->f), g->path);
	assert_int_equal(dmig_freezer_is_v2(g->f), g->v2);
	return 0;
}

static void remove_folder(const char *path)
{
	/* rmdir says EBUSY until the last task has been reaped. */
	int64_t deadline = dmig_now_ms() + SOON_MS;
	while (rmdir(path) < 0 && errno == EBUSY && dmig_now_ms() < deadline)
		usleep(1000);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void teardown(struct group *g)
{
	dmig_freezer_kill(g->f, NULL);
	dmig_freezer_thaw(g->f, NULL);
	waitpid(g->init, NULL, 0);
	if (g->foreign)
		waitpid(g->foreign, NULL, 0);
	remove_folder(g->inner);
	remove_folder(g->path);
	dmig_freezer_free(g->f);
	close(g->beat);
	free(g->path);
	free(g->inner);
}

/* What was written before the freeze is in the pipe; after that, silence. */
static void drain_beats(struct group *g)
{
	char buf[4096];
	while (dmig_poll_one(g->beat, POLLIN, 0) == 1)
		assert_true(read(g->beat, buf, sizeof(buf)) > 0);
}

static void freezes_and_thaws(struct group *g)
{
	assert_ok(dmig_freezer_freeze(g->f, SOON_MS, &g->err), g->err);
	drain_beats(g);
	assert_int_equal(dmig_poll_one(g->beat, POLLIN, 30), 0);
	struct dmig_freezer *again = NULL; /* as recovery does it, from the journal */
	assert_ok(dmig_freezer_open_path(g->path, &again, &g->err), g->err);
	assert_ok(dmig_freezer_thaw(again, &g->err), g->err);
	dmig_freezer_free(again);
	assert_int_equal(dmig_poll_one(g->beat, POLLIN, SOON_MS), 1);
}

static void lists_everybody(struct group *g)
{
	pid_t *pids = NULL;
	size_t n = 0;
	assert_ok(dmig_freezer_pids(g->f, &pids, &n, &g->err), g->err);
	assert_int_equal(n, 2);
	assert_true(pids[0] == g->init && pids[1] == g->child);
	free(pids);
}

static void start_foreign(struct group *g)
{
	int p[2];
	char c;
	assert_int_equal(pipe(p), 0);
	g->foreign = fork();
	if (g->foreign == 0) {
		enter(g->path);
		if (write(p[1], "x", 1) < 0)
			_exit(9);
		for (;;)
			pause();
	}
	assert_int_equal(read(p[0], &c, 1), 1);
	close(p[0]);
	close(p[1]);
}

static void finds_foreign_tasks(struct group *g)
{
	char *who = NULL;
	assert_int_equal(dmig_freezer_foreign(g->f, g->init, &who, &g->err), 0);
	assert_null(who);
	start_foreign(g);
	assert_int_equal(dmig_freezer_foreign(g->f, g->init, &who, &g->err), 1);
	cleanup_free char *want = dmig_asprintf("%d (test_criu_freez)", (int)g->foreign);
	assert_string_equal(who, want);
	free(who);
	/* A dead one that nobody has reaped yet is none. */
	siginfo_t info;
	kill(g->foreign, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)g->foreign, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(dmig_freezer_foreign(g->f, g->init, NULL, &g->err), 0);
}

/* The finish of a migration: SIGKILL while frozen, then thaw; not one beat in between. */
static void kills_while_frozen(struct group *g)
{
	int status;
	assert_ok(dmig_freezer_freeze(g->f, SOON_MS, &g->err), g->err);
	drain_beats(g);
	assert_ok(dmig_freezer_kill(g->f, &g->err), g->err);
	assert_ok(dmig_freezer_thaw(g->f, &g->err), g->err);
	assert_int_equal(waitpid(g->init, &status, 0), g->init);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	char c;
	assert_int_equal(read(g->beat, &c, 1), 0);
}

static void run(bool v2)
{
	struct group g = {.v2 = v2};
	if (setup(&g) < 0)
		skip();
	lists_everybody(&g);
	freezes_and_thaws(&g);
	finds_foreign_tasks(&g);
	kills_while_frozen(&g);
	teardown(&g);
}

static void version_1(void **state)
{
	(void)state;
	run(false);
}

static void version_2(void **state)
{
	(void)state;
	run(true);
}

static void own_cgroup_is_refused(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_freezer *f = NULL;
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	assert_fails(dmig_freezer_open(pid, &f, &err), err, ENOENT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_fails(dmig_freezer_open_path("/tmp", &f, &err), err, ENOENT);
}

int main(void)
{
	char *v1 = mount_point(false), *v2 = mount_point(true);
	if (!v1 && !v2)
		test_skip_program("no writable cgroup");
	free(v1);
	free(v2);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_1),
		cmocka_unit_test(version_2),
		cmocka_unit_test(own_cgroup_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
