/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include "criu/cgroup-path.h"
#include "criu/freezer-internal.h"

#include <errno.h>

static void expect_path(const char *text, bool v2, const char *want)
{
	char *got = dmig_cgroup_path_in(text, v2);
	if (want) {
		assert_non_null(got);
		assert_string_equal(got, want);
	} else
		assert_null(got);
	free(got);
}

static void path_of_each_hierarchy(void **state)
{
	(void)state;
	const char *text =
		"9:name=systemd:/s\n6:cpu,freezer,x:/docker/ab:c\n0::/system.slice/docker-ab.scope\n";
	expect_path(text, false, "/docker/ab:c");
	expect_path(text, true, "/system.slice/docker-ab.scope");
	expect_path("6:notfreezer:/x\n", false, NULL);
	expect_path("6:freezer:/x\n", true, NULL);
	expect_path("0::/", true, "/");
}

static void paths_outside_our_namespace_are_refused(void **state)
{
	(void)state;
	expect_path("0::/../x\n", true, NULL);
	expect_path("0::/x/..\n", true, NULL);
	expect_path("0::/..x/y..z\n", true, "/..x/y..z");
	expect_path("0::x\n", true, NULL);
	expect_path("0::\n", true, NULL);
	expect_path("0:\n:\n\n", true, NULL);
}

static const char mounts[] =
	"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
	"short line\n"
	"36 31 0:33 / /sys/fs/cgroup/devices rw shared:3 - cgroup cgroup rw,devices\n"
	"37 31 0:34 / /sys/fs/cg\\040roup/freezer rw shared:4 master:2 - cgroup cgroup rw,freezer\n"
	"41 31 0:38 /host /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

static void expect_folder(bool v2, const char *path, const char *want)
{
	char *got = dmig_cgroup_folder(mounts, v2, path);
	if (want) {
		assert_non_null(got);
		assert_string_equal(got, want);
	} else
		assert_null(got);
	free(got);
}

static void folder_is_mount_point_minus_root(void **state)
{
	(void)state;
	expect_folder(false, "/docker/x", "/sys/fs/cg roup/freezer/docker/x");
	expect_folder(true, "/host/docker/x", "/sys/fs/cgroup/unified/docker/x");
	expect_folder(true, "/hostile/x", NULL);
	expect_folder(true, "/docker/x", NULL);
}

static void stat_with_any_name(void **state)
{
	(void)state;
	struct dmig_proc_stat s;
	assert_int_equal(dmig_freezer__parse_stat("12 (a) S) R 77 1 1", &s), 0);
	assert_string_equal(s.name, "a) S");
	assert_int_equal(s.state, 'R');
	assert_int_equal(s.parent, 77);
	assert_int_equal(dmig_freezer__parse_stat("12 (\n\033[2J) Z 0 1", &s), 0);
	assert_string_equal(s.name, "??[2J");
	assert_int_equal(dmig_freezer__parse_stat("", &s), -EBADMSG);
	assert_int_equal(dmig_freezer__parse_stat("1 )(", &s), -EBADMSG);
	assert_int_equal(dmig_freezer__parse_stat("1 (x)", &s), -EBADMSG);
	assert_int_equal(dmig_freezer__parse_stat("1 (x) S -4", &s), -EBADMSG);
	assert_int_equal(dmig_freezer__parse_stat("1 (x) S 99999999999999999999", &s), -EBADMSG);
}

static void procs_list(void **state)
{
	(void)state;
	pid_t *pids = NULL;
	size_t n = 0;
	assert_int_equal(dmig_freezer__parse_procs("1\n2\n30\n0\n5", &pids, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(pids[2], 30);
	assert_int_equal(pids[4], 5);
	assert_int_equal(dmig_freezer__parse_procs("x\n", &pids, &n), -EBADMSG);
	assert_int_equal(dmig_freezer__parse_procs("-1\n", &pids, &n), -EBADMSG);
	assert_int_equal(dmig_freezer__parse_procs("5000000000\n", &pids, &n), -EBADMSG);
	free(pids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_of_each_hierarchy),
		cmocka_unit_test(paths_outside_our_namespace_are_refused),
		cmocka_unit_test(folder_is_mount_point_minus_root),
		cmocka_unit_test(stat_with_any_name),
		cmocka_unit_test(procs_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
