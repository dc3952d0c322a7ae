/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

#include <pthread.h>

static struct fake_docker *fake;
static struct dmig_docker *client;
static struct dmig_error *err;

static int set_up(void **state)
{
	(void)state;
	fake = fake_docker_start();
	client = NULL;
	err = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dmig_docker_free(client);
	fake_docker_stop(fake);
	return 0;
}

static void speaks_at_most_what_it_knows(void **state)
{
	(void)state;
	fake_docker_api(fake, "1.54");
	assert_ok(dmig_docker_open(&client, &err), err);
	assert_string_equal(dmig_docker_api_version(client), "1.51");
	assert_string_equal(dmig_docker_version(client), "28.5.2");
	assert_string_equal(dmig_docker_root_dir(client), "/var/lib/docker");
	assert_string_equal(dmig_docker_storage_driver(client), "overlay2");
	assert_true(dmig_docker_has_runtime(client, "dmigrate"));
	assert_false(dmig_docker_has_runtime(client, "crun"));
	assert_false(client->containerd_store);
}

static void speaks_what_an_older_engine_knows(void **state)
{
	(void)state;
	fake_docker_api(fake, "1.41");
	assert_ok(dmig_docker_open(&client, &err), err);
	assert_string_equal(dmig_docker_api_version(client), "1.41");
}

static void refuses_engines_that_are_too_old(void **state)
{
	static const char *const versions[] = {"1.40", "2.0", "1.x", "", "1.", "1.41 "};
	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		fake_docker_api(fake, versions[i]);
		if (!strcmp(versions[i], "1.41 ")) /* blanks around a header's value mean nothing */
			assert_ok(dmig_docker_open(&client, &err), err);
		else
			assert_fails(dmig_docker_open(&client, &err), err, EOPNOTSUPP);
	}
}

static void refuses_engines_that_are_too_new(void **state)
{
	(void)state;
	fake_docker_on(fake, "GET", "/version", 200, "{\"Version\":\"99\",\"MinAPIVersion\":\"1.60\"}");
	assert_fails(dmig_docker_open(&client, &err), err, EOPNOTSUPP);
}

static void notices_the_containerd_store(void **state)
{
	(void)state;
	fake_docker_on(fake, "GET", "/info", 200,
		"{\"DockerRootDir\":\"/d\",\"Driver\":\"overlayfs\",\"DriverStatus\":[[\"driver-type\","
		"\"io.containerd.snapshotter.v1\"]],\"SecurityOptions\":[\"name=userns\"]}");
	assert_ok(dmig_docker_open(&client, &err), err);
	assert_true(client->containerd_store);
	assert_true(client->userns_remap);
}

static void refuses_info_that_makes_no_sense(void **state)
{
	static const char *const answers[] = {"", "[", "[1]", "{\"Driver\":7}", "{\"DockerRootDir\":\"x\"}",
		"{}", "{\"DockerRootDir\":\"/a\",\"DockerRootDir\":\"/b\"}"};
	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		fake_docker_on(fake, "GET", "/info", 200, answers[i]);
		assert_fails(dmig_docker_open(&client, &err), err, EINVAL);
	}
}

static void only_a_unix_socket(void **state)
{
	(void)state;
	setenv("DOCKER_HOST", "tcp://127.0.0.1:2375", 1);
	assert_int_equal(dmig_docker_open(&client, &err), -EINVAL);
	assert_int_equal(err->class, DMIG_ERR_USAGE);
	dmig_error_freep(&err);
	setenv("DOCKER_HOST", "unix:///nowhere/docker.sock", 1);
	assert_int_equal(dmig_docker_open(&client, &err), -ECONNREFUSED);
	assert_non_null(strstr(err->message, "/nowhere/docker.sock"));
	dmig_error_freep(&err);
}

static void a_proxy_is_not_asked(void **state)
{
	(void)state;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	assert_ok(dmig_docker_open(&client, &err), err);
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
}

static void status_becomes_errno(void **state)
{
	static const struct {
		int status, code;
	} table[] = {{400, EINVAL}, {403, EPERM}, {404, ENOENT}, {409, EBUSY}, {500, EIO}, {501, EOPNOTSUPP}};
	json_t *answer = NULL;
	(void)state;
	assert_ok(dmig_docker_open(&client, &err), err);
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		fake_docker_on(fake, "GET", "/x", table[i].status, "{\"message\":\"two\\nlines.\"}");
		assert_int_equal(dmig_docker__get(client, &answer, &err, "/x"), -table[i].code);
		assert_string_equal(err->message, "Docker says: two lines");
		dmig_error_freep(&err);
	}
	fake_docker_on(fake, "GET", "/x", 502, "<html>");
	assert_int_equal(dmig_docker__get(client, &answer, &err, "/x"), -EIO);
	assert_string_equal(err->message, "Docker answered with status 502");
	dmig_error_freep(&err);
	assert_null(answer);
}

static void *cancel(void *opaque)
{
	while (fake_docker_count(fake, "GET", "/slow") == 0)
		usleep(1000);
	assert_int_equal(write(*(int *)opaque, "", 1), 1);
	return NULL;
}

