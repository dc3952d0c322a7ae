/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text we give to CRIU, and what we find in its log. */
#include "support/test.h"

#include "criu/internal.h"

#include <errno.h>

static const struct dmig_dump_facts plain = {.notify_path = "/run/x/notify.sock", .has_notify_socket = true};

static void expect_config(
	const struct dmig_dump_opts *o, const struct dmig_dump_facts *facts, const char *want)
{
	struct dmig_error *err = NULL;
	char *got = NULL;
	assert_ok(dmig_criu__config(o, facts, &got, &err), err);
	assert_string_equal(got, want);
	free(got);
}

static void plain_dump(void **state)
{
	(void)state;
	struct dmig_dump_opts o = DMIG_DUMP_OPTS_INIT;
	expect_config(&o, &plain, "notify-socket /run/x/notify.sock\nnetwork-lock skip\nghost-limit 512M\n");
}

static void everything(void **state)
{
	(void)state;
	struct dmig_dump_opts o = DMIG_DUMP_OPTS_INIT;
	struct dmig_dump_facts facts = {
		.notify_path = "/run/x/n", .netns_inode = 4026532000, .tty = {.rdev = 0x8800, .dev = 0x5b}};
	o.hook = "/usr/libexec/dmigrate/dmigrate-hook";
	o.tcp_close = o.skip_in_flight = o.external_netns = o.tty = true;
	o.log_level = 1;
	expect_config(&o, &facts,
		"action-script /usr/libexec/dmigrate/dmigrate-hook\nnetwork-lock skip\nghost-limit "
		"512M\nverbosity 1\n"
		"tcp-close\nskip-in-flight\nexternal net[4026532000]:extRootNetNS\n"
		"external mnt[/dev/pts]:/dev/pts\nexternal tty[8800:5b]\n");
}

static void inline_tmpfs_needs_both_sides(void **state)
{
	(void)state;
	struct dmig_dump_opts o = DMIG_DUMP_OPTS_INIT;
	struct dmig_dump_facts facts = plain;
	facts.has_inline_tmpfs = true;
	expect_config(&o, &facts, "notify-socket /run/x/notify.sock\nnetwork-lock skip\nghost-limit 512M\n");
	o.inline_tmpfs = true;
	expect_config(&o, &plain, "notify-socket /run/x/notify.sock\nnetwork-lock skip\nghost-limit 512M\n");
	expect_config(&o, &facts,
		"notify-socket /run/x/notify.sock\nnetwork-lock skip\nghost-limit 512M\ninline-tmpfs\n");
}

static void what_cannot_be_written_is_refused(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	char *text = NULL;
	struct dmig_dump_opts o = DMIG_DUMP_OPTS_INIT;
	const char *bad[] = {"/run/a b", "/run/a#b", "/run/a\"b", "/run/a\nb", "relative"};
	for (size_t i = 0; i < 5; i++) {
		struct dmig_dump_facts facts = {.notify_path = bad[i], .has_notify_socket = true};
		assert_fails(dmig_criu__config(&o, &facts, &text, &err), err, EINVAL);
	}
	struct dmig_dump_facts stock = {.notify_path = "/run/x"};
	assert_fails(dmig_criu__config(&o, &stock, &text, &err), err, ENOTSUP);
}

static void expect_errors(const char *log, const char *want)
{
	char *got = dmig_criu__errors_in(log, strlen(log));
	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
	free(got);
}

static void errors_of_a_log(void **state)
{
	(void)state;
	expect_errors("(00.1) fine\n(00.2) Warn  (criu/x.c:1): hm\n", NULL);
	expect_errors("", NULL);
	expect_errors("(00.010861) Error (criu/mount.c:1): mnt: No\033[2J such\n"
		      "(00.010875) Error (criu/cr-dump.c:2099): Dumping FAILED.\n",
		"Error (criu/mount.c:1): mnt: No?[2J such");
	expect_errors("Error (a): 1\nError (a): 2\nError (a): 3\nx\nError (a): 4\nError (a): 5",
		"Error (a): 2; Error (a): 3; Error (a): 4; Error (a): 5");
}

static void errors_of_a_file(void **state)
{
	(void)state;
	assert_null(dmig_criu_log_errors("/nonexistent"));
	assert_null(dmig_criu_log_errors("/dev/null"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_dump),
		cmocka_unit_test(everything),
		cmocka_unit_test(inline_tmpfs_needs_both_sides),
		cmocka_unit_test(what_cannot_be_written_is_refused),
		cmocka_unit_test(errors_of_a_log),
		cmocka_unit_test(errors_of_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
