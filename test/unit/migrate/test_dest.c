/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A peer that has the key and keeps no rules, against a whole destination worker and a Docker that is a fake. */
#include "../docker/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

#include "fs/tree.h"
#include "migrate/dest.h"
#include "migrate/report.h"
#include "net/net.h"
#include "util/cleanup.h"
#include "wire/messages.h"

#define PATIENCE 20000 /* ms: for what must work, also on a busy machine under a sanitizer */
/* More strangers than a destination has places for connections. */
#define STRANGERS 70

static const char id[] = "00112233445566aa";
static char *folder;
static struct fake_docker *fake;
static struct dmig_key *key;
static struct dmig_worker worker;
static struct dmig_dest_opts opts;
static struct dmig_allow allow;
static int supervisor, exit_code;
static pthread_t thread;
static struct dmig_conn *control;

static void *run(void *opaque)
{
	(void)opaque;
	exit_code = dmig_dest_run(&worker, &opts);
	return NULL;
}

/* The next frame that is no heartbeat. */
static void next(struct dmig_conn *conn, struct dmig_frame *f)
{
	struct dmig_error *err = NULL;
	do
		assert_ok(dmig_conn_recv(conn, PATIENCE, f, &err), err);
	while (f->type == DMIG_MSG_PING || f->type == DMIG_MSG_PONG);
}

static void hello(struct dmig_conn *conn, enum dmig_role role)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_error *err = NULL;
	struct dmig_frame f;
	struct dmig_wire_hello h = {
		.version_min = DMIG_WIRE_VERSION_MIN, .version_max = DMIG_WIRE_VERSION, .role = role};
	snprintf(h.id, sizeof(h.id), "%s", id);
	ssize_t n = dmig_wire_encode_hello(&h, buf, sizeof(buf));
	assert_ok(dmig_conn_send(conn, DMIG_MSG_HELLO, 0, buf, (size_t)n, NULL, 0, &err), err);
	next(conn, &f);
	assert_int_equal(f.type, DMIG_MSG_HELLO);
}

static int set_up(void **state)
{
	struct dmig_error *err = NULL;
	int pair[2], link[2];
	(void)state;
	folder = test_mkdir();
	cleanup_free char *run_dir = dmig_asprintf("%s/run", folder);
	setenv("DMIGRATE_STATE_DIR", folder, 1);
	setenv("DMIGRATE_RUN_DIR", run_dir, 1);
	fake = fake_docker_start();
	fake_destination(fake, load_json(SPEC_28));
	assert_ok(dmig_key_generate(&key, &err), err);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link), 0);
	supervisor = pair[0];
	assert_ok(dmig_worker_init(&worker, DMIG_SIDE_DESTINATION, pair[1], &err), err);
	opts = (struct dmig_dest_opts){.key = key, .allow = &allow, .control_fd = link[1]};
	opts.listen_fd = dmig_listen("127.0.0.1", 0, 0, &opts.port, &err);
	assert_ok(opts.listen_fd, err);
	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	assert_ok(dmig_conn_client(link[0], key, PATIENCE, &control, &err), err);
	hello(control, DMIG_ROLE_CONTROL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dmig_worker_clear(&worker);
	close(supervisor);
	close(opts.listen_fd);
	dmig_key_free(key);
	fake_docker_stop(fake);
	test_rmdir(folder);
	return 0;
}

static void say(enum dmig_msg type, json_t *body)
{
	struct dmig_error *err = NULL;
	cleanup_free char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	assert_ok(dmig_conn_send(control, type, 0, text, text ? strlen(text) : 0, NULL, 0, &err), err);
}

/* It stops with this text, and the worker comes to its end. */
static void stops_with(const char *text, int code)
{
	struct dmig_frame f;
	struct dmig_wire_status status;
	struct dmig_error *err = NULL, *why = NULL;
	do
		next(control, &f);
	while (f.type == DMIG_MSG_CHECK_RESULT);
	assert_int_equal(f.type, DMIG_MSG_ABORT);
	assert_ok(dmig_wire_decode_abort(f.payload, f.length, &status, &err), err);
	dmig_wire_status_error(&status, &why);
	if (!strstr(why->message, text))
		fail_msg("no \"%s\" in: %s", text, why->message);
	dmig_error_free(why);
	pthread_join(thread, NULL);
	dmig_conn_free(control);
	assert_int_equal(exit_code, code);
}

static json_t *check_of(json_t *spec, const char *bind)
{
	return json_pack("{s:o,s:{s:s,s:s,s:b,s:[s]}}", "spec", spec, "options", "tcp", "established", "source", "remove",
		"own_netns", 1, "binds", bind);
}

static void a_refusal_is_not_only_advice(void **state)
{
	(void)state;
	say(DMIG_MSG_CHECK, check_of(edited(SPEC_28, "inspect.HostConfig.Privileged", "true", NULL), "/etc"));
	say(DMIG_MSG_PREPARE, NULL);
	stops_with("refused", DMIG_EXIT_REFUSED);
	assert_int_equal(fake_docker_count(fake, "POST", "/containers/create"), 0);
	assert_int_equal(fake_docker_count(fake, "POST", "/networks/create"), 0);
}

