/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CLI_TABLE_H
#define DMIG_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "util/error.h"

/*
 * A command is a table: its options give parsing, --help and completion, so that the three cannot differ.
 * Values land in a struct of the command at the offset that the row names.
 */
enum dmig_cli_kind {
	DMIG_CLI_FLAG,     /* bool */
	DMIG_CLI_TEXT,     /* char *, owned by the struct */
	DMIG_CLI_CHOICE,   /* int-sized enum: number of the word in arg ("remove|keep") */
	DMIG_CLI_DURATION, /* int, milliseconds */
	DMIG_CLI_NUMBER,   /* int, 0 to INT_MAX */
	DMIG_CLI_PORTS,    /* struct dmig_cli_ports */
	DMIG_CLI_CALL,     /* call(values, text, err); may be given several times */
};

struct dmig_cli_option {
	const char *name; /* long, without dashes; NULL ends the table */
	const char
		*arg; /* NULL for a flag; else what stands behind it in --help, and the words of a choice */
	const char *help; /* one line, no full stop */
	enum dmig_cli_kind kind;
	size_t offset;
	int (*call)(void *values, const char *text, struct dmig_error **err);
};

struct dmig_cli; /* what every command gets, see command.h; here only passed on */

struct dmig_cli_command {
	const char *name;
	const char *summary; /* one line */
	const char *args;    /* "CONTAINER DEST", "[ID]"; NULL: none. The words also say what to complete */
	const char *text;    /* a paragraph for --help; lines end with newlines */
	const struct dmig_cli_option *options;
	unsigned flags;
	/* Exit code (enum dmig_exit), or negative with *err filled. */
	int (*run)(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err);
};

struct dmig_cli_ports {
	int low, high; /* 0: not given */
};

/* Options that every command has; they land in this. */
struct dmig_cli_common {
	bool json, quiet, verbose, help;
};
extern const struct dmig_cli_option dmig_cli_common_options[];

/*
 * argv[0] is the name of the command. Options may stand anywhere; "--" ends them. Positional arguments are
 * counted against cmd->args and returned (lent) from argv, which is reordered. values may be NULL when there
 * are no own options. With --help nothing else is checked.
 */
int dmig_cli_parse(const struct dmig_cli_command *cmd, int argc, char **argv, void *values,
	struct dmig_cli_common *common, char ***ret_args, struct dmig_error **err);

void dmig_cli_help(FILE *out, const char *program, const struct dmig_cli_command *cmd);

/* Text values: each says in its error what it wanted. */
int dmig_cli_duration(
	const char *text, int *ret_ms, struct dmig_error **err); /* 1500ms, 30s, 5m, 1h; plain: seconds */
int dmig_cli_number(const char *text, int min, int max, int *ret, struct dmig_error **err);
int dmig_cli_ports(const char *text, struct dmig_cli_ports *ret, struct dmig_error **err); /* LOW[-HIGH] */
int dmig_cli_choice(
	const char *words, const char *text, int *ret, struct dmig_error **err); /* words: "a|b" */

/* Replaces control bytes by '?': what came from elsewhere must not drive a terminal. Returns text. */
char *dmig_cli_clean(char *text);

#endif
