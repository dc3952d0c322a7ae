/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/table.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

const struct dmig_cli_option dmig_cli_common_options[] = {
	{"json", NULL, "write the result as JSON", DMIG_CLI_FLAG, offsetof(struct dmig_cli_common, json),
		NULL},
	{"quiet", NULL, "write nothing but errors", DMIG_CLI_FLAG, offsetof(struct dmig_cli_common, quiet),
		NULL},
	{"verbose", NULL, "write more to the log", DMIG_CLI_FLAG, offsetof(struct dmig_cli_common, verbose),
		NULL},
	{"help", NULL, "show this text", DMIG_CLI_FLAG, offsetof(struct dmig_cli_common, help), NULL},
	{0},
};

static size_t count(const struct dmig_cli_option *o)
{
	size_t n = 0;
	while (o && o[n].name)
		n++;
	return n;
}

static int store_text(char **place, const char *text, struct dmig_error **err)
{
	char *copy = strdup(text);
	if (!copy)
		return dmig_error_set(err, ENOMEM, "out of memory");
	free(*place);
	*place = copy;
	return 0;
}

static int store(const struct dmig_cli_option *o, void *values, const char *text, struct dmig_error **err)
{
	void *place = (char *)values + o->offset;
	switch (o->kind) {
	case DMIG_CLI_FLAG:
		*(bool *)place = true;
		return 0;
	case DMIG_CLI_TEXT:
		return store_text(place, text, err);
	case DMIG_CLI_CHOICE:
		return dmig_cli_choice(o->arg, text, place, err);
	case DMIG_CLI_DURATION:
		return dmig_cli_duration(text, place, err);
	case DMIG_CLI_NUMBER:
		return dmig_cli_number(text, 0, INT_MAX, place, err);
	case DMIG_CLI_PORTS:
		return dmig_cli_ports(text, place, err);
	case DMIG_CLI_CALL:
		return o->call(values, text, err);
	}
	return dmig_error_set_class(err, DMIG_ERR_INTERNAL, EINVAL, "option table: unknown kind");
}

static void fill_getopt(struct option *out, const struct dmig_cli_option *options, size_t n, int first)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (struct option){options[i].name, options[i].arg ? required_argument : no_argument,
			NULL, first + (int)i};
}

/* optopt: a character for a short option, 0 for an unknown or ambiguous long one, else one that lacks or
 * cannot have a value. */
static int usage_error(const struct dmig_cli_command *cmd, int got, char **argv, struct dmig_error **err)
{
	char letter[] = {'-', (char)optopt, '\0'};
	const char *what = got == ':'           ? "needs a value"
			   : optopt > UCHAR_MAX ? "takes no value"
						: "is not an option";
	return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "%s: %s %s (see --help)", cmd->name,
		optopt && optopt <= UCHAR_MAX ? letter : argv[optind - 1], what);
}

/* getopt reports by val: own options start above any character, common ones behind them. */
#define FIRST (UCHAR_MAX + 1)

static int parse_options(const struct dmig_cli_command *cmd, int argc, char **argv, void *values,
	struct dmig_cli_common *common, struct dmig_error **err)
{
	size_t own = count(cmd->options), shared = count(dmig_cli_common_options);
	cleanup_free struct option *longs = calloc(own + shared + 1, sizeof(*longs));
	if (!longs)
		return dmig_error_set(err, ENOMEM, "out of memory");
	fill_getopt(longs, cmd->options, own, FIRST);
	fill_getopt(longs + own, dmig_cli_common_options, shared, FIRST + (int)own);
	opterr = 0;
	optind = 0; /* glibc: forget an earlier scan */
	for (;;) {
		int c = getopt_long(argc, argv, ":h", longs, NULL);
		if (c == -1)
			return 0;
		if (c == 'h')
			c = FIRST + (int)(own + shared) - 1;
		if (c < FIRST)
			return usage_error(cmd, c, argv, err);
		size_t i = (size_t)(c - FIRST);
		const struct dmig_cli_option *o =
			i < own ? &cmd->options[i] : &dmig_cli_common_options[i - own];
		int r = store(o, i < own ? values : common, optarg, err);
		if (r < 0)
			return dmig_error_wrap(err, "--%s", o->name);
	}
}

static void count_args(const char *args, int *ret_min, int *ret_max)
{
	*ret_min = *ret_max = 0;
	for (const char *w = args ? args : ""; *w;) {
		size_t n = strcspn(w, " ");
		(*ret_max)++;
		if (*w != '[')
			(*ret_min)++;
		w += n + strspn(w + n, " ");
	}
}

int dmig_cli_parse(const struct dmig_cli_command *cmd, int argc, char **argv, void *values,
	struct dmig_cli_common *common, char ***ret_args, struct dmig_error **err)
{
	int min, max;
	int r = parse_options(cmd, argc, argv, values, common, err);
	if (r < 0)
		return r;
	*ret_args = argv + optind;
	if (common->help)
		return 0;
	count_args(cmd->args, &min, &max);
	int given = argc - optind;
	if (given < min)
		return dmig_error_set_class(
			err, DMIG_ERR_USAGE, EINVAL, "%s needs %s (see --help)", cmd->name, cmd->args);
	if (given > max)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
			"%s: \"%s\" is one argument too many", cmd->name, argv[optind + max]);
	return 0;
}

static void help_rows(FILE *out, const struct dmig_cli_option *options)
{
	for (const struct dmig_cli_option *o = options; o && o->name; o++) {
		int n = fprintf(out, "  --%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
		/* A long left side gets a line of its own, so that the right side stays one column. */
		if (n > 30)
			fprintf(out, "\n%*s%s\n", 32, "", o->help);
		else
			fprintf(out, "%*s%s\n", 32 - n, "", o->help);
	}
}

void dmig_cli_help(FILE *out, const char *program, const struct dmig_cli_command *cmd)
{
	fprintf(out, "Usage: %s%s%s [OPTION]...%s%s\n\n%s.\n", program ? program : "", program ? " " : "",
		cmd->name, cmd->args ? " " : "", cmd->args ? cmd->args : "", cmd->summary);
	if (cmd->text)
		fprintf(out, "\n%s", cmd->text);
	fprintf(out, "\nOptions:\n");
	help_rows(out, cmd->options);
	help_rows(out, dmig_cli_common_options);
}
