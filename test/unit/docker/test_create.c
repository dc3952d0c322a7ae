/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

static struct fake_docker *fake;
static struct dmig_docker *client;
static struct dmig_error *err;
static char made_log[4096];
static int made_result;

static int note(const char *kind, const char *id, void *opaque)
{
	(void)opaque;
	size_t n = strlen(made_log);
	snprintf(made_log + n, sizeof(made_log) - n, "%s %.5s;", kind, id);
	return made_result;
}

static int set_up(void **state)
{
	(void)state;
	fake = fake_docker_start();
	client = NULL;
	err = NULL;
	made_log[0] = '\0';
	made_result = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dmig_docker_free(client);
	fake_docker_stop(fake);
	return 0;
}

/* Create at a destination that speaks this API; what it knows is set up by fake_destination() and the test.
 */
static int create(const char *api, json_t *root, bool tcp_close, char **ret_id)
{
	struct dmig_spec *s = spec_of(json_incref(root));
	char *image = strdup(text_at(root, "image.id"));
	struct dmig_target_opts opts = {
		.image_id = image, .runtime = "dmigrate", .tcp_close = tcp_close, .made = note};
	json_decref(root);
	fake_docker_api(fake, api);
	assert_ok(dmig_docker_open(&client, &err), err);
	int r = dmig_docker_create_target(client, s, &opts, ret_id, &err);
	free(image);
	dmig_spec_free(s);
	return r;
}

static json_t *sent(const char *path)
{
	char *text = fake_docker_body(fake, "POST", path, NULL);
	assert_non_null(text);
	json_t *v = json_loads(text, 0, NULL);
	assert_non_null(v);
	free(text);
	return v;
}

static void makes_what_is_missing(void **state)
{
	char *id = NULL;
	(void)state;
	fake_destination(fake, load_json(SPEC_28));
	assert_ok(create("1.51", load_json(SPEC_28), false, &id), err);
	assert_string_equal(id, ID_B);
	free(id);
	assert_int_equal(fake_docker_count(fake, "POST", "/networks/create"), 2);
	assert_int_equal(fake_docker_count(fake, "POST", "/volumes/create"), 1);
	assert_int_equal(fake_docker_count(fake, "POST", "/containers/create?name=rich"), 1);
	assert_int_equal(fake_docker_count(fake, "POST", "/networks/netx/connect"), 0);
	assert_non_null(strstr(made_log, "network aaaaa;network aaaaa;volume "));
	assert_non_null(strstr(made_log, "volume named;"));
	assert_string_equal(made_log + strlen(made_log) - 16, "container bbbbb;");
	json_t *network = sent("/networks/create"), *body = sent("/containers/create");
	assert_text(network, "Name", "nety");
	assert_text(network, "Driver", "bridge");
	assert_text(network, "IPAM.Config.0.Subnet", "10.92.0.0/24");
	assert_text(network, "Labels.l", "1");
	assert_text(body, "Image", "busybox");
	assert_text(body, "HostConfig.Runtime", "dmigrate");
	json_decref(network);
	json_decref(body);
}

static void old_engines_are_asked_network_by_network(void **state)
{
	char *id = NULL;
	(void)state;
	fake_destination(fake, load_json(SPEC_20));
	assert_ok(create("1.41", load_json(SPEC_20), false, &id), err);
	free(id);
	/* The primary one as well: only this tells whether it takes the address. */
	json_t *x = sent("/networks/netx/connect"), *y = sent("/networks/nety/connect");
	assert_text(x, "Container", ID_B);
	assert_text(x, "EndpointConfig.IPAMConfig.IPv4Address", "10.91.0.2");
	assert_text(y, "EndpointConfig.IPAMConfig.IPv4Address", "10.92.0.2");
	json_decref(x);
	json_decref(y);
}

static void what_is_there_is_used(void **state)
{
	char *id = NULL;
	json_t *root = load_json(SPEC_28), *v;
	size_t i;
	(void)state;
	fake_destination(fake, json_incref(root));
	on_json(fake, "/networks", json_incref(at(root, "networks")));
	json_array_foreach(at(root, "volumes"), i, v)
	{
		char *path = dmig_asprintf("/volumes/%s", text_at(v, "Name"));
		on_json(fake, path, json_incref(v));
		free(path);
	}
	assert_ok(create("1.51", root, false, &id), err);
	free(id);
	assert_string_equal(made_log, "container bbbbb;");
}

