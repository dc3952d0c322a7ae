/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "netns/tcp_table.h"

static void kinds_are_told_apart(void **state)
{
	(void)state;
	char table[] = "  sl  local_address rem_address   st tx_queue\n"
		       "   0: 00000000:18EB 00000000:0000 0A 00000000:00000000\n"
		       "   1: 3200580A:18EB C800580A:A000 01 00000000:00000000\n"
		       "   2: 0100007F:18EB 0100007F:A001 01 00000000:00000000\n"
		       "   3: 3200580A:18EB 3200580A:A002 01 00000000:00000000\n"
		       "   4: 3200580A:18EB C800580A:A003 06 00000000:00000000\n";
	struct dmig_tcp_counts c = {0};
	assert_int_equal(netns__count_tcp(table, &c), 0);
	assert_int_equal(c.listening, 1);
	assert_int_equal(c.established, 3);
	assert_int_equal(c.outside, 1);
}

static void v4_inside_v6(void **state)
{
	(void)state;
	char table[] = "heading\n"
		       "   0: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:A000 01 0:0\n"
		       "   1: 0000000000000000FFFF00003200580A:0050 0000000000000000FFFF0000C800580A:A000 01 0:0\n"
		       "   2: 00000000000000000000000001000000:0050 00000000000000000000000001000000:A000 01 0:0\n";
	struct dmig_tcp_counts c = {0};
	assert_int_equal(netns__count_tcp(table, &c), 0);
	assert_int_equal(c.established, 3);
	assert_int_equal(c.outside, 1);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	char table[] = "heading\nnonsense\n";
	struct dmig_tcp_counts c = {0};
	assert_int_equal(netns__count_tcp(table, &c), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(v4_inside_v6),
		cmocka_unit_test(nonsense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
