/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>

#include "util/cleanup.h"
#include "util/log.h"

static char last[4096];
static int count;

static void keep(enum dmig_log_level level, const char *line, void *opaque)
{
	(void)level;
	assert_ptr_equal(opaque, last);
	snprintf(last, sizeof(last), "%s", line);
	count++;
}

static void lines_reach_file_and_callback(void **state)
{
	(void)state;
	int p[2];
	char buf[4096] = {0};
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	dmig_log_to_fd(p[1], DMIG_LOG_INFO, "source");
	dmig_log_to_callback(keep, last);
	errno = ENOTTY;
	log_info("number %d", 7);
	assert_int_equal(errno, ENOTTY);
	log_debug("too much");
	assert_int_equal(count, 1);
	assert_string_equal(last, "number 7");
	assert_true(read(p[0], buf, sizeof(buf) - 1) > 0);
	assert_non_null(strstr(buf, " info source["));
	assert_non_null(strstr(buf, ": number 7\n"));
	dmig_log_to_fd(-1, DMIG_LOG_INFO, NULL);
	close(p[0]);
	close(p[1]);
}

static void long_lines_are_cut(void **state)
{
	(void)state;
	int p[2];
	char buf[8192], text[5000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	dmig_log_to_fd(p[1], DMIG_LOG_INFO, "t");
	log_info("%s", text);
	ssize_t n = read(p[0], buf, sizeof(buf));
	assert_in_range(n, 1000, 2048);
	assert_int_equal(buf[n - 1], '\n');
	dmig_log_to_fd(-1, DMIG_LOG_INFO, NULL);
	close(p[0]);
	close(p[1]);
}

static void full_disk_stops_nothing(void **state)
{
	(void)state;
	cleanup_fd int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	dmig_log_to_fd(fd, DMIG_LOG_INFO, "t");
	log_error("lost");
	log_error("lost too");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_reach_file_and_callback),
		cmocka_unit_test(long_lines_are_cut),
		cmocka_unit_test(full_disk_stops_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