static void an_image_gets_its_name_when_that_is_free(void **state)
{
	char *id = NULL;
	(void)state;
	fake_destination(fake, load_json(SPEC_28));
	fake_docker_on(fake, "GET", "/images/busybox/json", 404, "{}");
	json_t *root = load_json(SPEC_28);
	char *tag = dmig_asprintf("/images/%s/tag?repo=busybox&tag=latest", text_at(root, "image.id"));
	fake_docker_on(fake, "POST", tag, 201, NULL);
	assert_ok(create("1.51", root, false, &id), err);
	free(id);
	assert_int_equal(fake_docker_count(fake, "POST", tag), 1);
	free(tag);
	assert_non_null(strstr(made_log, "image busyb;container"));
	json_t *body = sent("/containers/create");
	assert_text(body, "Image", "busybox");
	json_decref(body);
}

static void a_name_that_means_something_else_is_left_alone(void **state)
{
	char *id = NULL;
	(void)state;
	fake_destination(fake, load_json(SPEC_28));
	fake_docker_on(fake, "GET", "/images/busybox/json", 200, "{\"Id\":\"" DIGEST_B "\"}");
	json_t *root = load_json(SPEC_28);
	assert_ok(create("1.51", json_incref(root), false, &id), err);
	free(id);
	json_t *body = sent("/containers/create");
	assert_text(body, "Image", text_at(root, "image.id"));
	json_decref(body);
	json_decref(root);
}

static void each_failure_stops_it(void **state)
{
	static const struct {
		const char *path, *made;
	} steps[] = {{"/networks/create", ""}, {"/volumes/create", "network aaaaa;network aaaaa;"}};
	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		char *id = NULL;
		made_log[0] = '\0';
		fake_destination(fake, load_json(SPEC_28));
		fake_docker_on(fake, "POST", steps[i].path, 500, "{\"message\":\"disk full\"}");
		assert_int_equal(create("1.51", load_json(SPEC_28), false, &id), -EIO);
		assert_non_null(strstr(err->message, "disk full"));
		dmig_error_freep(&err);
		assert_string_equal(made_log, steps[i].made);
		assert_null(id);
		assert_int_equal(fake_docker_count(fake, "POST", "/containers/create"), 0);
		dmig_docker_free(client);
		client = NULL;
	}
}

static void what_cannot_be_noted_is_not_gone_on_with(void **state)
{
	char *id = NULL;
	(void)state;
	made_result = -ENOSPC;
	fake_destination(fake, load_json(SPEC_28));
	assert_int_equal(create("1.51", load_json(SPEC_28), false, &id), -ENOSPC);
	dmig_error_freep(&err);
	assert_int_equal(fake_docker_count(fake, "POST", "/networks/create"), 1);
	assert_int_equal(fake_docker_count(fake, "POST", "/volumes/create"), 0);
}

static void a_refused_address_is_explained(void **state)
{
	static const char said[] =
		"{\"message\":\"user specified IP address is supported only when connecting to networks "
		"with user configured subnets\"}";
	char *id = NULL;
	(void)state;
	fake_destination(fake, load_json(SPEC_20));
	fake_docker_on(fake, "POST", "/networks/netx/connect", 400, said);
	assert_int_equal(create("1.41", load_json(SPEC_20), false, &id), -EINVAL);
	assert_non_null(strstr(err->message, "netx"));
	assert_non_null(strstr(err->message, "--subnet"));
	dmig_error_freep(&err);
	dmig_docker_free(client);
	client = NULL;
	fake_docker_on(fake, "POST", "/containers/create", 400, said);
	assert_int_equal(create("1.51", load_json(SPEC_20), false, &id), -EINVAL);
	assert_non_null(strstr(err->message, "--subnet"));
	dmig_error_freep(&err);
}

static void secrets_stay_out_of_messages(void **state)
{
	char *id = NULL;
	(void)state;
	fake_destination(fake, load_json(SPEC_28));
	fake_docker_on(fake, "POST", "/containers/create", 400,
		"{\"message\":\"invalid variable: SECRET=" SECRET "\"}");
	assert_int_equal(create("1.51", load_json(SPEC_28), false, &id), -EINVAL);
	assert_null(strstr(err->message, SECRET));
	dmig_error_freep(&err);
}

static void an_answer_without_an_id_is_an_error(void **state)
{
	char *id = NULL;
	(void)state;
	fake_destination(fake, load_json(SPEC_28));
	fake_docker_on(fake, "POST", "/containers/create", 201, "{\"Id\":\"../../x\"}");
	assert_fails(create("1.51", load_json(SPEC_28), false, &id), err, EPROTO);
}

int main(void)
{
#define with_fake(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		with_fake(makes_what_is_missing),
		with_fake(old_engines_are_asked_network_by_network),
		with_fake(what_is_there_is_used),
		with_fake(an_image_gets_its_name_when_that_is_free),
		with_fake(a_name_that_means_something_else_is_left_alone),
		with_fake(each_failure_stops_it),
		with_fake(what_cannot_be_noted_is_not_gone_on_with),
		with_fake(a_refused_address_is_explained),
		with_fake(secrets_stay_out_of_messages),
		with_fake(an_answer_without_an_id_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
