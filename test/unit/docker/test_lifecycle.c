/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <signal.h>

#include "support.h"

static struct fake_docker *fake;
static struct dmig_docker *client;
static struct dmig_error *err;

static int set_up(void **state)
{
	(void)state;
	fake = fake_docker_start();
	err = NULL;
	return dmig_docker_open(&client, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	dmig_docker_free(client);
	fake_docker_stop(fake);
	return 0;
}

static void orders_reach_the_engine(void **state)
{
	(void)state;
	fake_docker_on(fake, "POST", "/containers/" ID_A "/start", 304, NULL); /* it runs already */
	fake_docker_on(fake, "POST", "/containers/" ID_A "/pause", 204, NULL);
	fake_docker_on(fake, "POST", "/containers/" ID_A "/unpause", 204, NULL);
	fake_docker_on(fake, "POST", "/containers/" ID_A "/kill?signal=9", 204, NULL);
	assert_ok(dmig_docker_start(client, ID_A, &err), err);
	assert_ok(dmig_docker_pause(client, ID_A, true, &err), err);
	assert_ok(dmig_docker_pause(client, ID_A, false, &err), err);
	assert_ok(dmig_docker_kill(client, ID_A, SIGKILL, &err), err);
	assert_fails(dmig_docker_start(client, ID_B, &err), err, ENOENT);
	assert_fails(dmig_docker_start(client, "../info", &err), err, EINVAL);
}

static void policy_is(const char *policy, int max, const char *body)
{
	assert_ok(dmig_docker_set_restart_policy(client, ID_A, policy, max, &err), err);
	char *text = fake_docker_body(fake, "POST", "/containers/" ID_A "/update", NULL);
	assert_string_equal(text, body);
	free(text);
}

static void restart_policies(void **state)
{
	(void)state;
	fake_docker_on(fake, "POST", "/containers/" ID_A "/update", 200, "{\"Warnings\":null}");
	policy_is("on-failure", 3, "{\"RestartPolicy\":{\"Name\":\"on-failure\",\"MaximumRetryCount\":3}}");
	policy_is("always", 3, "{\"RestartPolicy\":{\"Name\":\"always\",\"MaximumRetryCount\":0}}");
}

static void waiting_for_the_end(void **state)
{
	const char *path = "/containers/" ID_A "/wait?condition=not-running";
	(void)state;
	fake_docker_on(fake, "POST", path, 200, "{\"StatusCode\":137}");
	assert_ok(dmig_docker_wait_stopped(client, ID_A, 1000, &err), err);
	assert_ok(dmig_docker_wait_stopped(client, ID_B, 1000, &err), err); /* gone, as after --rm */
	fake_docker_on(fake, "POST", path, 0, NULL);
	assert_fails(dmig_docker_wait_stopped(client, ID_A, 50, &err), err, ETIMEDOUT);
}

static void removing(void **state)
{
	(void)state;
	fake_docker_on(fake, "DELETE", "/containers/" ID_A "?force=0&v=0", 409, "{\"message\":\"it runs\"}");
	fake_docker_on(fake, "DELETE", "/containers/" ID_A "?force=1&v=0", 204, NULL);
	assert_fails(dmig_docker_remove_container(client, ID_A, false, false, &err), err, EBUSY);
	assert_ok(dmig_docker_remove_container(client, ID_A, true, false, &err), err);
	assert_ok(dmig_docker_remove_container(client, ID_B, true, true, &err), err); /* missing */
	assert_ok(dmig_docker_remove_network(client, ID_A, &err), err);
	assert_ok(dmig_docker_remove_volume(client, "v", &err), err);
	assert_fails(dmig_docker_remove_volume(client, "..", &err), err, EINVAL);
	fake_docker_on(fake, "DELETE", "/volumes/v", 409, "{\"message\":\"in use\"}");
	assert_fails(dmig_docker_remove_volume(client, "v", &err), err, EBUSY);
	fake_docker_on(fake, "DELETE", "/networks/" ID_A, 403, "{\"message\":\"has active endpoints\"}");
	assert_fails(dmig_docker_remove_network(client, ID_A, &err), err, EPERM);
}

static void somebody_else_removes_it(void **state)
{
	(void)state;
	fake_docker_on(fake, "DELETE", "/containers/" ID_A, 409, "{\"message\":\"removal is in progress\"}");
	fake_docker_on(
		fake, "POST", "/containers/" ID_A "/wait?condition=removed", 200, "{\"StatusCode\":0}");
	assert_ok(dmig_docker_remove_container(client, ID_A, true, false, &err), err);
	assert_int_equal(fake_docker_count(fake, "POST", "/containers/" ID_A "/wait"), 1);
}

/* Docker keeps volumes that it was given by name; ours are, and still nobody chose those names. */
static void anonymous_volumes_go_with_it(void **state)
{
	json_t *root = load_json(SPEC_20);
	(void)state;
	fake_source(fake, json_incref(root));
	fake_docker_on(fake, "DELETE", "/containers/rich?force=1&v=1", 204, NULL);
	assert_ok(dmig_docker_remove_container(client, "rich", true, true, &err), err);
	char *log = fake_docker_log(fake);
	assert_null(strstr(log, "DELETE /volumes/named"));
	assert_int_equal(fake_docker_count(fake, "DELETE", "/containers/rich"), 1);
	size_t deleted = 0;
	for (char *p = log; (p = strstr(p, "DELETE /volumes/")); p++)
		deleted++;
	assert_int_equal(deleted, 2);
	free(log);
	json_decref(root);
}

int main(void)
{
#define with_fake(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		with_fake(orders_reach_the_engine),
		with_fake(restart_policies),
		with_fake(waiting_for_the_end),
		with_fake(removing),
		with_fake(somebody_else_removes_it),
		with_fake(anonymous_volumes_go_with_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
