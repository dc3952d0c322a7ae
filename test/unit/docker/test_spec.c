/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

static void reads_what_it_describes(void **state)
{
	struct fake_docker *f = fake_docker_start();
	struct dmig_docker *d = NULL;
	struct dmig_container *c = NULL;
	struct dmig_spec *s = NULL;
	struct dmig_error *err = NULL;
	char *text = NULL;
	(void)state;
	fake_source(f, edited(SPEC_28, "networks.0.Containers", "{\"x\":{\"Name\":\"neighbour\"}}",
			       "inspect.State.Health.Log", "[{\"Output\":\"chatter\"}]", NULL));
	assert_ok(dmig_docker_open(&d, &err), err);
	assert_ok(dmig_docker_inspect(d, "rich", &c, &err), err);
	assert_ok(dmig_docker_describe(d, c, &text, &err), err);
	assert_null(strstr(text, "neighbour")); /* other containers are nobody's business there */
	assert_null(strstr(text, "chatter"));
	assert_ok(dmig_spec_parse(text, strlen(text), &s, &err), err);
	const struct dmig_container *there = dmig_spec_container(s);
	assert_string_equal(there->id, c->id);
	assert_string_equal(there->networks[1].driver, "bridge");
	assert_int_equal(dmig_spec_layers(s), 1);
	assert_int_equal(json_array_size(s->networks), 2);
	assert_int_equal(json_array_size(s->volumes), 3); /* one of them is mounted three times */
	free(text);
	dmig_spec_free(s);
	dmig_container_free(c);
	dmig_docker_free(d);
	fake_docker_stop(f);
}

static void another_name(void **state)
{
	struct dmig_spec *s = spec_of(load_json(SPEC_20));
	struct dmig_error *err = NULL;
	(void)state;
	assert_ok(dmig_spec_rename(s, "other.name", &err), err);
	assert_string_equal(dmig_spec_container(s)->name, "other.name");
	assert_fails(dmig_spec_rename(s, "a b", &err), err, EINVAL);
	assert_fails(dmig_spec_rename(s, "", &err), err, EINVAL);
	assert_string_equal(dmig_spec_container(s)->name, "other.name");
	dmig_spec_free(s);
}

static void incomplete_or_wrong_descriptions_are_refused(void **state)
{
	static const char *const edits[][2] = {
		{"inspect", "-"},
		{"inspect", "[]"},
		{"image", "-"},
		{"image.id", "\"latest\""},
		{"image.config", "-"},
		{"image.diff_ids.0", "\"x\""},
		{"image.diff_ids", "{}"},
		{"image.names", "[\"a b\"]"},
		{"networks", "[]"}, /* rich is on two */
		{"networks", "{}"},
		{"networks.0", "7"},
		{"networks.0.Name", "\"a\\nb\""},
		{"networks.0.Driver", "\"a b\""},
		{"networks.0.IPAM", "[]"},
		{"networks.0.IPAM.Config.0.Subnet", "\"10.0.0.0/99\""},
		{"networks.0.IPAM.Config.0", "\"10.0.0.0/8\""},
		{"networks.0.Options", "{\"a\":1}"},
		{"networks.0.Internal", "\"no\""},
		{"volumes", "[]"},
		{"volumes.0.Name", "\"../x\""},
		{"volumes.0.Options", "[]"},
		{"volumes.0.Labels", "{\"a\":{}}"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		struct dmig_error *err = NULL;
		struct dmig_spec *s = NULL;
		int r = parse_spec(edited(SPEC_20, edits[i][0], edits[i][1], NULL), &s, &err);
		if (r != -EINVAL)
			fail_msg("%s = %s was taken (%d)", edits[i][0], edits[i][1], r);
		assert_non_null(err);
		dmig_error_freep(&err);
	}
}

static void another_version_is_refused(void **state)
{
	struct dmig_error *err = NULL;
	struct dmig_spec *s = NULL;
	(void)state;
	assert_fails(parse_spec(edited(SPEC_20, "version", "2", NULL), &s, &err), err, EPROTO);
	assert_fails(parse_spec(edited(SPEC_20, "version", "-", NULL), &s, &err), err, EPROTO);
	assert_fails(parse_spec(json_array(), &s, &err), err, EINVAL);
}

/* Docker's reader would take these for Privileged, HostConfig and so on; ours would not see them. */
static void misleading_names_are_refused(void **state)
{
	static const char *const paths[] = {
		"inspect.HostConfig.privileged",
		"inspect.HostConfig.PRIVILEGED",
		"inspect.HostConfig.Binds\xe2\x84\xaa", /* Kelvin sign */
		"inspect.HostConfig.Lin\xe2\x84\xaas",
		"inspect.HostConfig.Future field",
		"inspect.Config.HostConfig",
		"inspect.Config.hostconfig",
		"inspect.Config.NetworkingConfig",
		"inspect.Config.image",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct dmig_error *err = NULL;
		struct dmig_spec *s = NULL;
		if (parse_spec(edited(SPEC_20, paths[i], "null", NULL), &s, &err) != -EINVAL)
			fail_msg("%s was taken", paths[i]);
		dmig_error_freep(&err);
	}
	/* Two unknown ones that Docker could not tell apart. */
	struct dmig_error *err = NULL;
	struct dmig_spec *s = NULL;
	json_t *root = edited(
		SPEC_20, "inspect.HostConfig.FutureField", "1", "inspect.HostConfig.Futurefield", "2", NULL);
	assert_fails(parse_spec(root, &s, &err), err, EINVAL);
	/* One alone is fine: it belongs to a newer Docker. */
	dmig_spec_free(spec_of(edited(SPEC_20, "inspect.HostConfig.FutureField", "1", NULL)));
}

static void too_large_is_refused(void **state)
{
	struct dmig_error *err = NULL;
	struct dmig_spec *s = NULL;
	size_t len = (1u << 20) + 1;
	char *text = malloc(len);
	(void)state;
	memset(text, ' ', len);
	assert_fails(dmig_spec_parse(text, len, &s, &err), err, EFBIG);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_it_describes),
		cmocka_unit_test(another_name),
		cmocka_unit_test(incomplete_or_wrong_descriptions_are_refused),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(misleading_names_are_refused),
		cmocka_unit_test(too_large_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
