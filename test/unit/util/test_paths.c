/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <limits.h>

#include "util/cleanup.h"
#include "util/paths.h"

/* Run again as a copy of this program elsewhere; it prints what it finds. */
static void show(void)
{
	cleanup_free char *criu = dmig_libexec_path("criu");
	cleanup_free char *daemon = dmig_program_path("dmigrated");
	printf("%s %s", criu, daemon);
}

static void make(const char *dir, const char *folder, const char *name)
{
	struct dmig_error *err = NULL;
	cleanup_free char *at = dmig_asprintf("%s/%s", dir, folder);
	cleanup_free char *path = dmig_asprintf("%s/%s", at, name);
	assert_int_equal(dmig_mkdir_p(at, 0755), 0);
	assert_ok(dmig_write_file_atomic(path, "#!/bin/sh\n", 10, 0755, &err), err);
}

static void copy_self(const char *to)
{
	cleanup_free char *data = NULL;
	size_t len;
	struct dmig_error *err = NULL;
	assert_int_equal(dmig_read_file("/proc/self/exe", 64 << 20, &data, &len), 0);
	assert_ok(dmig_write_file_atomic(to, data, len, 0755, &err), err);
}

/* The copy at dir/folder/self says want_criu and want_daemon, below dir unless they start with '='. */
static void finds(const char *dir, const char *folder, const char *want_criu, const char *want_daemon)
{
	cleanup_free char *self = dmig_asprintf("%s/%s/self", dir, folder);
	cleanup_free char *want = dmig_asprintf("%s%s %s%s", *want_criu == '=' ? "" : dir,
		*want_criu == '=' ? want_criu + 1 : want_criu, *want_daemon == '=' ? "" : dir,
		*want_daemon == '=' ? want_daemon + 1 : want_daemon);
	char got[PATH_MAX * 2] = "";
	copy_self(self);
	cleanup_free char *command = dmig_asprintf("%s --show", self);
	FILE *out = popen(command, "r");
	assert_non_null(out);
	assert_true(fread(got, 1, sizeof(got) - 1, out) > 0);
	assert_int_equal(pclose(out), 0);
	assert_string_equal(got, want);
}

/* Debian's own criu stands beside dmigrated in /usr/sbin. */
static void a_foreign_criu_is_not_taken(void **state)
{
	char *dir = test_mkdir();
	(void)state;
	make(dir, "sbin", "criu");
	finds(dir, "sbin", "=" DMIG_LIBEXECDIR "/criu", "=dmigrated");
	test_rmdir(dir);
}

static void an_installation_elsewhere(void **state)
{
	char *dir = test_mkdir();
	(void)state;
	make(dir, "sbin", "criu");
	make(dir, "sbin", "dmigrated");
	make(dir, "bin", "dmigrate");
	make(dir, "libexec/dmigrate", "dmigrate-runc");
	make(dir, "libexec/dmigrate", "criu");
	finds(dir, "sbin", "/libexec/dmigrate/criu", "/sbin/dmigrated");
	finds(dir, "bin", "/libexec/dmigrate/criu", "/sbin/dmigrated");
	finds(dir, "libexec/dmigrate", "/libexec/dmigrate/criu", "=dmigrated");
	test_rmdir(dir);
}

static void the_build_tree(void **state)
{
	char *dir = test_mkdir();
	(void)state;
	make(dir, "bin", "dmigrate-runc");
	make(dir, "bin", "dmigrated");
	make(dir, "criu", "criu");
	finds(dir, "bin", "/criu/criu", "/bin/dmigrated");
	test_rmdir(dir);
}

static void the_environment_comes_first(void **state)
{
	char *dir = test_mkdir();
	cleanup_free char *other = dmig_asprintf("%s/other", dir);
	(void)state;
	make(dir, "bin", "dmigrate-runc");
	make(dir, "bin", "criu");
	make(dir, "bin", "dmigrated");
	make(dir, "other", "criu");
	setenv("DMIGRATE_LIBEXEC", other, 1);
	finds(dir, "bin", "/other/criu", "/bin/dmigrated");
	unsetenv("DMIGRATE_LIBEXEC");
	test_rmdir(dir);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_foreign_criu_is_not_taken),
		cmocka_unit_test(an_installation_elsewhere),
		cmocka_unit_test(the_build_tree),
		cmocka_unit_test(the_environment_comes_first),
	};
	if (argc > 1 && !strcmp(argv[1], "--show")) {
		show();
		return 0;
	}
	unsetenv("DMIGRATE_LIBEXEC");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
