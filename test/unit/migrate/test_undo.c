/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../docker/support.h"

#include "migrate/journal.h"
#include "migrate/undo.h"
#include "util/cleanup.h"

static const char id[] = "00112233445566bb";
static char *folder;
static struct fake_docker *fake;
static struct dmig_journal *journal;

static int set_up(void **state)
{
	(void)state;
	folder = test_mkdir();
	setenv("DMIGRATE_STATE_DIR", folder, 1);
	fake = fake_docker_start();
	assert_int_equal(dmig_journal_create(id, &journal, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dmig_journal_free(journal);
	fake_docker_stop(fake);
	test_rmdir(folder);
	return 0;
}

static void container_is(const char *running)
{
	fake_docker_on(fake, "POST", "/containers/rich/update", 200, "{}");
	fake_source(fake, edited(SPEC_28, "inspect.State.Running", running, NULL));
}

static bool was_started(void)
{
	cleanup_free char *log = fake_docker_log(fake);
	return strstr(log, "/start") != NULL;
}

/* As if the journal had been written before this boot. */
static void add_policy_of_an_earlier_boot(void)
{
	assert_int_equal(dmig_journal_add(journal,
				 json_pack("{s:s,s:s,s:s,s:s,s:i,s:s}", "rec", "undo", "what", "restart-policy", "container",
					 "rich", "policy", "always", "max", 0, "boot", "another"),
				 NULL), 0);
}

static void policy_comes_back(void **state)
{
	struct dmig_error *err = NULL;
	(void)state;
	container_is("false");
	assert_ok(dmig_undo_restart_policy(journal, "rich", "always", 0, &err), err);
	assert_ok(dmig_undo_run(journal, &err), err);
	cleanup_free char *body = fake_docker_body(fake, "POST", "/containers/rich/update", NULL);
	assert_non_null(strstr(body, "always"));
	assert_false(was_started()); /* somebody stopped it: that stays */
	assert_int_equal(dmig_journal_has(journal, "done"), 1);
}

static void a_reboot_does_not_leave_it_stopped(void **state)
{
	struct dmig_error *err = NULL;
	(void)state;
	container_is("false");
	add_policy_of_an_earlier_boot();
	dmig_undo_run(journal, &err); /* this Docker refuses: all the same it was asked */
	dmig_error_free(err);
	assert_true(was_started());
}

static void what_runs_after_a_reboot_is_left_alone(void **state)
{
	struct dmig_error *err = NULL;
	(void)state;
	container_is("true");
	add_policy_of_an_earlier_boot();
	assert_ok(dmig_undo_run(journal, &err), err);
	assert_false(was_started());
}

/* One that fails does not keep the others from being undone, and the journal stays open for another try. */
static void it_goes_on_after_a_failure(void **state)
{
	struct dmig_error *err = NULL;
	(void)state;
	container_is("true");
	assert_ok(dmig_undo_restart_policy(journal, "rich", "always", 0, &err), err);
	assert_ok(dmig_undo_made(journal, "network", "lost", &err), err);
	fake_docker_on(fake, "DELETE", "/networks/lost", 500, "{\"message\":\"no\"}");
	assert_true(dmig_undo_run(journal, &err) < 0);
	dmig_error_free(err);
	assert_int_equal(fake_docker_count(fake, "POST", "/containers/rich/update"), 1);
	assert_int_equal(dmig_journal_has(journal, "done"), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(policy_comes_back),
		CASE(a_reboot_does_not_leave_it_stopped),
		CASE(what_runs_after_a_reboot_is_left_alone),
		CASE(it_goes_on_after_a_failure),
	};
	return cmocka_run_group_tests_name("undo", tests, NULL, NULL);
}
