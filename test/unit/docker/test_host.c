/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

static void upper_is(const char *text, int wanted, const char *path)
{
	char *upper = NULL;
	assert_int_equal(dmig_docker__mountinfo_upper(text, strlen(text), &upper), wanted);
	if (path)
		assert_string_equal(upper, path);
	free(upper);
}

static void finds_the_upper_directory(void **state)
{
	(void)state;
	upper_is("22 1 0:20 / /proc rw - proc proc rw\n"
		 "21 1 0:55 / / rw,relatime master:1 - overlay overlay "
		 "rw,lowerdir=/l1:/l2,upperdir=/var/lib/docker/"
		 "overlay2/abc/diff,workdir=/w\n",
		0, "/var/lib/docker/overlay2/abc/diff");
	/* No newline at the end, no optional fields. */
	upper_is("21 1 0:55 / / rw - overlay none rw,upperdir=/u", 0, "/u");
}

static void understands_escapes_and_relative_names(void **state)
{
	(void)state;
	upper_is("1 1 0:5 / / rw - overlay overlay rw,upperdir=/a\\040b\\054c\\134d,x=y\n", 0, "/a b,c\\d");
	upper_is("1 1 0:5 / / rw - overlay overlay rw,upperdir=abc/diff\n", 0, "abc/diff");
	upper_is("1 1 0:5 / / rw - overlay overlay rw,upperdir=/a\\04\n", 0, "/a\\04");
}

static void the_last_mount_at_the_root_counts(void **state)
{
	(void)state;
	upper_is("1 1 0:5 / / rw - overlay overlay rw,upperdir=/first\n"
		 "2 1 0:6 / / rw - overlay overlay rw,upperdir=/second\n",
		0, "/second");
	upper_is("1 1 0:5 / / rw - overlay overlay rw,upperdir=/first\n2 1 0:6 / / rw - ext4 /dev/vda rw\n",
		-EOPNOTSUPP, NULL);
}

static void other_roots_are_refused(void **state)
{
	(void)state;
	upper_is("", -EOPNOTSUPP, NULL);
	upper_is("\n\n", -EOPNOTSUPP, NULL);
	upper_is("1 1 0:5 / / rw - btrfs /dev/vda rw,upperdir=/x\n", -EOPNOTSUPP, NULL);
	upper_is("1 1 0:5 / / rw - overlay overlay rw,lowerdir=/x\n", -EOPNOTSUPP, NULL);
	upper_is("1 1 0:5 / / rw - overlay overlay\n", -EOPNOTSUPP, NULL);
	upper_is("1 1 0:5 / / rw overlay overlay upperdir=/x\n", -EOPNOTSUPP, NULL);
	upper_is("1 1 0:5 / /other rw - overlay overlay rw,upperdir=/x\n", -EOPNOTSUPP, NULL);
}

static void log_files(void **state)
{
	struct dmig_docker d = {.root_dir = (char *)"/var/lib/docker"};
	struct dmig_container *c = container_of(load_json(SPEC_20));
	struct dmig_error *err = NULL;
	char *path = NULL, *wanted = dmig_asprintf("/var/lib/docker/containers/%s/%s-json.log", c->id, c->id);
	(void)state;
	assert_ok(dmig_docker_log_file(&d, c, &path, &err), err);
	assert_string_equal(path, wanted);
	free(path);
	c->log_path[0] = '\0'; /* created, never started */
	assert_ok(dmig_docker_log_file(&d, c, &path, &err), err);
	assert_string_equal(path, wanted);
	free(path);
	free(wanted);
	strcpy(c->log_driver, "local");
	assert_fails(dmig_docker_log_file(&d, c, &path, &err), err, EOPNOTSUPP);
	dmig_container_free(c);
}

static void runc_state_of_nobody(void **state)
{
	struct dmig_error *err = NULL;
	char *path = NULL;
	(void)state;
	assert_fails(dmig_docker_runc_root(ID_A, &path, &err), err, ENOENT);
	assert_fails(dmig_docker_runc_root("../*", &path, &err), err, EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_upper_directory),
		cmocka_unit_test(understands_escapes_and_relative_names),
		cmocka_unit_test(the_last_mount_at_the_root_counts),
		cmocka_unit_test(other_roots_are_refused),
		cmocka_unit_test(log_files),
		cmocka_unit_test(runc_state_of_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
