/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_NETNS_LAB_H
#define DMIG_TEST_NETNS_LAB_H

/* Network namespaces for tests: they end with the process. */
#include "support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>

#include "util/cleanup.h"
#include "util/spawn.h"

#define LAB_SOON_MS 5000

/* One shell line that must work. */
static void sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline void sh(const char *fmt, ...)
{
	char line[768];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	struct dmig_error *err = NULL;
	assert_ok(dmig_run((const char *[]){"sh", "-ec", line, NULL}, NULL, LAB_SOON_MS, NULL, &err), err);
}

/* Leaves the process in a new namespace and returns it; shell lines reach it as /proc/PID/fd/FD. */
static inline int new_namespace(void)
{
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

#endif
