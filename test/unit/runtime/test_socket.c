/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include "runtime/message.h"
#include "runtime/placeholder.h"
#include "runtime/record.h"
#include "util/cleanup.h"

/* The owner's socket thread against peers that misbehave. runc is /bin/false: creating always fails. */

static char *folder;

static int open_folder(void **state)
{
	(void)state;
	if (geteuid() != 0)
		test_skip_program("the socket takes root's connections only");
	folder = test_mkdir();
	setenv("DMIGRATE_STATE_DIR", folder, 1);
	setenv("DMIGRATE_RUN_DIR", folder, 1);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	test_rmdir(folder);
	return 0;
}

static struct dmig_target *new_target(void)
{
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_target *t = NULL;
	struct dmig_target_paths paths = {.run_dir = folder, .runc = "/bin/false"};
	assert_ok(dmig_target_new("c", "m", &paths, &t, &err), err);
	return t;
}

static void end_target(struct dmig_target *t)
{
	dmig_target_free(t);
	assert_int_equal(dmig_target_record_remove("c"), 0);
}

static int dial(void)
{
	cleanup_free char *path = dmig_target_run_path("c", ".sock");
	int fd = dmig_unix_connect(path);
	assert_true(fd >= 0);
	return fd;
}

static void ask(
	int fd, enum dmig_target_type type, int value, const char *data, size_t len, uint32_t expected)
{
	cleanup_packet struct dmig_packet p = DMIG_PACKET_INIT;
	assert_int_equal(dmig_packet_send(fd, type, value, data, len, NULL, 0), 0);
	assert_int_equal(dmig_packet_recv(fd, 5000, &p), 0);
	assert_int_equal(p.head.type, expected);
}

static void before_create_runc_is_asked(void **state)
{
	(void)state;
	struct dmig_target *t = new_target();
	cleanup_fd int fd = dial();
	ask(fd, DMIG_TARGET_STATE, 0, NULL, 0, DMIG_TARGET_OK);
	ask(fd, DMIG_TARGET_DELETE, 0, NULL, 0, DMIG_TARGET_OK);
	ask(fd, DMIG_TARGET_START, getpid(), NULL, 0, DMIG_TARGET_FAILED);
	end_target(t);
}

static void bad_create_ends_the_target(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_target *t = new_target();
	cleanup_fd int fd = dial();
	ask(fd, DMIG_TARGET_CREATE, 0, "runc\0create\0c", 14, DMIG_TARGET_FAILED);
	ask(fd, DMIG_TARGET_CREATE, 0, "runc\0create\0c", 14, DMIG_TARGET_FAILED);
	assert_true(dmig_target_wait_started(t, 5000, &err) < 0);
	assert_int_equal(dmig_poll_one(dmig_target_event_fd(t), POLLIN, 0), 1);
	end_target(t);
}

static void failing_runc_is_reported(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char *data = NULL;
	size_t len;
	const char *const argv[] = {"runc", "--root", "/nonexistent", "create", "--bundle", "/", "--pid-file",
		"/nonexistent/p", "c"};
	struct dmig_target *t = new_target();
	cleanup_fd int fd = dial();
	assert_int_equal(dmig_strings_join(argv, 9, &data, &len), 0);
	ask(fd, DMIG_TARGET_CREATE, 0, data, len, DMIG_TARGET_FAILED);
	assert_fails(dmig_target_check(t, &err), err, EIO);
	end_target(t);
}

static void nonsense_ends_only_its_connection(void **state)
{
	(void)state;
	struct dmig_target *t = new_target();
	cleanup_packet struct dmig_packet p = DMIG_PACKET_INIT;
	cleanup_fd int bad = dial();
	cleanup_fd int good = dial();
	assert_int_equal(send(bad, "hello", 5, 0), 5);
	assert_int_equal(dmig_packet_recv(bad, 5000, &p), -EPIPE);
	ask(good, DMIG_TARGET_STATE, 0, NULL, 0, DMIG_TARGET_OK);
	ask(good, DMIG_TARGET_RESTORED, 0, NULL, 0, DMIG_TARGET_FAILED); /* not the helper */
	end_target(t);
}

static void waiting_requests_end_with_the_target(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	cleanup_packet struct dmig_packet p = DMIG_PACKET_INIT, q = DMIG_PACKET_INIT;
	struct dmig_target *t = new_target();
	cleanup_fd int fd = dial();
	cleanup_fd int other = dial();
	assert_int_equal(dmig_packet_send(fd, DMIG_TARGET_EXEC_WAIT, 0, NULL, 0, NULL, 0), 0);
	assert_int_equal(dmig_packet_recv(fd, 50, &p), -ETIMEDOUT);
	assert_ok(dmig_target_undo(t, &err), err);
	assert_int_equal(dmig_packet_recv(fd, 5000, &p), 0);
	assert_int_equal(p.head.type, DMIG_TARGET_FAILED);
	assert_ok(dmig_target_undo(t, &err), err);
	end_target(t);
	assert_int_equal(dmig_packet_recv(other, 5000, &q), -EPIPE);
}

static void too_many_connections_are_refused(void **state)
{
	(void)state;
	int fds[40];
	struct dmig_target *t = new_target();
	for (size_t i = 0; i < 40; i++)
		fds[i] = dial();
	cleanup_packet struct dmig_packet p = DMIG_PACKET_INIT;
	assert_int_equal(dmig_packet_recv(fds[39], 5000, &p), 0);
	assert_int_equal(p.head.type, DMIG_TARGET_FAILED);
	for (size_t i = 0; i < 40; i++)
		close(fds[i]);
	end_target(t);
}

static void *hammer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++) {
		cleanup_fd int fd = dial();
		cleanup_packet struct dmig_packet p = DMIG_PACKET_INIT;
		dmig_packet_send(fd, i % 2 ? DMIG_TARGET_KILL : DMIG_TARGET_STATE, SIGTERM, NULL, 0, NULL, 0);
		if (i % 3)
			dmig_packet_recv(fd, 5000, &p);
	}
	return NULL;
}

/* For the thread sanitizer: requests from all sides while the owner asks and undoes. */
static void many_at_once(void **state)
{
	(void)state;
	pthread_t threads[4];
	struct dmig_target *t = new_target();
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, NULL), 0);
	for (int i = 0; i < 100; i++) {
		cleanup_error struct dmig_error *err = NULL;
		dmig_target_check(t, &err);
		dmig_target_wait_started(t, 0, NULL);
	}
	dmig_target_undo(t, NULL);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	end_target(t);
}

static void steps_out_of_order_are_refused(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_target *t = new_target();
	struct dmig_restore_opts opts = {.images_dir = "/"};
	assert_fails(dmig_target_vacate(t, &err), err, EINVAL);
	assert_fails(dmig_target_restore(t, &opts, &err), err, EINVAL);
	assert_fails(dmig_target_release(t, &err), err, EINVAL);
	assert_fails(dmig_target_commit(t, &err), err, EINVAL);
	assert_fails(dmig_target_wait_started(t, 1, &err), err, ETIMEDOUT);
	end_target(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_create_runc_is_asked),
		cmocka_unit_test(bad_create_ends_the_target),
		cmocka_unit_test(failing_runc_is_reported),
		cmocka_unit_test(nonsense_ends_only_its_connection),
		cmocka_unit_test(waiting_requests_end_with_the_target),
		cmocka_unit_test(too_many_connections_are_refused),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(steps_out_of_order_are_refused),
	};
	return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