static void go_before_anything(void **state)
{
	(void)state;
	say(DMIG_MSG_GO, NULL);
	stops_with("out of turn", DMIG_EXIT_FAILED);
}

static struct dmig_conn *dial(void)
{
	struct dmig_error *err = NULL;
	struct dmig_conn *conn = NULL;
	struct dmig_address to = {.host = "127.0.0.1", .port = opts.port};
	assert_ok(dmig_conn_dial(&to, key, PATIENCE, &conn, &err), err);
	hello(conn, DMIG_ROLE_DATA);
	return conn;
}

static void stream_is_refused(enum dmig_stream_kind kind, const char *name, const char *text)
{
	struct dmig_tree_send_opts o = {.kind = kind, .name = name};
	struct dmig_error *err = NULL;
	cleanup_free char *path = dmig_asprintf("%s/sent", folder);
	assert_int_equal(dmig_mkdir_p(path, 0700), 0);
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dmig_conn *conn = dial();
	int sent = dmig_tree_send(conn, fd, &o, NULL, &err);
	int r = dmig_stream_result(conn, sent, PATIENCE, &err);
	assert_true(r < 0);
	if (!err || !strstr(err->message, text))
		fail_msg("no \"%s\" in: %s", text, err ? err->message : "(nothing)");
	dmig_error_free(err);
	dmig_conn_free(conn);
	stops_with(text, DMIG_EXIT_FAILED);
}

static void a_writable_layer_before_its_time(void **state)
{
	(void)state;
	stream_is_refused(DMIG_STREAM_ROOTFS, "", "not started");
}

static void images_before_their_time(void **state)
{
	(void)state;
	stream_is_refused(DMIG_STREAM_CRIU, "", "does not wait");
}

static void a_log_before_its_time(void **state)
{
	(void)state;
	stream_is_refused(DMIG_STREAM_LOG, "", "does not exist");
}

static void an_image_that_nobody_wants(void **state)
{
	(void)state;
	stream_is_refused(DMIG_STREAM_IMAGE, "", "not asked for");
}

static void a_volume_of_others(void **state)
{
	(void)state;
	stream_is_refused(DMIG_STREAM_VOLUME, "named", "none of this container's");
}

/* Naming a path among one's own options makes it nobody's bind mount: a stream would empty it. */
static void a_path_of_the_host(void **state)
{
	struct dmig_frame f;
	cleanup_free char *path = dmig_asprintf("%s/host", folder);
	cleanup_free char *file = dmig_asprintf("%s/precious", path);
	(void)state;
	assert_int_equal(dmig_mkdir_p(file, 0700), 0);
	say(DMIG_MSG_CHECK, check_of(load_json(SPEC_28), path));
	next(control, &f);
	assert_int_equal(f.type, DMIG_MSG_CHECK_RESULT);
	stream_is_refused(DMIG_STREAM_BIND, path, "not agreed on");
	assert_int_equal(access(file, F_OK), 0);
}

/* "Nothing ran, and nothing will" is said only of what came far enough to be in doubt. */
static void a_question_before_there_is_anything_to_ask(void **state)
{
	struct dmig_error *err = NULL;
	struct dmig_conn *conn = NULL;
	struct dmig_frame f;
	struct dmig_address to = {.host = "127.0.0.1", .port = opts.port};
	(void)state;
	assert_ok(dmig_conn_dial(&to, key, PATIENCE, &conn, &err), err);
	hello(conn, DMIG_ROLE_CONTROL);
	assert_ok(dmig_conn_send(conn, DMIG_MSG_QUERY, 0, NULL, 0, NULL, 0, &err), err);
	assert_fails(dmig_conn_recv(conn, PATIENCE, &f, &err), err, EPIPE);
	dmig_conn_free(conn);
	say(DMIG_MSG_GO, NULL);
	stops_with("out of turn", DMIG_EXIT_FAILED);
}

/* A scanner that knocks at the port takes no place away for good. */
static void strangers_do_not_close_the_port(void **state)
{
	(void)state;
	for (int i = 0; i < STRANGERS; i++) {
		char byte;
		struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(opts.port)};
		to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		while (read(fd, &byte, 1) > 0) /* until it has hung up */
			;
	}
	dmig_conn_free(dial());
	say(DMIG_MSG_GO, NULL);
	stops_with("out of turn", DMIG_EXIT_FAILED);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_refusal_is_not_only_advice),
		CASE(go_before_anything),
		CASE(a_writable_layer_before_its_time),
		CASE(images_before_their_time),
		CASE(a_log_before_its_time),
		CASE(an_image_that_nobody_wants),
		CASE(a_volume_of_others),
		CASE(a_path_of_the_host),
		CASE(a_question_before_there_is_anything_to_ask),
		CASE(strangers_do_not_close_the_port),
	};
	return cmocka_run_group_tests_name("dest", tests, NULL, NULL);
}
