/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A real runc and a real CRIU: what happens to the tasks when a dump ends well, is given up, or somebody is
 * killed. */
#include "support/test.h"

#include "criu/dump.h"
#include "criu/freezer.h"
#include "criu/image.h"
#include "runc/container.h"
#include "util/cleanup.h"
#include "util/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#define SOON_MS 10000
/* What design.md promises for an abort before the commit. */
#define ABORT_MS 1000

struct fixture {
	struct container c;
	char *criu, *hook;
	struct dmig_dump *d;
	struct dmig_error *err;
	bool stock, tty;
};

static int set_up(void **state, bool tty)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->criu = dmig_libexec_path("criu");
	dirname(f->criu);
	f->tty = tty;
	container_start(&f->c, tty);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return set_up(state, false);
}

static int setup_tty(void **state)
{
	return set_up(state, true);
}

/* A CRIU that seems to know none of our patches; DMIG_STOCK_CRIU names the folder of a real one. */
static char *stock_criu(struct fixture *f)
{
	const char *real = getenv("DMIG_STOCK_CRIU");
	if (real)
		return strdup(real);
	cleanup_free char *script = dmig_asprintf("#!/bin/sh\ncase \"$*\" in *--feature*) exit 1 ;; esac\n"
						  "exec %s/criu \"$@\"\n",
		f->criu);
	cleanup_free char *path = dmig_asprintf("%s/stock/criu", f->c.dir);
	char *dir = dmig_asprintf("%s/stock", f->c.dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_ok(dmig_write_file_atomic(path, script, strlen(script), 0700, &f->err), f->err);
	return dir;
}

static int setup_stock(void **state)
{
	set_up(state, false);
	struct fixture *f = *state;
	char *dir = stock_criu(f);
	f->stock = true;
	f->hook = strdup(HOOK);
	free(f->criu);
	f->criu = dir;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	dmig_dump_free(f->d);
	container_end(&f->c);
	free(f->criu);
	free(f->hook);
	free(f);
	return 0;
}

static void start_dump(struct fixture *f)
{
	struct dmig_dump_opts o = DMIG_DUMP_OPTS_INIT;
	o.runc = container_runc();
	o.runc_root = f->c.root;
	o.container_id = f->c.id;
	o.run_dir = f->c.run;
	o.images_dir = f->c.images;
	o.criu_dir = f->criu;
	o.hook = f->hook;
	o.external_netns = true;
	o.init_pid = f->c.init;
	o.tty = f->tty;
	assert_ok(dmig_dump_start(&o, &f->d, &f->err), f->err);
}

/* Answers every stage before `until`; that one is left open. */
static void serve_until(struct fixture *f, enum dmig_criu_stage until)
{
	struct dmig_notify *n = dmig_dump_notify(f->d);
	struct dmig_notify_event ev;
	for (;;) {
		int r = dmig_notify_next(n, SOON_MS, -1, &ev, &f->err);
		if (r < 0)
			print_error("%s\n", dmig_criu_log_errors(dmig_dump_log(f->d)));
		assert_ok(r, f->err);
		if (ev.stage == until)
			return;
		assert_ok(dmig_notify_answer(n, 0, 0, &f->err), f->err);
	}
}

static void expect_clean_abort(struct fixture *f)
{
	int64_t start = dmig_now_ms();
	assert_ok(dmig_dump_abort(f->d, SOON_MS, &f->err), f->err);
	assert_true(dmig_now_ms() - start < ABORT_MS);
	assert_true(container_runs(&f->c));
	dmig_dump_free(f->d);
	f->d = NULL;
	container_new_run(&f->c);
}

static void abort_at_every_stage(void **state)
{
	struct fixture *f = *state;
	const enum dmig_criu_stage stages[] = {
		DMIG_CRIU_PRE_DUMP, DMIG_CRIU_POST_FREEZE, DMIG_CRIU_POST_DUMP};
	for (size_t i = 0; i < 3; i++) {
		start_dump(f);
		serve_until(f, stages[i]);
		assert_int_equal(container_stands(&f->c), stages[i] != DMIG_CRIU_PRE_DUMP);
		expect_clean_abort(f);
	}
	start_dump(f); /* at once, before CRIU has even been started */
	expect_clean_abort(f);
}

static void closing_is_enough(void **state)
{
	struct fixture *f = *state;
	start_dump(f);
	serve_until(f, DMIG_CRIU_POST_DUMP);
	dmig_dump_free(f->d);
	f->d = NULL;
	assert_true(container_runs(&f->c));
}

static void runc_killed(void **state)
{
	struct fixture *f = *state;
	start_dump(f);
	serve_until(f, DMIG_CRIU_POST_DUMP);
	kill(dmig_dump_pid(f->d), SIGKILL);
	assert_int_equal(dmig_poll_one(dmig_dump_pidfd(f->d), POLLIN, SOON_MS), 1);
	assert_true(container_stands(&f->c)); /* CRIU still waits for us */
	assert_fails(dmig_dump_wait(f->d, SOON_MS, &f->err), f->err, EIO);
	assert_true(container_runs(&f->c));
}

/* Nothing has been dumped yet: the tasks just run on. */
static void criu_killed_at_post_freeze(void **state)
{
	struct fixture *f = *state;
	struct dmig_notify_event ev;
	start_dump(f);
	serve_until(f, DMIG_CRIU_POST_FREEZE);
	kill(dmig_notify_peer(dmig_dump_notify(f->d)), SIGKILL);
	assert_fails(dmig_notify_next(dmig_dump_notify(f->d), SOON_MS, -1, &ev, &f->err), f->err, EPIPE);
	assert_int_equal(dmig_dump_wait(f->d, SOON_MS, &f->err), -EIO);
	dmig_error_freep(&f->err);
	assert_true(container_runs(&f->c));
}

/* After post-dump the cgroup is frozen: they stay stopped, and their connections survive. */
static void criu_killed_at_post_dump(void **state)
{
	struct fixture *f = *state;
	struct dmig_freezer *fr = NULL;
	start_dump(f);
	serve_until(f, DMIG_CRIU_POST_DUMP);
	assert_ok(dmig_freezer_open(f->c.init, &fr, &f->err), f->err);
	assert_ok(dmig_freezer_freeze(fr, SOON_MS, &f->err), f->err);
	kill(dmig_notify_peer(dmig_dump_notify(f->d)), SIGKILL);
	assert_fails(dmig_dump_wait(f->d, SOON_MS, &f->err), f->err, EIO);
	assert_true(container_stands(&f->c));
	assert_ok(dmig_freezer_thaw(fr, &f->err), f->err);
	assert_true(container_runs(&f->c));
	dmig_freezer_free(fr);
}

/* A failure after `ready`: CRIU rolls back although the cgroup is frozen, and the thaw lets the tasks run. */
static void abort_while_frozen(void **state)
{
	struct fixture *f = *state;
	struct dmig_freezer *fr = NULL;
	start_dump(f);
	serve_until(f, DMIG_CRIU_POST_DUMP);
	assert_ok(dmig_freezer_open(f->c.init, &fr, &f->err), f->err);
	assert_ok(dmig_freezer_freeze(fr, SOON_MS, &f->err), f->err);
	int64_t start = dmig_now_ms();
	assert_ok(dmig_dump_abort(f->d, SOON_MS, &f->err), f->err);
	assert_true(dmig_now_ms() - start < ABORT_MS);
	assert_true(container_stands(&f->c));
	assert_ok(dmig_freezer_thaw(fr, &f->err), f->err);
	assert_true(container_runs(&f->c));
	dmig_freezer_free(fr);
}

static void finish(void **state)
{
	struct fixture *f = *state;
	struct dmig_freezer *fr = NULL;
	struct dmig_criu_summary s;
	start_dump(f);
	assert_int_equal(
		dmig_dump_freeze_stage(f->d), f->stock ? DMIG_CRIU_NETWORK_LOCK : DMIG_CRIU_POST_FREEZE);
	serve_until(f, dmig_dump_freeze_stage(f->d));
	assert_true(container_stands(&f->c));
	assert_ok(dmig_notify_answer(dmig_dump_notify(f->d), 0, 0, &f->err), f->err);
	serve_until(f, DMIG_CRIU_POST_DUMP);
	assert_ok(dmig_criu_image_summary(f->c.images, &s, &f->err), f->err);
	assert_int_equal(s.processes, 2);
	assert_int_equal(s.threads, 3);
	assert_int_equal(s.page_bytes, s.pages_present * DMIG_IMAGE_PAGE);
	assert_ok(dmig_freezer_open(f->c.init, &fr, &f->err), f->err);
	assert_ok(dmig_freezer_freeze(fr, SOON_MS, &f->err), f->err);
	uint32_t beats = *f->c.counter;
	assert_ok(dmig_freezer_kill(fr, &f->err), f->err);
	assert_ok(dmig_freezer_thaw(fr, &f->err), f->err);
	assert_ok(dmig_notify_answer(dmig_dump_notify(f->d), 0, 0, &f->err), f->err);
	assert_ok(dmig_dump_wait(f->d, SOON_MS, &f->err), f->err);
	assert_int_equal(*f->c.counter, beats);
	assert_true(container_dead(&f->c));
	dmig_freezer_free(fr);
}

static void terminal(void **state)
{
	struct fixture *f = *state;
	struct dmig_criu_tty tty;
	assert_ok(dmig_criu_tty(f->c.init, &tty, &f->err), f->err);
	assert_int_equal(tty.rdev, 0x8800); /* pts/0 */
	assert_int_equal(tty.other_ptys, 0);
	finish(state);
}

/* As sshd or tmux in the container would have: it lives in the devpts that stays behind. */
static void second_terminal_is_refused(void **state)
{
	struct fixture *f = *state;
	struct dmig_criu_tty tty;
	struct dmig_dump_opts o = DMIG_DUMP_OPTS_INIT;
	cleanup_free char *ptmx = dmig_asprintf("/proc/%d/root/dev/pts/ptmx", (int)f->c.init);
	cleanup_fd int master = open(ptmx, O_RDWR | O_CLOEXEC | O_NOCTTY);
	assert_true(master >= 0);
	assert_ok(dmig_criu_tty(f->c.init, &tty, &f->err), f->err);
	assert_int_equal(tty.other_ptys, 1);
	o.run_dir = f->c.run;
	o.criu_dir = f->criu;
	o.init_pid = f->c.init;
	o.tty = true;
	assert_int_equal(dmig_dump_start(&o, &f->d, &f->err), -ENOTSUP);
	assert_int_equal(f->err->class, DMIG_ERR_REFUSED);
	dmig_error_freep(&f->err);
	assert_true(container_runs(&f->c));
}

static void no_terminal(void **state)
{
	struct fixture *f = *state;
	struct dmig_criu_tty tty;
	assert_true(dmig_criu_tty(f->c.init, &tty, &f->err) < 0);
	dmig_error_freep(&f->err);
}

static void stock_abort(void **state)
{
	struct fixture *f = *state;
	start_dump(f);
	serve_until(f, DMIG_CRIU_POST_DUMP);
	expect_clean_abort(f);
}

static void failure_names_the_cause(void **state)
{
	struct fixture *f = *state;
	struct dmig_notify_event ev;
	assert_int_equal(dmig_remove_tree(f->c.images), 0); /* runc makes it again, this does not */
	assert_int_equal(symlink("/proc/self/nothing", f->c.images), 0);
	start_dump(f);
	assert_int_equal(dmig_notify_next(dmig_dump_notify(f->d), 2000, -1, &ev, NULL), -ETIMEDOUT);
	assert_int_equal(dmig_dump_wait(f->d, SOON_MS, &f->err), -EIO);
	assert_non_null(strstr(f->err->message, "images"));
	dmig_error_freep(&f->err);
	assert_true(container_runs(&f->c));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
#define TTY(fn) cmocka_unit_test_setup_teardown(fn, setup_tty, teardown)
#define STOCK(fn) cmocka_unit_test_setup_teardown(fn, setup_stock, teardown)

int main(int argc, char **argv)
{
	container_require();
	const struct CMUnitTest tests[] = {
		TEST(abort_at_every_stage),
		TEST(closing_is_enough),
		TEST(runc_killed),
		TEST(criu_killed_at_post_freeze),
		TEST(criu_killed_at_post_dump),
		TEST(abort_while_frozen),
		TEST(finish),
		TEST(failure_names_the_cause),
		TTY(terminal),
		TTY(second_terminal_is_refused),
		TEST(no_terminal),
	};
	const struct CMUnitTest stock[] = {STOCK(finish), STOCK(stock_abort)};
	(void)argv;
	return argc > 1 ? cmocka_run_group_tests_name("stock", stock, NULL, NULL)
			: cmocka_run_group_tests(tests, NULL, NULL);
}
