/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <limits.h>

#include "cli/table.h"

static void durations(void **state)
{
	static const struct {
		const char *text;
		int ms;
	} good[] = {{"0", 0}, {"7", 7000}, {"1500ms", 1500}, {"30s", 30000}, {"5m", 300000}, {"5min", 300000},
		{"1h", 3600000}, {"2147483647ms", INT_MAX}};
	static const char *const bad[] = {
		"", "s", "-1s", "+1s", " 1s", "1 s", "1.5s", "1d", "3x", "2147484s", "99999999999999999999s"};
	struct dmig_error *err = NULL;
	int ms;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_ok(dmig_cli_duration(good[i].text, &ms, &err), err);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_fails(dmig_cli_duration(bad[i], &ms, &err), err, EINVAL);
}

static void ports(void **state)
{
	static const char *const bad[] = {
		"", "0", "65536", "1-", "-1", "5-4", "1-65536", "1-2-3", "a", "1 - 2", "99999999999"};
	struct dmig_error *err = NULL;
	struct dmig_cli_ports p;
	(void)state;
	assert_ok(dmig_cli_ports("7788", &p, &err), err);
	assert_int_equal(p.low, 7788);
	assert_int_equal(p.high, 7788);
	assert_ok(dmig_cli_ports("1-65535", &p, &err), err);
	assert_int_equal(p.low, 1);
	assert_int_equal(p.high, 65535);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_fails(dmig_cli_ports(bad[i], &p, &err), err, EINVAL);
}

static void choices(void **state)
{
	static const char *const bad[] = {"", "a", "alphabet", "beta|gamma", "Alpha"};
	struct dmig_error *err = NULL;
	int n;
	(void)state;
	assert_ok(dmig_cli_choice("alpha|beta|gamma", "gamma", &n, &err), err);
	assert_int_equal(n, 2);
	assert_ok(dmig_cli_choice("alpha|beta|gamma", "alpha", &n, &err), err);
	assert_int_equal(n, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_fails(dmig_cli_choice("alpha|beta|gamma", bad[i], &n, &err), err, EINVAL);
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
	char text[] = "a\033[2Jb\x7f\tc\xc3\xa4";
	(void)state;
	assert_string_equal(dmig_cli_clean(text), "a?[2Jb??c\xc3\xa4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations),
		cmocka_unit_test(ports),
		cmocka_unit_test(choices),
		cmocka_unit_test(control_characters_do_not_reach_the_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
