/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "netns/tcp_table.h"

static int read_table(char *table, struct dmig_tcp_counts *c)
{
	struct netns_flows flows = {0};
	int r = netns__read_tcp(table, c, &flows);
	if (r == 0)
		assert_int_equal(flows.n, c->established);
	netns__flows_clear(&flows);
	return r;
}

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
	assert_int_equal(read_table(table, &c), 0);
	assert_int_equal(c.listening, 1);
	assert_int_equal(c.established, 3);
	assert_int_equal(c.outside, 1);
}

static void v4_inside_v6(void **state)
{
	(void)state;
	char table[] =
		"heading\n"
		"   0: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:A000 01 0:0\n"
		"   1: 0000000000000000FFFF00003200580A:0050 0000000000000000FFFF0000C800580A:A000 01 0:0\n"
		"   2: 00000000000000000000000001000000:0050 00000000000000000000000001000000:A000 01 0:0\n";
	struct dmig_tcp_counts c = {0};
	assert_int_equal(read_table(table, &c), 0);
	assert_int_equal(c.established, 3);
	assert_int_equal(c.outside, 1);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	char table[] = "heading\nnonsense\n";
	struct dmig_tcp_counts c = {0};
	assert_int_equal(read_table(table, &c), -EPROTO);
}

static void flows_are_found_and_named(void **state)
{
	(void)state;
	char table[] =
		"heading\n"
		"   0: 3200580A:0050 C800580A:A000 01 0:0\n"
		"   1: 0000000000000000FFFF00003200580A:0051 0000000000000000FFFF0000C800580A:A001 01 0:0\n"
		"   2: B80D01200000000000000000050000AA:0050 B80D01200000000000000000060000AA:A002 01 0:0\n";
	struct dmig_tcp_counts c = {0};
	struct netns_flows flows = {0};
	assert_int_equal(netns__read_tcp(table, &c, &flows), 0);
	char *v4 = netns__flow_text(&flows.list[1]), *v6 = netns__flow_text(&flows.list[2]);
	assert_string_equal(v4, "10.88.0.200:40961 -> 10.88.0.50:81");
	assert_string_equal(v6, "[2001:db8::aa00:6]:40962 -> [2001:db8::aa00:5]:80");
	netns__flows_sort(&flows);
	struct netns_flow one = flows.list[1];
	assert_true(netns__has_flow(&flows, &one));
	one.local_port++;
	assert_false(netns__has_flow(&flows, &one));
	netns__flows_clear(&flows);
	free(v4);
	free(v6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(v4_inside_v6),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(flows_are_found_and_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
