/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

static json_t *body_of(const struct dmig_spec *s, int api, bool tcp_close, const char *networks)
{
	struct dmig_error *err = NULL;
	json_t *body = NULL, *here = json_loads(networks, 0, NULL);
	struct dmig_docker__body_opts o = {.image = "busybox",
		.runtime = "dmigrate",
		.api_minor = api,
		.tcp_close = tcp_close,
		.networks = here};
	assert_non_null(here);
	assert_ok(dmig_docker__body(s, &o, &body, &err), err);
	json_decref(here);
	return body;
}

/* The body for an edited description and an engine without networks. */
static json_t *body_for(json_t *root, int api, bool tcp_close)
{
	struct dmig_spec *s = spec_of(root);
	json_t *body = body_of(s, api, tcp_close, "[]");
	dmig_spec_free(s);
	return body;
}

static void nothing_is_lost(void **state)
{
	static const char *const different[] = {"Runtime", "RestartPolicy", "Links", "Binds", "Mounts"};
	json_t *root = edited(SPEC_28, "inspect.HostConfig.FutureField", "{\"a\":[1]}",
		"inspect.Config.Shell", "[\"/x\"]", NULL);
	json_t *body = body_for(json_incref(root), 51, false), *v;
	const char *key;
	(void)state;
	json_object_foreach(at(root, "inspect.Config"), key,
		v) if (!json_equal(v, json_object_get(body, key))) fail_msg("Config.%s differs", key);
	json_object_foreach(at(root, "inspect.HostConfig"), key, v)
	{
		bool may = false;
		for (size_t i = 0; i < sizeof(different) / sizeof(*different); i++)
			may |= !strcmp(different[i], key);
		if (!may && !json_equal(v, json_object_get(json_object_get(body, "HostConfig"), key)))
			fail_msg("HostConfig.%s differs", key);
	}
	assert_text(body, "HostConfig.Runtime", "dmigrate");
	assert_text(body, "HostConfig.RestartPolicy.Name", "no");
	assert_int_equal(json_integer_value(at(body, "HostConfig.RestartPolicy.MaximumRetryCount")), 0);
	json_decref(body);
	json_decref(root);
}

static void addresses_are_fixed(void **state)
{
	json_t *body = body_for(load_json(SPEC_28), 51, false);
	const char *netx = "NetworkingConfig.EndpointsConfig.netx";
	(void)state;
	assert_int_equal(json_object_size(at(body, "NetworkingConfig.EndpointsConfig")), 2);
	assert_text(body, "NetworkingConfig.EndpointsConfig.netx.IPAMConfig.IPv4Address", "10.91.0.2");
	assert_text(body, "NetworkingConfig.EndpointsConfig.nety.IPAMConfig.IPv4Address", "10.92.0.2");
	assert_int_equal(strlen(text_at(body, "NetworkingConfig.EndpointsConfig.netx.MacAddress")), 17);
	assert_int_equal(strlen(text_at(body, "NetworkingConfig.EndpointsConfig.nety.MacAddress")), 17);
	assert_text(body, "NetworkingConfig.EndpointsConfig.netx.Aliases.0", "al1");
	assert_null(json_object_get(at(body, netx), "NetworkID"));
	assert_null(json_object_get(at(body, netx), "DNSNames"));
	assert_null(json_object_get(body, "MacAddress"));
	json_decref(body);
}

static void old_engines_take_one_network(void **state)
{
	json_t *body = body_for(
		load_json(SPEC_28), 41, false); /* from 28 to 20.10: MAC addresses are random there */
	(void)state;
	assert_int_equal(json_object_size(at(body, "NetworkingConfig.EndpointsConfig")), 1);
	assert_non_null(at(body, "NetworkingConfig.EndpointsConfig.netx"));
	assert_null(at(body, "NetworkingConfig.EndpointsConfig.netx.MacAddress"));
	assert_int_equal(strlen(text_at(body, "MacAddress")), 17);
	json_decref(body);
	/* Between old ones it follows from the address. */
	body = body_for(load_json(SPEC_20), 41, false);
	assert_null(json_object_get(body, "MacAddress"));
	json_decref(body);
	/* On to a new one it has to be asked for. */
	body = body_for(load_json(SPEC_20), 51, false);
	assert_text(body, "NetworkingConfig.EndpointsConfig.netx.MacAddress", "02:42:0a:5b:00:02");
	json_decref(body);
}

