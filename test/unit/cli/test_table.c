/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>

#include "cli/table.h"
#include "util/cleanup.h"

enum colour { RED, GREEN };

struct values {
	bool flag;
	char *text;
	enum colour colour;
	int limit, calls;
	struct dmig_cli_ports ports;
};

static int count_call(void *values, const char *text, struct dmig_error **err)
{
	struct values *v = values;
	if (!strcmp(text, "bad"))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "bad it is");
	v->calls++;
	return 0;
}

static const struct dmig_cli_option options[] = {
	{"flag", NULL, "a flag", DMIG_CLI_FLAG, offsetof(struct values, flag), NULL},
	{"text", "TEXT", "a text", DMIG_CLI_TEXT, offsetof(struct values, text), NULL},
	{"colour", "red|green", "a choice", DMIG_CLI_CHOICE, offsetof(struct values, colour), NULL},
	{"limit", "DURATION", "a time", DMIG_CLI_DURATION, offsetof(struct values, limit), NULL},
	{"ports", "LOW[-HIGH]", "ports", DMIG_CLI_PORTS, offsetof(struct values, ports), NULL},
	{"call", "X", "a call", DMIG_CLI_CALL, 0, count_call},
	{0},
};

static const struct dmig_cli_command command = {
	.name = "paint",
	.summary = "Paint something",
	.args = "WALL [DOOR]",
	.options = options,
};

static struct dmig_cli_common common;
static char **args;

/* Parses words, NULL-terminated; the array is reordered, as argv is. */
static int parse(struct values *v, char **words, struct dmig_error **err)
{
	int n = 0;
	while (words[n])
		n++;
	*v = (struct values){0};
	common = (struct dmig_cli_common){0};
	return dmig_cli_parse(&command, n, words, v, &common, &args, err);
}
#define W(...) ((char *[]){(char[]){"paint"}, __VA_ARGS__, NULL})
#define S(text) ((char[]){text})

static void every_kind(void **state)
{
	struct dmig_error *err = NULL;
	struct values v;
	(void)state;
	assert_ok(parse(&v,
			  W(S("wall"), S("--flag"), S("--text"), S("a"), S("--text=b"), S("--colour=green"),
				  S("--limit"), S("2s"), S("--ports"), S("5-6"), S("--call"), S("1"),
				  S("--call"), S("2"), S("--json")),
			  &err),
		err);
	assert_true(v.flag);
	assert_string_equal(v.text, "b");
	assert_int_equal(v.colour, GREEN);
	assert_int_equal(v.limit, 2000);
	assert_int_equal(v.ports.high, 6);
	assert_int_equal(v.calls, 2);
	assert_true(common.json);
	assert_false(common.quiet);
	assert_string_equal(args[0], "wall");
	assert_null(args[1]);
	free(v.text);
}

static void dashes_end_the_options(void **state)
{
	struct dmig_error *err = NULL;
	struct values v;
	(void)state;
	assert_ok(parse(&v, W(S("--flag"), S("--"), S("--text"), S("--json")), &err), err);
	assert_string_equal(args[0], "--text");
	assert_string_equal(args[1], "--json");
	assert_false(common.json);
}

static void refuse(char **words, const char *part)
{
	struct dmig_error *err = NULL;
	struct values v;
	assert_int_equal(parse(&v, words, &err), -EINVAL);
	assert_int_equal(err->class, DMIG_ERR_USAGE);
	if (!strstr(err->message, part))
		fail_msg("\"%s\" does not tell \"%s\"", err->message, part);
	dmig_error_freep(&err);
	free(v.text);
}

static void mistakes_are_named(void **state)
{
	(void)state;
	refuse(W(S("wall"), S("--nope")), "--nope is not an option");
	refuse(W(S("wall"), S("-z")), "-z is not an option");
	refuse(W(S("wall"), S("--text")), "--text needs a value");
	refuse(W(S("wall"), S("--flag=1")), "--flag=1 takes no value");
	refuse(W(S("wall"), S("--colour"), S("blue")), "--colour: \"blue\" is not one of red|green");
	refuse(W(S("wall"), S("--call"), S("bad")), "--call: bad it is");
	refuse(W(S("--flag")), "needs WALL [DOOR]");
	refuse(W(S("a"), S("b"), S("c")), "\"c\" is one argument too many");
}

static void help_needs_no_arguments(void **state)
{
	struct dmig_error *err = NULL;
	struct values v;
	(void)state;
	assert_ok(parse(&v, W(S("--help")), &err), err);
	assert_true(common.help);
	assert_ok(parse(&v, W(S("-h")), &err), err);
	assert_true(common.help);
}

static void help_names_every_option(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	(void)state;
	dmig_cli_help(out, "house", &command);
	fclose(out);
	assert_non_null(strstr(text, "Usage: house paint [OPTION]... WALL [DOOR]\n"));
	assert_non_null(strstr(text, "\n  --colour red|green            a choice\n"));
	assert_non_null(strstr(text, "\n  --json                        "));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),
		cmocka_unit_test(dashes_end_the_options),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(help_needs_no_arguments),
		cmocka_unit_test(help_names_every_option),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
