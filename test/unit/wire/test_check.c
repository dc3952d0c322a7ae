/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire_test.h"

static void utf8_is_strict(void **state)
{
	(void)state;
	assert_true(dmig_wire_utf8_ok("", 0));
	assert_true(dmig_wire_utf8_ok("plain\n", 6));
	assert_true(dmig_wire_utf8_ok("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9));
	static const char *const bad[] = {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
		"\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xff", "a\xc3("};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(dmig_wire_utf8_ok(bad[i], strlen(bad[i])));
	assert_false(dmig_wire_utf8_ok("a\0b", 3));
}

static void text_has_no_controls(void **state)
{
	(void)state;
	assert_true(dmig_wire_text_ok("caf\xc3\xa9", 5));
	assert_false(dmig_wire_text_ok("a\nb", 3));
	assert_false(dmig_wire_text_ok("\x1b[2J", 4));
	assert_false(dmig_wire_text_ok("\x7f", 1));
	assert_false(dmig_wire_text_ok("\xc2\x9b", 2));
	assert_true(dmig_wire_text_ok("\xc2\xa0", 2));
}

static void clean_makes_text(void **state)
{
	(void)state;
	char out[8];
	dmig_wire_text_clean("a\nb\xff", out, sizeof(out));
	assert_string_equal(out, "a b?");
	dmig_wire_text_clean("123456\xc3\xa9", out, sizeof(out));
	assert_string_equal(out, "123456"); /* never half a character */
	dmig_wire_text_clean("12345\xc3\xa9", out, sizeof(out));
	assert_string_equal(out, "12345\xc3\xa9");
	dmig_wire_text_clean("x", out, 1);
	assert_string_equal(out, "");
}

static void paths_stay_below(void **state)
{
	(void)state;
	static const char *const good[] = {"a", "a/b", "...", ".a", "a/..b", "a b/\xff\n"};
	static const char *const bad[] = {
		"", ".", "..", "/", "/a", "a/", "a//b", "a/./b", "a/../b", "a/..", "../a", "./a"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(dmig_wire_path_ok(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(dmig_wire_path_ok(bad[i]));
	assert_true(dmig_wire_absolute_path_ok("/a/b"));
	assert_false(dmig_wire_absolute_path_ok("/"));
	assert_false(dmig_wire_absolute_path_ok("a"));
	assert_false(dmig_wire_absolute_path_ok("//a"));

	char longest[DMIG_WIRE_MAX_PATH + 2];
	memset(longest, 'a', sizeof(longest));
	longest[DMIG_WIRE_MAX_PATH] = '\0';
	assert_true(dmig_wire_path_ok(longest));
	longest[DMIG_WIRE_MAX_PATH] = 'a';
	longest[DMIG_WIRE_MAX_PATH + 1] = '\0';
	assert_false(dmig_wire_path_ok(longest));
}

static void ids_are_hexadecimal(void **state)
{
	(void)state;
	assert_true(dmig_wire_id_ok("0123456789abcdef"));
	assert_false(dmig_wire_id_ok("0123456789ABCDEF"));
	assert_false(dmig_wire_id_ok("0123456789abcde"));
	assert_false(dmig_wire_id_ok("0123456789abcdef0"));
	assert_false(dmig_wire_id_ok("../../../etc/pas"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_strict),
		cmocka_unit_test(text_has_no_controls),
		cmocka_unit_test(clean_makes_text),
		cmocka_unit_test(paths_stay_below),
		cmocka_unit_test(ids_are_hexadecimal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