static void aliases_of_docker_itself_are_left_out(void **state)
{
	json_t *body = body_for(
		load_json(SPEC_20), 51, false); /* it has the short id and the host name in its list */
	json_t *aliases = at(body, "NetworkingConfig.EndpointsConfig.netx.Aliases");
	(void)state;
	assert_int_equal(json_array_size(aliases), 2);
	assert_text(aliases, "0", "al1");
	assert_text(aliases, "1", "myhost");
	json_decref(body);
	/* A host name that is an older id was Docker's idea as well. */
	body = body_for(edited(SPEC_20, "inspect.Config.Hostname", "\"0123456789ab\"",
				"inspect.NetworkSettings.Networks.netx.Aliases", "[\"0123456789ab\"]", NULL),
		51, false);
	assert_null(at(body, "NetworkingConfig.EndpointsConfig.netx.Aliases"));
	json_decref(body);
}

static void new_addresses_with_tcp_close(void **state)
{
	json_t *body = body_for(load_json(SPEC_28), 51, true);
	(void)state;
	assert_null(at(body, "NetworkingConfig.EndpointsConfig.netx.IPAMConfig"));
	assert_null(at(body, "NetworkingConfig.EndpointsConfig.netx.MacAddress"));
	json_decref(body);
}

/* One that a person chose is kept where the network there has it, also with --tcp close. */
static void chosen_addresses_are_kept_if_possible(void **state)
{
	struct dmig_spec *s = spec_of(edited(SPEC_28, "inspect.NetworkSettings.Networks.netx.IPAMConfig",
		"{\"IPv4Address\":\"10.91.0.2\"}", "inspect.Config.MacAddress", "\"02:42:00:00:00:07\"",
		NULL));
	json_t *body = body_of(s, 51, true, "[]");
	(void)state;
	assert_text(body, "NetworkingConfig.EndpointsConfig.netx.IPAMConfig.IPv4Address", "10.91.0.2");
	json_decref(body);
	body = body_of(
		s, 51, true, "[{\"Name\":\"netx\",\"IPAM\":{\"Config\":[{\"Subnet\":\"10.1.0.0/16\"}]}}]");
	assert_null(at(body, "NetworkingConfig.EndpointsConfig.netx.IPAMConfig"));
	assert_text(body, "NetworkingConfig.EndpointsConfig.netx.MacAddress", "02:42:00:00:00:07");
	json_decref(body);
	body = body_of(
		s, 41, true, "[{\"Name\":\"netx\",\"IPAM\":{\"Config\":[{\"Subnet\":\"10.1.0.0/16\"}]}}]");
	assert_text(body, "MacAddress", "02:42:00:00:00:07");
	json_decref(body);
	dmig_spec_free(s);
}

static void newer_settings_only_for_newer_engines(void **state)
{
	json_t *root = edited(SPEC_28, "inspect.NetworkSettings.Networks.netx.GwPriority", "7",
		"inspect.NetworkSettings.Networks.netx.DriverOpts", "{\"a\":\"b\"}", NULL);
	json_t *body = body_for(json_incref(root), 51, false);
	(void)state;
	assert_int_equal(json_integer_value(at(body, "NetworkingConfig.EndpointsConfig.netx.GwPriority")), 7);
	assert_text(body, "NetworkingConfig.EndpointsConfig.netx.DriverOpts.a", "b");
	json_decref(body);
	body = body_for(root, 47, false);
	assert_null(at(body, "NetworkingConfig.EndpointsConfig.netx.GwPriority"));
	json_decref(body);
}

