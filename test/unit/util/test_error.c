/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>

static void set_fills_once(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	assert_int_equal(dmig_error_set(&err, ENOENT, "no %s", "file"), -ENOENT);
	assert_int_equal(dmig_error_set(&err, EIO, "later"), -EIO);
	assert_int_equal(err->code, ENOENT);
	assert_string_equal(err->message, "no file");
	assert_int_equal(err->class, DMIG_ERR_FAILED);
}

static void wrap_puts_context_in_front(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	dmig_error_set_class(&err, DMIG_ERR_USAGE, EINVAL, "bad number");
	assert_int_equal(dmig_error_wrap(&err, "line %d", 3), -EINVAL);
	assert_string_equal(err->message, "line 3: bad number");
	assert_int_equal(err->class, DMIG_ERR_USAGE);
}

static void null_is_allowed(void **state)
{
	(void)state;
	assert_int_equal(dmig_error_set(NULL, EPERM, "x"), -EPERM);
	assert_int_equal(dmig_error_set(NULL, 0, "x"), -EIO);
	assert_int_equal(dmig_error_set(NULL, -EPERM, "x"), -EPERM);
	assert_int_equal(dmig_error_wrap(NULL, "x"), -EIO);
	dmig_error_free(NULL);
}

static void closest_side_stays(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	dmig_error_set(&err, EIO, "x");
	dmig_error_side(err, DMIG_SIDE_DESTINATION);
	dmig_error_side(err, DMIG_SIDE_SOURCE);
	assert_int_equal(err->side, DMIG_SIDE_DESTINATION);
	assert_string_equal(dmig_side_name(err->side), "destination");
	dmig_error_side(NULL, DMIG_SIDE_SOURCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_fills_once),
		cmocka_unit_test(wrap_puts_context_in_front),
		cmocka_unit_test(null_is_allowed),
		cmocka_unit_test(closest_side_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
