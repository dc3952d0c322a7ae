/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <sys/stat.h>

#include "command/daemon_json.h"
#include "util/cleanup.h"

#define PATH "/usr/libexec/dmigrate/dmigrate-runc"

/* new == NULL: nothing to change. */
static void edits(const char *old, const char *path, const char *new)
{
	struct dmig_error *err = NULL;
	cleanup_free char *text = NULL;
	assert_ok(dmig_daemon_json_edit(old, "dmigrate", path, &text, &err), err);
	if (!new)
		assert_null(text);
	else
		assert_string_equal(text, new);
}

static const char alone[] = "{\n    \"runtimes\": {\n        \"dmigrate\": {\n            \"path\": \"" PATH
			    "\"\n        }\n    }\n}\n";

static void adds_to_nothing(void **state)
{
	(void)state;
	edits("", PATH, alone);
	edits(" \n\t", PATH, alone);
	edits("{}", PATH, alone);
}

static void keeps_everything_else(void **state)
{
	(void)state;
	edits("{\"z\": 1, \"runtimes\": {\"crun\": {\"path\": \"/usr/bin/crun\", \"runtimeArgs\": "
	      "[\"-v\"]}}, \"a\": [9007199254740993, 1.5, null, true]}",
		"/r",
		"{\n    \"z\": 1,\n    \"runtimes\": {\n        \"crun\": {\n            \"path\": "
		"\"/usr/bin/crun\",\n"
		"            \"runtimeArgs\": [\n                \"-v\"\n            ]\n        },\n        "
		"\"dmigrate\": {\n"
		"            \"path\": \"/r\"\n        }\n    },\n    \"a\": [\n        9007199254740993,\n  "
		"      1.5,\n        null,\n"
		"        true\n    ]\n}\n");
}

static void replaces_and_leaves(void **state)
{
	(void)state;
	edits("{\"runtimes\": {\"dmigrate\": {\"path\": \"/old\", \"runtimeArgs\": []}}}", PATH, alone);
	edits(alone, PATH, NULL);
}

static void removes(void **state)
{
	(void)state;
	edits(alone, NULL, "{\n    \"runtimes\": {}\n}\n");
	edits("{\"debug\": true}", NULL, NULL);
	edits("", NULL, NULL);
	edits("{\"runtimes\": {\"a\": {\"path\": \"/a\"}, \"dmigrate\": {\"path\": \"/d\"}}}", NULL,
		"{\n    \"runtimes\": {\n        \"a\": {\n            \"path\": \"/a\"\n        }\n    "
		"}\n}\n");
}

static void refuses_what_is_not_valid(void **state)
{
	static const char *const bad[] = {
		"{", "[]", "{\"a\": 1,}", "{\"a\": 1, \"a\": 2}", "{\"runtimes\": []}", "{} x", "// c\n{}"};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dmig_error *err = NULL;
		char *text = NULL;
		assert_int_equal(dmig_daemon_json_edit(bad[i], "dmigrate", PATH, &text, &err), -EINVAL);
		assert_int_equal(err->class, DMIG_ERR_REFUSED);
		assert_null(text);
		dmig_error_freep(&err);
	}
}

static void assert_content(const char *path, const char *content)
{
	cleanup_free char *text = NULL;
	assert_int_equal(dmig_read_file(path, 4096, &text, NULL), 0);
	assert_string_equal(text, content);
}

static void file_keeps_mode_link_and_backup(void **state)
{
	struct dmig_error *err = NULL;
	struct dmig_daemon_json j;
	struct stat st;
	char *dir = test_mkdir();
	cleanup_free char *real = dmig_asprintf("%s/real.json", dir),
			  *name = dmig_asprintf("%s/daemon.json", dir);
	(void)state;
	assert_ok(dmig_write_file_atomic(real, "{}\n", 3, 0640, &err), err);
	assert_int_equal(symlink("real.json", name), 0);
	assert_ok(dmig_daemon_json_open(name, &j, &err), err);
	assert_string_equal(j.path, real);
	assert_ok(dmig_daemon_json_write(&j, "{ }\n", &err), err);
	assert_content(real, "{ }\n");
	assert_content(j.backup, "{}\n");
	assert_int_equal(lstat(name, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(real, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_ok(dmig_daemon_json_put_back(&j, &err), err);
	assert_content(real, "{}\n");
	dmig_daemon_json_clear(&j);
	test_rmdir(dir);
}

static void file_that_was_not_there_goes_again(void **state)
{
	struct dmig_error *err = NULL;
	struct dmig_daemon_json j;
	char *dir = test_mkdir();
	cleanup_free char *name = dmig_asprintf("%s/docker/daemon.json", dir);
	(void)state;
	assert_ok(dmig_daemon_json_open(name, &j, &err), err);
	assert_null(j.old);
	assert_ok(dmig_daemon_json_write(&j, "{}\n", &err), err);
	assert_content(name, "{}\n");
	assert_int_not_equal(access(j.backup, F_OK), 0);
	assert_ok(dmig_daemon_json_put_back(&j, &err), err);
	assert_int_not_equal(access(name, F_OK), 0);
	dmig_daemon_json_clear(&j);
	test_rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_to_nothing),
		cmocka_unit_test(keeps_everything_else),
		cmocka_unit_test(replaces_and_leaves),
		cmocka_unit_test(removes),
		cmocka_unit_test(refuses_what_is_not_valid),
		cmocka_unit_test(file_keeps_mode_link_and_backup),
		cmocka_unit_test(file_that_was_not_there_goes_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
