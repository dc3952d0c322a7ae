/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include "command/format.h"

static void bytes(void **state)
{
	static const struct {
		double bytes;
		const char *text;
	} rows[] = {{0, "0 B"}, {999, "999 B"}, {1000, "1.0 kB"}, {999949, "999.9 kB"}, {999950, "1.0 MB"},
		{1.5e9, "1.5 GB"}, {3e15, "3000.0 TB"}};
	char buf[DMIG_FORMAT_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(dmig_format_bytes(rows[i].bytes, buf), rows[i].text);
}

static void times(void **state)
{
	static const struct {
		double ms;
		const char *text;
	} rows[] = {{0, "0.0 ms"}, {0.44, "0.4 ms"}, {9.96, "10 ms"}, {84.2, "84 ms"}, {999.6, "1.0 s"},
		{3200, "3.2 s"}, {59960, "1 min 0 s"}, {125400, "2 min 5 s"}};
	char buf[DMIG_FORMAT_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(dmig_format_time(rows[i].ms, buf), rows[i].text);
}

static void members_of_any_type(void **state)
{
	json_t *obj = json_pack("{s:i,s:f,s:n,s:s}", "i", 3, "f", 2.5, "n", "s", "a\nb");
	char *text = dmig_json_text(obj, "s");
	(void)state;
	assert_true(dmig_json_number(obj, "i", 9) == 3);
	assert_true(dmig_json_number(obj, "f", 9) == 2.5);
	assert_true(dmig_json_number(obj, "n", 9) == 9);
	assert_true(dmig_json_number(NULL, "i", 9) == 9);
	assert_string_equal(text, "a?b");
	free(text);
	text = dmig_json_text(obj, "i");
	assert_string_equal(text, "");
	free(text);
	json_decref(obj);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes),
		cmocka_unit_test(times),
		cmocka_unit_test(members_of_any_type),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
