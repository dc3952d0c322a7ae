/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../docker/support.h"

#include <errno.h>

#include "migrate/dest.h"
#include "migrate/journal.h"
#include "runtime/placeholder.h"
#include "runtime/record.h"
#include "util/cleanup.h"

static const char id[] = "00112233445566cc";
static char *folder;
static struct fake_docker *fake;
static struct dmig_journal *journal;

static int set_up(void **state)
{
	(void)state;
	folder = test_mkdir();
	cleanup_free char *run_dir = dmig_asprintf("%s/run", folder);
	setenv("DMIGRATE_STATE_DIR", folder, 1);
	setenv("DMIGRATE_RUN_DIR", run_dir, 1);
	fake = fake_docker_start();
	assert_int_equal(dmig_journal_create(id, &journal, NULL), 0);
	assert_int_equal(dmig_journal_add(journal, json_pack("{s:s}", "rec", "resuming"), NULL), 0);
	assert_int_equal(dmig_journal_add(journal,
				 json_pack("{s:s,s:s,s:s,s:i}", "rec", "target", "container", ID_B, "policy", "always", "max", 0),
				 NULL), 0);
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

/* A reboot between the decision and the end: nothing runs here, the source will not, and a person must be able to. */
static void what_a_reboot_took_can_be_started(void **state)
{
	struct dmig_error *err = NULL;
	(void)state;
	assert_ok(dmig_target_record_write(ID_B, id, &err), err);
	assert_fails(dmig_dest_settle(journal, &err), err, ESRCH);
	assert_int_equal(dmig_target_record_state(ID_B), -ENOENT);
	assert_int_equal(dmig_journal_has(journal, "lost"), 1);
	assert_int_equal(dmig_journal_has(journal, "done"), 0); /* a source that asks gets no answer, a person decides */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_reboot_took_can_be_started, set_up, tear_down),
	};
	return cmocka_run_group_tests_name("forward", tests, NULL, NULL);
}
