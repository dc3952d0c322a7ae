/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "util/cleanup.h"

static int open_fds(void)
{
	int n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void message_with_descriptors(void **state)
{
	(void)state;
	int s[2], got[DMIG_MAX_FDS];
	size_t n;
	char buf[10] = {0};
	struct stat a, b;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	const int fds[2] = {s[0], STDOUT_FILENO};
	assert_int_equal(dmig_send_fds(s[0], "hello", 5, fds, 2), 5);
	assert_int_equal(dmig_recv_fds(s[1], buf, sizeof(buf), got, DMIG_MAX_FDS, &n), 5);
	assert_string_equal(buf, "hello");
	assert_int_equal(n, 2);
	assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fstat(s[0], &a) | fstat(got[0], &b), 0);
	assert_true(a.st_ino == b.st_ino);
	close(got[0]);
	close(got[1]);
	close(s[0]);
	assert_int_equal(dmig_recv_fds(s[1], buf, sizeof(buf), got, DMIG_MAX_FDS, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(dmig_send_fds(s[1], "x", 1, NULL, 0), -EPIPE);
	close(s[1]);
}

static void too_much_is_refused_and_closed(void **state)
{
	(void)state;
	int s[2], got[2];
	size_t n;
	char buf[4];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	const int fds[3] = {s[0], s[0], s[0]};
	int before = open_fds();
	assert_int_equal(dmig_send_fds(s[0], "x", 1, fds, 3), 1);
	assert_int_equal(dmig_recv_fds(s[1], buf, sizeof(buf), got, 2, &n), -EMSGSIZE);
	assert_int_equal(n, 0);
	assert_int_equal(dmig_send_fds(s[0], "12345", 5, fds, 1), 5);
	assert_int_equal(dmig_recv_fds(s[1], buf, sizeof(buf), got, 2, &n), -EMSGSIZE);
	assert_int_equal(open_fds(), before);
	assert_int_equal(dmig_send_fds(s[0], "x", 1, fds, DMIG_MAX_FDS + 1), -E2BIG);
	close(s[0]);
	close(s[1]);
}

static void listen_and_connect(void **state)
{
	(void)state;
	char *folder = test_mkdir();
	cleanup_free char *path = dmig_asprintf("%s/sock", folder);
	struct stat st;
	assert_int_equal(dmig_unix_connect(path), -ENOENT);
	int fd = dmig_unix_listen(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(dmig_unix_connect(path), -ECONNREFUSED);
	fd = dmig_unix_listen(path); /* over what a dead process left */
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	int client = dmig_unix_connect(path), server = accept(fd, NULL, NULL);
	assert_true(client >= 0 && server >= 0);
	assert_int_equal(dmig_unix_peer_uid(server), geteuid());
	close(client);
	close(server);
	close(fd);
	char longest[300];
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(dmig_unix_listen(longest), -ENAMETOOLONG);
	assert_int_equal(dmig_unix_connect(longest), -ENAMETOOLONG);
	test_rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_with_descriptors),
		cmocka_unit_test(too_much_is_refused_and_closed),
		cmocka_unit_test(listen_and_connect),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
