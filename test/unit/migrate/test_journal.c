/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "migrate/journal.h"
#include "util/cleanup.h"
#include "util/io.h"

/* DMIGRATE_STATE_DIR points the journal at a folder of this test. */
static char folder[] = "/tmp/dmig-journal-XXXXXX";
static const char id[] = "00112233445566ff";

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/dmig-journal-XXXXXX");
	return mkdtemp(folder) && setenv("DMIGRATE_STATE_DIR", folder, 1) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return dmig_remove_tree(folder);
}

static void records_come_back_in_order(void **state)
{
	(void)state;
	struct dmig_journal *j = NULL;
	json_t *list = NULL;
	assert_int_equal(dmig_journal_create(id, &j, NULL), 0);
	assert_int_equal(dmig_journal_add(j, json_pack("{s:s}", "rec", "begin"), NULL), 0);
	assert_int_equal(dmig_journal_add(j, json_pack("{s:s,s:s}", "rec", "undo", "what", "links"), NULL), 0);
	assert_int_equal(dmig_journal_read(j, &list, NULL), 0);
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "what")), "links");
	json_decref(list);
	assert_int_equal(dmig_journal_has(j, "begin"), 1);
	assert_int_equal(dmig_journal_has(j, "done"), 0);
	dmig_journal_free(j);
}

static void a_torn_line_is_dropped(void **state)
{
	(void)state;
	struct dmig_journal *j = NULL;
	json_t *list = NULL;
	cleanup_free char *path = dmig_asprintf("%s/%s/journal", folder, id);
	assert_int_equal(dmig_journal_create(id, &j, NULL), 0);
	assert_int_equal(dmig_journal_add(j, json_pack("{s:s}", "rec", "begin"), NULL), 0);
	cleanup_fd int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "{\"rec\":\"un", 10), 10);
	assert_int_equal(dmig_journal_read(j, &list, NULL), 0);
	assert_int_equal(json_array_size(list), 1);
	json_decref(list);
	dmig_journal_free(j);
}

/* A crash in the middle of one record must not swallow the next, which may be the decision. */
static void what_follows_a_torn_line_counts(void **state)
{
	(void)state;
	struct dmig_journal *j = NULL;
	static const char torn[] = "{\"rec\":\"un", hole[16];
	cleanup_free char *path = dmig_asprintf("%s/%s/journal", folder, id);
	assert_int_equal(dmig_journal_create(id, &j, NULL), 0);
	cleanup_fd int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, torn, sizeof(torn) - 1), sizeof(torn) - 1);
	assert_int_equal(dmig_journal_decide(j, "resuming", "refused", NULL), 1);
	assert_int_equal(dmig_journal_decide(j, "refused", "resuming", NULL), 0);
	assert_int_equal(write(fd, hole, sizeof(hole)), sizeof(hole));
	assert_int_equal(dmig_journal_add(j, json_pack("{s:s}", "rec", "done"), NULL), 0);
	assert_int_equal(dmig_journal_has(j, "done"), 1);
	dmig_journal_free(j);
}

static void a_record_that_does_not_fit_leaves_no_trace(void **state)
{
	(void)state;
	struct dmig_journal *j = NULL;
	struct rlimit old, small;
	assert_int_equal(dmig_journal_create(id, &j, NULL), 0);
	assert_int_equal(dmig_journal_add(j, json_pack("{s:s}", "rec", "begin"), NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){.rlim_cur = 24, .rlim_max = old.rlim_max}; /* half of the next line */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_true(dmig_journal_decide(j, "resuming", "refused", NULL) < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(dmig_journal_has(j, "resuming"), 0);
	assert_int_equal(dmig_journal_decide(j, "refused", "resuming", NULL), 1);
	dmig_journal_free(j);
}

/* "There is no such record" lets tasks run: what cannot be read is not a no. */
static void what_cannot_be_read_is_no_answer(void **state)
{
	(void)state;
	struct dmig_journal *j = NULL;
	cleanup_free char *path = dmig_asprintf("%s/%s/journal", folder, id);
	assert_int_equal(dmig_journal_create(id, &j, NULL), 0);
	assert_int_equal(unlink(path), 0);
	assert_true(dmig_journal_has(j, "in-doubt") < 0);
	assert_true(dmig_journal_decide(j, "refused", "resuming", NULL) < 0);
	dmig_journal_free(j);
}

static void only_one_decision_gets_in(void **state)
{
	(void)state;
	struct dmig_journal *j = NULL;
	assert_int_equal(dmig_journal_create(id, &j, NULL), 0);
	assert_int_equal(dmig_journal_decide(j, "resuming", "refused", NULL), 1);
	assert_int_equal(dmig_journal_decide(j, "resuming", "refused", NULL), 1);
	assert_int_equal(dmig_journal_decide(j, "refused", "resuming", NULL), 0);
	assert_int_equal(dmig_journal_has(j, "refused"), 0);
	dmig_journal_free(j);
}

/* Whoever gets the lock knows that the owner is dead, also when a child of the owner still lives. */
static void the_lock_belongs_to_the_living(void **state)
{
	(void)state;
	struct dmig_journal *j = NULL, *second = NULL;
	int p[2];
	char c;
	assert_int_equal(dmig_journal_create(id, &j, NULL), 0);
	assert_int_equal(pipe(p), 0);
	pid_t child = fork();
	if (child == 0) {
		close(p[1]);
		_exit(read(p[0], &c, 1) == 0 ? 0 : 1);
	}
	dmig_journal_free(j);
	assert_int_equal(dmig_journal_open(id, &second, NULL), -EBUSY);
	close(p[0]);
	close(p[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(dmig_journal_open(id, &second, NULL), 0);
	dmig_journal_free(second);
}

static void an_id_is_used_once(void **state)
{
	(void)state;
	struct dmig_journal *j = NULL, *second = NULL;
	assert_int_equal(dmig_journal_create(id, &j, NULL), 0);
	assert_int_equal(dmig_journal_create(id, &second, NULL), -EEXIST);
	dmig_journal_free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(records_come_back_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(a_torn_line_is_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(what_follows_a_torn_line_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(a_record_that_does_not_fit_leaves_no_trace, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_no_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(only_one_decision_gets_in, setup, teardown),
		cmocka_unit_test_setup_teardown(the_lock_belongs_to_the_living, setup, teardown),
		cmocka_unit_test_setup_teardown(an_id_is_used_once, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