static void a_call_can_be_broken_off(void **state)
{
	(void)state;
	int p[2];
	pthread_t thread;
	json_t *answer = NULL;
	assert_ok(dmig_docker_open(&client, &err), err);
	fake_docker_on(fake, "GET", "/slow", 0, NULL);
	fake_docker_on(fake, "GET", "/fast", 200, "{}");
	assert_int_equal(pipe(p), 0);
	dmig_docker_set_cancel_fd(client, p[0]);
	assert_int_equal(pthread_create(&thread, NULL, cancel, &p[1]), 0);
	assert_fails(dmig_docker__get(client, &answer, &err, "/slow"), err, ECANCELED);
	pthread_join(thread, NULL);
	assert_fails(dmig_docker__get(client, &answer, &err, "/fast"), err, ECANCELED);
	dmig_docker_set_cancel_fd(client, -1);
	assert_ok(dmig_docker__get(client, &answer, &err, "/fast"), err);
	json_decref(answer);
	close(p[0]);
	close(p[1]);
}

static void waits_only_so_long(void **state)
{
	(void)state;
	assert_ok(dmig_docker_open(&client, &err), err);
	fake_docker_on(fake, "GET", "/slow", 0, NULL);
	dmig_docker_set_timeout(client, 50);
	json_t *answer = NULL;
	int64_t start = dmig_now_ms();
	assert_fails(dmig_docker__get(client, &answer, &err, "/slow"), err, ETIMEDOUT);
	assert_true(dmig_now_ms() - start < 5000);
	fake_docker_on(fake, "GET", "/fast", 200, "{}");
	dmig_docker_set_timeout(client, 0);
	assert_ok(dmig_docker__get(client, &answer, &err, "/fast"), err);
	json_decref(answer);
}

static void reads_only_so_much(void **state)
{
	struct dmig_docker__answer a = {0};
	char *big = malloc(100001);
	(void)state;
	memset(big, ' ', 100000);
	big[100000] = '\0';
	fake_docker_on(fake, "GET", "/big", 200, big);
	free(big);
	assert_ok(dmig_docker_open(&client, &err), err);
	struct dmig_docker__request rq = {.method = "GET", .path = "/big", .max = 99999};
	assert_fails(dmig_docker__http(client, &rq, &a, &err), err, EFBIG);
	rq.max = 100000;
	assert_ok(dmig_docker__http(client, &rq, &a, &err), err);
	assert_int_equal(a.len, 100000);
	dmig_docker__answer_clear(&a);
}

static void broken_http_is_an_error(void **state)
{
	json_t *answer = NULL;
	(void)state;
	assert_ok(dmig_docker_open(&client, &err), err);
	fake_docker_on_raw(fake, "GET", "/x", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}");
	assert_fails(dmig_docker__get(client, &answer, &err, "/x"), err, EIO);
	fake_docker_on_raw(fake, "GET", "/x", "\x16\x03\x01 nonsense\r\n\r\n");
	assert_fails(dmig_docker__get(client, &answer, &err, "/x"), err, EIO);
	fake_docker_on_raw(fake, "GET", "/x", "");
	assert_fails(dmig_docker__get(client, &answer, &err, "/x"), err, EIO);
}

static void json_has_limits(void **state)
{
	json_t *v = NULL;
	char deep[400];
	(void)state;
	memset(deep, '[', 200);
	memset(deep + 200, ']', 200);
	assert_int_equal(dmig_docker__json("test", deep, 400, 1000, &v, NULL), -EINVAL);
	assert_int_equal(dmig_docker__json("test", deep + 140, 120, 1000, &v, NULL), 0);
	json_decref(v);
	assert_int_equal(dmig_docker__json("test", deep + 140, 120, 100, &v, NULL), -EFBIG);
	assert_fails(dmig_docker__json("test", "{\"a\":1,\"a\":2}", 13, 100, &v, &err), err, EINVAL);
	/* Brackets inside strings are no nesting. */
	assert_int_equal(dmig_docker__json("test", "[\"\\\"[[[[\"]", 10, 100, &v, NULL), 0);
	json_decref(v);
	/* The parser's own message would quote what it stumbled over. */
	assert_int_equal(dmig_docker__json("test", "{\"K\":" SECRET "}", 20, 100, &v, &err), -EINVAL);
	assert_null(strstr(err->message, "hunter2"));
	dmig_error_freep(&err);
}

static void urls_are_escaped(void **state)
{
	(void)state;
	char *s = dmig_docker__escape("a b/ä?#%&");
	assert_string_equal(s, "a%20b/%C3%A4%3F%23%25%26");
	free(s);
}

int main(void)
{
#define with_fake(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		with_fake(speaks_at_most_what_it_knows),
		with_fake(speaks_what_an_older_engine_knows),
		with_fake(refuses_engines_that_are_too_old),
		with_fake(refuses_engines_that_are_too_new),
		with_fake(notices_the_containerd_store),
		with_fake(refuses_info_that_makes_no_sense),
		with_fake(only_a_unix_socket),
		with_fake(a_proxy_is_not_asked),
		with_fake(status_becomes_errno),
		with_fake(a_call_can_be_broken_off),
		with_fake(waits_only_so_long),
		with_fake(reads_only_so_much),
		with_fake(broken_http_is_an_error),
		cmocka_unit_test(json_has_limits),
		cmocka_unit_test(urls_are_escaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
