/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <signal.h>

#include "runtime/args.h"

static bool is_cid(const char *name, void *opaque)
{
	return !strcmp(name, opaque);
}

static struct dmig_runc_args parse(const char *line)
{
	static char buffer[512];
	char *argv[40], *save = NULL;
	int argc = 0;
	struct dmig_runc_args a;
	snprintf(buffer, sizeof(buffer), "%s", line);
	for (char *w = strtok_r(buffer, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	dmig_runc_args_parse(argc, argv, is_cid, (char[]){"CID"}, &a);
	return a;
}

#define GLOBALS "runc --root /run/r --log /b/log.json --log-format json --systemd-cgroup "

static void create_as_containerd_writes_it(void **state)
{
	(void)state;
	struct dmig_runc_args a =
		parse(GLOBALS "create --bundle /b --pid-file /b/init.pid --console-socket /c.sock CID");
	assert_string_equal(a.command, "create");
	assert_string_equal(a.id, "CID");
	assert_string_equal(a.root, "/run/r");
	assert_string_equal(a.log, "/b/log.json");
	assert_string_equal(a.log_format, "json");
	assert_string_equal(a.bundle, "/b");
	assert_string_equal(a.pid_file, "/b/init.pid");
	assert_string_equal(a.console_socket, "/c.sock");
	assert_true(a.systemd_cgroup);
}

static void equals_sign_and_single_dash(void **state)
{
	(void)state;
	struct dmig_runc_args a = parse("runc -root=/r --log=/l create -b=/b CID");
	assert_string_equal(a.root, "/r");
	assert_string_equal(a.log, "/l");
	assert_string_equal(a.bundle, "/b");
	assert_string_equal(a.id, "CID");
	a = parse("runc --systemd-cgroup=false start CID");
	assert_false(a.systemd_cgroup);
	assert_string_equal(a.id, "CID");
}

static void kill_has_a_signal(void **state)
{
	(void)state;
	struct dmig_runc_args a = parse(GLOBALS "kill --all CID 15");
	assert_string_equal(a.id, "CID");
	assert_string_equal(a.signal, "15");
	a = parse("runc kill CID");
	assert_null(a.signal);
	a = parse("runc kill CID -a KILL");
	assert_string_equal(a.signal, "KILL");
}

static void delete_force_before_and_behind(void **state)
{
	(void)state;
	assert_true(parse(GLOBALS "delete --force CID").force);
	assert_true(parse(GLOBALS "delete CID --force").force);
	assert_true(parse(GLOBALS "delete -f CID").force);
	assert_false(parse(GLOBALS "delete CID").force);
}

static void exec_ends_at_the_id(void **state)
{
	(void)state;
	struct dmig_runc_args a =
		parse("runc exec --process /p.json --detach -t -e A=B --pid-file /x CID sh --force");
	assert_string_equal(a.id, "CID");
	assert_false(a.force);
	/* What the process is called is none of our business. */
	a = parse("runc exec OTHER kill CID");
	assert_string_equal(a.id, "OTHER");
}

static void unknown_options_do_not_hide_the_id(void **state)
{
	(void)state;
	assert_string_equal(parse("runc --new value start CID").command, "start");
	assert_string_equal(parse("runc --new start CID").command, "start");
	assert_string_equal(parse("runc --new=value --other start CID").id, "CID");
	assert_string_equal(parse("runc start --new CID").id, "CID");
	assert_string_equal(parse("runc start --new value CID").id, "CID");
	assert_string_equal(parse("runc start --new value --more CID").id, "CID");
	assert_string_equal(parse("runc start --new=value CID").id, "CID");
	assert_string_equal(parse("runc start --new other").id, "other");
	assert_string_equal(parse("runc start -- CID").id, "CID");
}

static void nothing_to_find(void **state)
{
	(void)state;
	assert_null(parse("runc").command);
	assert_null(parse("runc --version").command);
	assert_null(parse("runc --root").command);
	assert_null(parse("runc features").id);
	assert_null(parse("runc list --format json").id);
	assert_string_equal(parse("runc ps --format json CID").format, "json");
	assert_null(parse("runc --root /r create --bundle").id);
}

static void signals(void **state)
{
	(void)state;
	assert_int_equal(dmig_signal_parse(NULL), SIGTERM);
	assert_int_equal(dmig_signal_parse("9"), SIGKILL);
	assert_int_equal(dmig_signal_parse("KILL"), SIGKILL);
	assert_int_equal(dmig_signal_parse("sigusr1"), SIGUSR1);
	assert_int_equal(dmig_signal_parse("0"), 0);
	assert_int_equal(dmig_signal_parse("-1"), -EINVAL);
	assert_int_equal(dmig_signal_parse("1000"), -EINVAL);
	assert_int_equal(dmig_signal_parse("9x"), -EINVAL);
	assert_int_equal(dmig_signal_parse(""), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(create_as_containerd_writes_it),
		cmocka_unit_test(equals_sign_and_single_dash),
		cmocka_unit_test(kill_has_a_signal),
		cmocka_unit_test(delete_force_before_and_behind),
		cmocka_unit_test(exec_ends_at_the_id),
		cmocka_unit_test(unknown_options_do_not_hide_the_id),
		cmocka_unit_test(nothing_to_find),
		cmocka_unit_test(signals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
