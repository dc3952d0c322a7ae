/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <sys/mman.h>

#include "support.h"

static struct fake_docker *fake;
static struct dmig_docker *client;
static struct dmig_error *err;

#define L1 "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define L2 "sha256:2222222222222222222222222222222222222222222222222222222222222222"
#define L3 "sha256:3333333333333333333333333333333333333333333333333333333333333333"
#define THREE "[\"" L1 "\",\"" L2 "\",\"" L3 "\"]"
#define WANTED "{\"Cmd\":[\"run\"],\"Env\":[\"A=1\",\"B=2\"],\"WorkingDir\":\"/\"}"

static int set_up(void **state)
{
	(void)state;
	fake = fake_docker_start();
	err = NULL;
	fake_docker_on(fake, "GET", "/images/json", 200, "[]");
	return dmig_docker_open(&client, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	dmig_docker_free(client);
	fake_docker_stop(fake);
	return 0;
}

static struct dmig_spec *wanted(void)
{
	return spec_of(edited(SPEC_28, "image.id", "\"" DIGEST_A "\"", "image.names", "[\"app:1\"]",
		"image.config", WANTED, "image.diff_ids", THREE, NULL));
}

static void has_image(const char *ref, const char *id, const char *config, const char *layers)
{
	char *path = dmig_asprintf("/images/%s/json", ref);
	char *body =
		dmig_asprintf("{\"Id\":\"%s\",\"Config\":%s,\"RootFS\":{\"Type\":\"layers\",\"Layers\":%s}}",
			id, config, layers);
	fake_docker_on(fake, "GET", path, 200, body);
	free(path);
	free(body);
}

static void find_is(const char *id, size_t have)
{
	struct dmig_spec *s = wanted();
	char *found = NULL;
	size_t n = 99;
	assert_ok(dmig_docker_image_find(client, s, &found, &n, &err), err);
	if (id)
		assert_string_equal(found, id);
	else
		assert_null(found);
	assert_int_equal(n, have);
	free(found);
	dmig_spec_free(s);
}

static void by_id_name_or_contents(void **state)
{
	(void)state;
	find_is(NULL, 0);
	/* Another store, another id, no name. */
	fake_docker_on(fake, "GET", "/images/json?all=1", 200, "[{\"Id\":\"" DIGEST_B "\"}]");
	has_image(DIGEST_B, DIGEST_B, WANTED, THREE);
	find_is(DIGEST_B, 3);
	has_image("app:1", DIGEST_B, WANTED, THREE);
	find_is(DIGEST_B, 3);
	has_image(DIGEST_A, DIGEST_A, WANTED, THREE);
	find_is(DIGEST_A, 3);
}

static void layers_from_the_bottom_are_counted(void **state)
{
	(void)state;
	fake_docker_on(fake, "GET", "/images/json?all=1", 200,
		"[{\"Id\":\"" DIGEST_A "\"},{\"Id\":\"" DIGEST_B "\"},{\"Id\":\"gone\"},{}]");
	has_image(DIGEST_A, DIGEST_A, "{}", "[\"" L1 "\"]");
	has_image(DIGEST_B, DIGEST_B, "{}", "[\"" L1 "\",\"" L2 "\",\"" L1 "\"]");
	find_is(NULL, 2);
	has_image(DIGEST_B, DIGEST_B, "{}", "[\"" L2 "\",\"" L1 "\"]");
	find_is(NULL, 1);
	/* Same layers, other configuration. */
	has_image(DIGEST_B, DIGEST_B, "{\"Cmd\":[\"walk\"]}", THREE);
	find_is(NULL, 3);
	client->containerd_store = true; /* wants everything */
	find_is(NULL, 0);
}

static void equal(const char *a, const char *b, bool wanted_result)
{
	json_t *x = json_loads(a, 0, NULL), *y = json_loads(b, 0, NULL);
	json_t *layers = json_loads(THREE, 0, NULL);
	if (dmig_docker__image_equal(x, layers, y, layers) != wanted_result ||
		dmig_docker__image_equal(y, layers, x, layers) != wanted_result)
		fail_msg("%s and %s", a, b);
	json_decref(x);
	json_decref(y);
	json_decref(layers);
}

static void what_makes_two_images_the_same(void **state)
{
	(void)state;
	equal("{}", "{\"Cmd\":null,\"Env\":[],\"Labels\":{},\"User\":\"\",\"ArgsEscaped\":true}", true);
	equal("{\"Cmd\":[\"a\"]}",
		"{\"Cmd\":[\"a\"],\"Hostname\":\"x\",\"Image\":\"sha256:y\",\"Tty\":false}", true);
	equal("{\"Env\":[\"A=1\",\"B=2\"]}", "{\"Env\":[\"B=2\",\"A=1\"]}", false);
	equal("{\"Cmd\":[\"a\"]}", "{\"Cmd\":[\"a\",\"b\"]}", false);
	equal("{\"User\":\"1\"}", "{}", false);
	equal("{\"Labels\":{\"a\":\"\"}}", "{}", false);
	equal("{\"Volumes\":{\"/a\":{}}}", "{}", false);
	equal("{\"Volumes\":{\"/a\":{}}}", "{\"Volumes\":{\"/b\":{}}}", false);
	equal("{\"Healthcheck\":{\"Test\":[\"NONE\"],\"Interval\":0}}",
		"{\"Healthcheck\":{\"Test\":[\"NONE\"]}}", true);
	equal("{\"Healthcheck\":{\"Test\":[\"NONE\"],\"Interval\":5}}",
		"{\"Healthcheck\":{\"Test\":[\"NONE\"]}}", false);
}

static void saved_to_a_descriptor(void **state)
{
	cleanup_fd int fd = memfd_create("image", MFD_CLOEXEC);
	char buf[32] = {0};
	(void)state;
	fake_docker_on(fake, "GET", "/images/" DIGEST_A "/get", 200, "archive");
	assert_ok(dmig_docker_image_save(client, DIGEST_A, 0, fd, &err), err);
	assert_int_equal(read(fd, buf, sizeof(buf)), 7);
	assert_string_equal(buf, "archive");
	assert_fails(dmig_docker_image_save(client, DIGEST_A, 1, fd, &err), err, EBADMSG);
	assert_fails(dmig_docker_image_save(client, "app:1", 0, fd, &err), err, EINVAL);
	fake_docker_on(fake, "GET", "/images/" DIGEST_A "/get", 404, "{\"message\":\"no such image\"}");
	assert_int_equal(dmig_docker_image_save(client, DIGEST_A, 0, fd, &err), -ENOENT);
	assert_non_null(strstr(err->message, "no such image"));
	dmig_error_freep(&err);
	cleanup_fd int closed = open("/dev/full", O_WRONLY | O_CLOEXEC);
	fake_docker_on(fake, "GET", "/images/" DIGEST_A "/get", 200, "archive");
	assert_fails(dmig_docker_image_save(client, DIGEST_A, 0, closed, &err), err, ENOSPC);
}

static int load(const char *answer)
{
	cleanup_fd int fd = memfd_create("image", MFD_CLOEXEC);
	assert_int_equal(write(fd, "skipped:archive", 15), 15);
	lseek(fd, 8, SEEK_SET);
	fake_docker_on(fake, "POST", "/images/load", 200, answer);
	return dmig_docker_image_load(client, fd, &err);
}

static void loaded_from_a_descriptor(void **state)
{
	size_t len = 0;
	(void)state;
	assert_ok(load("{\"stream\":\"Loaded image: app:1\\n\"}\r\n"), err);
	char *body = fake_docker_body(fake, "POST", "/images/load", &len);
	assert_int_equal(len, 7);
	assert_string_equal(body, "archive");
	free(body);
	assert_ok(load(""), err);
	assert_fails(load("{\"stream\":\"x\"}\r\n{\"errorDetail\":{\"message\":\"no space\"},\"error\":\"no "
			  "space\"}\r\n"),
		err, EIO);
	assert_fails(load("{\"error\":\"old way\"}"), err, EIO);
}

static void tags(void **state)
{
	(void)state;
	fake_docker_on(fake, "POST", "/images/" DIGEST_A "/tag?repo=host:5000/a/b&tag=1.2", 201, NULL);
	fake_docker_on(fake, "POST", "/images/" DIGEST_A "/tag?repo=host:5000/a&tag=latest", 201, NULL);
	assert_ok(dmig_docker_image_tag(client, DIGEST_A, "host:5000/a/b:1.2", &err), err);
	assert_ok(dmig_docker_image_tag(client, DIGEST_A, "host:5000/a", &err), err);
	assert_fails(dmig_docker_image_tag(client, DIGEST_A, "a@" DIGEST_A, &err), err, EINVAL);
	assert_fails(dmig_docker_image_tag(client, DIGEST_A, "a b", &err), err, EINVAL);
	assert_ok(dmig_docker_image_remove(client, DIGEST_A, &err), err); /* missing is fine */
	assert_ok(dmig_docker_image_remove(client, "app:1", &err), err);
	assert_int_equal(fake_docker_count(fake, "DELETE", "/images/app:1"), 1);
	assert_fails(dmig_docker_image_remove(client, "?all", &err), err, EINVAL);
}

int main(void)
{
#define with_fake(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		with_fake(by_id_name_or_contents),
		with_fake(layers_from_the_bottom_are_counted),
		cmocka_unit_test(what_makes_two_images_the_same),
		with_fake(saved_to_a_descriptor),
		with_fake(loaded_from_a_descriptor),
		with_fake(tags),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
