/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include "command/words.h"

static void splits_at_blanks(void **state)
{
	struct dmig_words w = {0};
	(void)state;
	dmig_words_split(&w, "  ssh -F\t/x  ");
	dmig_words_add(&w, "--", "host", NULL);
	char **v = dmig_words_take(&w);
	assert_non_null(v);
	assert_string_equal(v[0], "ssh");
	assert_string_equal(v[1], "-F");
	assert_string_equal(v[2], "/x");
	assert_string_equal(v[4], "host");
	assert_null(v[5]);
	dmig_words_free(v);
}

static void inserts_before_the_tail(void **state)
{
	char *argv[] = {(char[]){"ssh"}, (char[]){"--"}, (char[]){"host"}, NULL};
	(void)state;
	char **v = dmig_words_insert(argv, 2, "-o", "x", NULL);
	assert_non_null(v);
	assert_string_equal(v[0], "ssh");
	assert_string_equal(v[1], "-o");
	assert_string_equal(v[2], "x");
	assert_string_equal(v[3], "--");
	assert_string_equal(v[4], "host");
	assert_null(v[5]);
	dmig_words_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_at_blanks),
		cmocka_unit_test(inserts_before_the_tail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
