/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "command/dockerd.h"
#include "util/cleanup.h"

static int listen_at(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 5), 0);
	return fd;
}

static void ignore(int sig)
{
	(void)sig;
}

static void finds_who_listens(void **state)
{
	struct dmig_error *err = NULL;
	struct dmig_dockerd d;
	char *dir = test_mkdir();
	cleanup_free char *path = dmig_asprintf("%s/s", dir);
	cleanup_fd int fd = listen_at(path);
	(void)state;
	assert_ok(dmig_dockerd_find(path, &d, &err), err);
	assert_int_equal(d.pid, getpid());
	/* A process that would die of SIGHUP is no dockerd. */
	signal(SIGHUP, SIG_DFL);
	assert_fails(dmig_dockerd_reload(&d, &err), err, EPERM);
	signal(SIGHUP, ignore);
	assert_ok(dmig_dockerd_reload(&d, &err), err);
	dmig_dockerd_clear(&d);
	test_rmdir(dir);
}

/* Socket activation: one process listens, another one holds the socket and serves it. */
static void finds_who_was_given_the_socket(void **state)
{
	char *dir = test_mkdir();
	cleanup_free char *path = dmig_asprintf("%s/s", dir);
	int fd = listen_at(path);
	(void)state;
	assert_int_equal(dmig_dockerd_holder(path, getpid()), 0);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(dmig_dockerd_holder(path, getpid()), child);
	close(fd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(dmig_dockerd_holder(path, 0), 0);
	test_rmdir(dir);
}

static void nobody_there(void **state)
{
	struct dmig_error *err = NULL;
	struct dmig_dockerd d;
	char *dir = test_mkdir();
	cleanup_free char *path = dmig_asprintf("%s/s", dir);
	(void)state;
	assert_fails(dmig_dockerd_find(path, &d, &err), err, ENOENT);
	close(listen_at(path));
	assert_fails(dmig_dockerd_find(path, &d, &err), err, ECONNREFUSED);
	test_rmdir(dir);
}

static void options(void **state)
{
	char command[] = "dockerd\0-H\0fd://\0--config-file=/x.json\0--add-runtime\0a=/b\0--debug\0";
	struct dmig_dockerd d = {.pidfd = -1, .command = command};
	(void)state;
	assert_string_equal(dmig_dockerd_option(&d, "config-file"), "/x.json");
	assert_string_equal(dmig_dockerd_option(&d, "add-runtime"), "a=/b");
	assert_string_equal(dmig_dockerd_option(&d, "debug"), "");
	assert_null(dmig_dockerd_option(&d, "config"));
	assert_null(dmig_dockerd_option(&d, "dockerd"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_who_listens),
		cmocka_unit_test(finds_who_was_given_the_socket),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
