/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

static json_t *rewritten(const struct dmig_spec *s)
{
	struct dmig_error *err = NULL;
	json_t *host = json_deep_copy(s->host_config);
	assert_ok(dmig_docker__rewrite_mounts(s, host, &err), err);
	return host;
}

static bool has_bind(json_t *host, const char *text)
{
	json_t *v;
	size_t i;
	json_array_foreach(
		json_object_get(host, "Binds"), i, v) if (!strcmp(json_string_value(v), text)) return true;
	return false;
}

static void volumes_without_a_name_are_left_to_docker(void **state)
{
	json_t *root = load_json(SPEC_20);
	struct dmig_spec *s = spec_of(json_incref(root));
	json_t *host = rewritten(s), *v;
	size_t i, found = 0;
	(void)state;
	assert_true(has_bind(host, "named:/data"));
	assert_true(has_bind(host, "named:/ro:ro"));
	assert_int_equal(json_array_size(json_object_get(host, "Binds")), 2); /* /anon is in Config.Volumes */
	json_array_foreach(json_object_get(host, "Mounts"), i, v)
	{
		if (!strcmp(text_at(v, "Target"), "/mnt2")) {
			assert_null(json_object_get(v, "Source"));
			found++;
		} else {
			assert_string_equal(text_at(v, "Source"), "named");
		}
	}
	assert_int_equal(found, 1);
	json_decref(host);
	dmig_spec_free(s);
	json_decref(root);
}

/* Nothing but the mount itself tells of it: without an entry of ours it would be missing. */
static void a_volume_that_nothing_asks_for_is_named(void **state)
{
	struct dmig_spec *s = spec_of(edited(SPEC_20, "inspect.Config.Volumes", "null", NULL));
	json_t *host = rewritten(s), *binds = json_object_get(host, "Binds");
	(void)state;
	assert_int_equal(json_array_size(binds), 3);
	assert_int_equal(strlen(json_string_value(json_array_get(binds, 2))), 64 + strlen(":/anon"));
	json_decref(host);
	dmig_spec_free(s);
}

static void a_bind_without_a_name_stays_as_it_is(void **state)
{
	struct dmig_spec *s = spec_of(edited(
		SPEC_20, "inspect.HostConfig.Binds", "[\"named:/data\",\"named:/ro:ro\",\"/anon/\"]", NULL));
	json_t *host = rewritten(s), *binds = json_object_get(host, "Binds");
	(void)state;
	assert_int_equal(json_array_size(binds), 3);
	assert_string_equal(json_string_value(json_array_get(binds, 2)), "/anon/");
	json_decref(host);
	dmig_spec_free(s);
}

static void host_paths_are_no_volumes(void **state)
{
	/* A bind mount whose source has the volume's place in its name. */
	struct dmig_spec *s = spec_of(edited(SPEC_20, "inspect.HostConfig.Binds",
		"[\"/anon:/x\",\"named:/data\",\"named:/ro:ro\"]", NULL));
	json_t *host = rewritten(s);
	(void)state;
	assert_true(has_bind(host, "/anon:/x"));
	assert_int_equal(json_array_size(json_object_get(host, "Binds")), 3);
	json_decref(host);
	dmig_spec_free(s);
}

static void places_with_a_colon_take_the_long_form(void **state)
{
	json_t *root = load_json(SPEC_20), *v;
	size_t i;
	json_array_foreach(at(root, "inspect.Mounts"), i, v) if (!strcmp(text_at(v, "Destination"), "/anon"))
	{
		json_object_set_new(v, "Destination", json_string("/an:on"));
		json_object_set_new(v, "RW", json_false());
	}
	struct dmig_spec *s = spec_of(root);
	json_t *host = rewritten(s), *mounts = json_object_get(host, "Mounts");
	json_t *last = json_array_get(mounts, json_array_size(mounts) - 1);
	(void)state;
	assert_text(last, "Target", "/an:on");
	assert_text(last, "Type", "volume");
	assert_true(json_is_true(json_object_get(last, "ReadOnly")));
	json_decref(host);
	dmig_spec_free(s);
}

static void no_lists_at_all(void **state)
{
	struct dmig_spec *s = spec_of(
		edited(SPEC_20, "inspect.HostConfig.Binds", "null", "inspect.HostConfig.Mounts", "-", NULL));
	json_t *host = rewritten(s);
	(void)state;
	assert_int_equal(json_array_size(json_object_get(host, "Binds")), 4);
	assert_true(has_bind(host, "named:/ro:ro"));
	json_decref(host);
	dmig_spec_free(s);
}

static void kinds_of_volumes(void **state)
{
	static const struct {
		const char *driver, *options;
		enum dmig_docker__volume_kind kind;
	} table[] = {
		{"local", "null", VOLUME_PLAIN},
		{"", "{}", VOLUME_PLAIN},
		{"local", "{\"o\":\"size=1m\"}", VOLUME_PLAIN},
		{"local", "{\"type\":\"tmpfs\",\"device\":\"tmpfs\"}", VOLUME_TMPFS},
		{"local", "{\"type\":\"none\",\"o\":\"bind\",\"device\":\"/srv\"}", VOLUME_BIND},
		{"local", "{\"o\":\"bind\",\"device\":\"/srv\"}", VOLUME_BIND},
		{"local", "{\"type\":\"ext4\",\"device\":\"/dev/sdb\"}", VOLUME_DEVICE},
		{"local", "{\"type\":\"overlay\",\"device\":\"overlay\",\"o\":\"lowerdir=/etc\"}",
			VOLUME_DEVICE},
		{"local", "{\"type\":\"nfs4\",\"device\":\":/x\"}", VOLUME_SHARED},
		{"local", "{\"type\":\"cifs\",\"device\":\"//h/x\"}", VOLUME_SHARED},
		{"local", "{\"type\":\"fuse.sshfs\",\"device\":\"h:/x\"}", VOLUME_SHARED},
		{"vieux/sshfs:latest", "null", VOLUME_SHARED},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		json_t *options = json_loads(table[i].options, JSON_DECODE_ANY, NULL);
		if (dmig_docker__volume_kind(table[i].driver, options) != table[i].kind)
			fail_msg("%s %s", table[i].driver, table[i].options);
		json_decref(options);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volumes_without_a_name_are_left_to_docker),
		cmocka_unit_test(a_volume_that_nothing_asks_for_is_named),
		cmocka_unit_test(a_bind_without_a_name_stays_as_it_is),
		cmocka_unit_test(host_paths_are_no_volumes),
		cmocka_unit_test(places_with_a_colon_take_the_long_form),
		cmocka_unit_test(no_lists_at_all),
		cmocka_unit_test(kinds_of_volumes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
