/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_SUPPORT_TEST_H
#define DMIG_TEST_SUPPORT_TEST_H

/* What every unit test includes first: cmocka with the headers it wants before it, and a few checks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"
#include "util/io.h"

/* The call works: prints the message of its error if not. err: struct dmig_error *. */
#define assert_ok(call, err)                                                                                 \
	do {                                                                                                 \
		long _r = (long)(call);                                                                      \
		if (_r < 0)                                                                                  \
			fail_msg("%s = %ld: %s", #call, _r, (err) ? (err)->message : "(no message)");        \
		assert_null(err);                                                                            \
	} while (0)

/* The call fails with this errno and a message; frees the error and sets it to NULL again. */
#define assert_fails(call, err, errno_value)                                                                 \
	do {                                                                                                 \
		assert_int_equal((call), -(errno_value));                                                    \
		assert_non_null(err);                                                                        \
		assert_non_null((err)->message);                                                             \
		assert_int_equal((err)->code, (errno_value));                                                \
		dmig_error_freep(&(err));                                                                    \
	} while (0)

/* A new folder below TMPDIR; test_rmdir() removes the tree and frees the name. */
static inline char *test_mkdir(void)
{
	const char *base = getenv("TMPDIR");
	char *path = dmig_asprintf("%s/dmig-test-XXXXXX", base && *base ? base : "/tmp");
	assert_non_null(path);
	assert_non_null(mkdtemp(path));
	return path;
}

static inline void test_rmdir(char *path)
{
	assert_int_equal(dmig_remove_tree(path), 0);
	free(path);
}

/* Leave the whole program as skipped (ctest sees 77). */
static inline void test_skip_program(const char *why)
{
	printf("SKIP: %s\n", why);
	exit(77);
}

#endif