static void network_modes(void **state)
{
	struct dmig_spec *plain = spec_of(load_json(SPEC_28));
	char *by_id = dmig_asprintf("\"%.20s\"", plain->container->networks[1].id);
	const struct {
		const char *mode, *wanted;
	} table[] = {{"\"nety\"", "nety"}, {by_id, "nety"}, {"\"default\"", "netx"}, {"\"gone\"", "netx"},
		{"\"none\"", "none"}};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		json_t *body = body_for(
			edited(SPEC_28, "inspect.HostConfig.NetworkMode", table[i].mode, NULL), 51, false);
		assert_text(body, "HostConfig.NetworkMode", table[i].wanted);
		json_decref(body);
	}
	/* Taken off every network. */
	json_t *body = body_for(edited(SPEC_28, "inspect.NetworkSettings.Networks", "{}", NULL), 51, false);
	assert_text(body, "HostConfig.NetworkMode", "none");
	json_decref(body);
	/* The default bridge takes neither address nor alias. */
	body = body_for(
		edited(SPEC_28, "inspect.HostConfig.NetworkMode", "\"default\"",
			"inspect.NetworkSettings.Networks",
			"{\"bridge\":{\"IPAddress\":\"172.17.0.2\",\"MacAddress\":\"02:42:ac:11:00:02\"}}",
			NULL),
		51, true);
	assert_text(body, "HostConfig.NetworkMode", "default");
	assert_int_equal(json_object_size(at(body, "NetworkingConfig.EndpointsConfig.bridge")), 0);
	json_decref(body);
	free(by_id);
	dmig_spec_free(plain);
}

static void an_entry_point_that_was_taken_away(void **state)
{
	json_t *body = body_for(edited(SPEC_28, "inspect.Config.Entrypoint", "null",
					"image.config.Entrypoint", "[\"/entry\"]", NULL),
		51, false);
	(void)state;
	assert_int_equal(json_array_size(at(body, "Entrypoint")), 1);
	assert_text(body, "Entrypoint.0", "");
	json_decref(body);
	body = body_for(edited(SPEC_28, "inspect.Config.Entrypoint", "null", NULL), 51, false);
	assert_true(json_is_null(at(body, "Entrypoint")));
	json_decref(body);
}

static void links_in_their_own_form(void **state)
{
	json_t *body = body_for(
		edited(SPEC_28, "inspect.HostConfig.Links", "[\"/db:/rich/database\",\"plain:alias\"]", NULL),
		51, false);
	(void)state;
	assert_text(body, "HostConfig.Links.0", "db:database");
	assert_text(body, "HostConfig.Links.1", "plain:alias");
	json_decref(body);
}

static void volumes_from_is_refused(void **state)
{
	struct dmig_spec *s = spec_of(edited(SPEC_28, "inspect.HostConfig.VolumesFrom", "[\"other\"]", NULL));
	struct dmig_docker__body_opts o = {.image = "x", .runtime = "y", .api_minor = 51};
	struct dmig_error *err = NULL;
	json_t *body = NULL;
	(void)state;
	assert_fails(dmig_docker__body(s, &o, &body, &err), err, EOPNOTSUPP);
	dmig_spec_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(addresses_are_fixed),
		cmocka_unit_test(old_engines_take_one_network),
		cmocka_unit_test(aliases_of_docker_itself_are_left_out),
		cmocka_unit_test(new_addresses_with_tcp_close),
		cmocka_unit_test(chosen_addresses_are_kept_if_possible),
		cmocka_unit_test(newer_settings_only_for_newer_engines),
		cmocka_unit_test(network_modes),
		cmocka_unit_test(an_entry_point_that_was_taken_away),
		cmocka_unit_test(links_in_their_own_form),
		cmocka_unit_test(volumes_from_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
