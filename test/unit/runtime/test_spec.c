/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>

#include "runtime/bigint.h"
#include "runtime/spec.h"
#include "util/cleanup.h"

static char *fake_resolve(const char *path, void *opaque)
{
	(void)opaque;
	if (strstr(path, "missing")) {
		errno = ENOENT;
		return NULL;
	}
	return dmig_asprintf("/real%s", path);
}

static const char config[] =
	"{\"root\":{\"path\":\"rootfs\"},"
	"\"process\":{\"terminal\":true,\"rlimits\":[{\"hard\":18446744073709551615}],\"args\":["
	"\"a\\\"1234567890123456789012\"]},"
	"\"hooks\":{\"prestart\":[{\"path\":\"/x\"}],\"createRuntime\":[],\"poststop\":[{\"path\":\"/y\"}]},"
	"\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	"{\"destination\":\"/dev/"
	"pts\",\"type\":\"devpts\",\"source\":\"devpts\",\"options\":[\"newinstance\"]},"
	"{\"destination\":\"/v\",\"type\":\"bind\",\"source\":\"/vol\",\"options\":[\"rbind\"]},"
	"{\"destination\":\"/w\",\"source\":\"rel\",\"options\":[\"bind\"]}],"
	"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"}]}}";

static void changes_what_the_restore_needs(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *out = NULL;
	struct dmig_spec_edit edit = {
		.bundle = "/b", .netns_path = "/run/docker/netns/n", .devpts = "/d", .resolve = fake_resolve};
	assert_ok(dmig_spec_for_restore(config, strlen(config), &edit, &out, &err), err);
	assert_string_equal(out,
		"{\"root\":{\"path\":\"/b/rootfs\"},"
		"\"process\":{\"terminal\":false,\"rlimits\":[{\"hard\":18446744073709551615}],\"args\":["
		"\"a\\\"1234567890123456789012\"]},"
		"\"hooks\":{\"poststop\":[{\"path\":\"/y\"}]},"
		"\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
		"{\"destination\":\"/dev/pts\",\"type\":\"bind\",\"source\":\"/d\",\"options\":[\"bind\"]},"
		"{\"destination\":\"/v\",\"type\":\"bind\",\"source\":\"/real/vol\",\"options\":[\"rbind\"]},"
		"{\"destination\":\"/w\",\"source\":\"/real/b/rel\",\"options\":[\"bind\"]}],"
		"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\",\"path\":\"/run/docker/"
		"netns/n\"}]}}");
}

static void leaves_alone_what_it_is_not_asked_for(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *out = NULL;
	struct dmig_spec_edit edit = {.bundle = "/b", .resolve = fake_resolve};
	assert_ok(dmig_spec_for_restore(config, strlen(config), &edit, &out, &err), err);
	assert_non_null(strstr(out, "\"terminal\":true"));
	assert_non_null(strstr(out, "\"type\":\"devpts\""));
	assert_non_null(strstr(out, "{\"type\":\"network\"}"));
}

static void bad_input_is_refused(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	char *out = NULL;
	struct dmig_spec_edit edit = {.bundle = "/b", .netns_path = "/n", .resolve = fake_resolve};
	static const char *const bad[] = {"", "[]", "{", "{}", "{\"root\":{}}", "{\"root\":{\"path\":\"\"}}",
		"{\"root\":{\"path\":\"/r\"}}", /* no network namespace */
		"{\"root\":{\"path\":\"dmigrate:bigint:\"}}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_fails(dmig_spec_for_restore(bad[i], strlen(bad[i]), &edit, &out, &err), err, EINVAL);
	edit.netns_path = NULL;
	static const char lost[] =
		"{\"root\":{\"path\":\"/r\"},\"mounts\":[{\"type\":\"bind\",\"source\":\"/missing\"}]}";
	assert_fails(dmig_spec_for_restore(lost, strlen(lost), &edit, &out, &err), err, ENOENT);
	edit.devpts = "/d";
	static const char no_pts[] = "{\"root\":{\"path\":\"/r\"},\"mounts\":[]}";
	assert_fails(dmig_spec_for_restore(no_pts, strlen(no_pts), &edit, &out, &err), err, EINVAL);
	assert_null(out);
}

static void root_is_absolute(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *out = NULL, *other = NULL;
	assert_ok(dmig_spec_root(config, strlen(config), "/b", &out, &err), err);
	assert_string_equal(out, "/b/rootfs");
	assert_ok(dmig_spec_root("{\"root\":{\"path\":\"/m\"}}", 23, "/b", &other, &err), err);
	assert_string_equal(other, "/m");
}

static void state_names_dockers_bundle(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *out = NULL;
	static const char text[] = "{\"id\":\"c\",\"config\":{\"labels\":[\"a=b\",\"bundle=/"
				   "copy\"],\"n\":18446744073709551615}}";
	assert_ok(dmig_spec_state_bundle(text, strlen(text), "/docker's", &out, &err), err);
	assert_string_equal(out, "{\"id\":\"c\",\"config\":{\"labels\":[\"a=b\",\"bundle=/"
				 "docker's\"],\"n\":18446744073709551615}}");
}

static void large_integers_survive(void **state)
{
	(void)state;
	static const struct {
		const char *in, *wrapped;
	} cases[] = {
		{"{\"a\":18446744073709551615}", "{\"a\":\"dmigrate:bigint:18446744073709551615\"}"},
		{"[-9999999999999999999,1]", "[\"dmigrate:bigint:-9999999999999999999\",1]"},
		{"[999999999999999999]", "[999999999999999999]"},
		{"[12345678901234567890.5,1e300]", "[12345678901234567890.5,1e300]"},
		{"[\"12345678901234567890\",\"\\\"12345678901234567890\"]",
			"[\"12345678901234567890\",\"\\\"12345678901234567890\"]"},
		{"\"open \\", "\"open \\"},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cleanup_free char *wrapped = dmig_bigint_wrap(cases[i].in, strlen(cases[i].in));
		assert_non_null(wrapped);
		assert_string_equal(wrapped, cases[i].wrapped);
		cleanup_free char *back = dmig_bigint_unwrap(wrapped);
		assert_string_equal(back, cases[i].in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_what_the_restore_needs),
		cmocka_unit_test(leaves_alone_what_it_is_not_asked_for),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(root_is_absolute),
		cmocka_unit_test(state_names_dockers_bundle),
		cmocka_unit_test(large_integers_survive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
