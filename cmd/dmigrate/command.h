/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_COMMAND_H
#define DMIG_COMMAND_COMMAND_H

#include <jansson.h>

#include "cli/complete.h"
#include "cli/table.h"
#include "migrate/report.h"
#include "util/error.h"

/* Flags of a command. */
enum {
	DMIG_COMMAND_ROOT = 1,    /* needs root */
	DMIG_COMMAND_RECOVER = 2, /* first puts right what a crash left */
};

struct dmig_cli {
	struct dmig_cli_common common;
};

/*
 * What each run() does first: parse, --help, root, recovery. 1: --help was written, there is nothing more to
 * do. *ret_args is lent from argv: the positional arguments, NULL-terminated.
 */
int dmig_command_begin(struct dmig_cli *cli, const struct dmig_cli_command *cmd, int argc, char **argv,
	void *values, char ***ret_args, struct dmig_error **err);

/* Print obj on stdout, one line end behind it, and drop the reference. */
void dmig_command_print_json(json_t *obj);
/* "dmigrate: SIDE: message" on stderr, cleaned line by line. side may be NULL, "" or "local": then it is left
 * out. */
void dmig_command_print_error(const char *side, const char *message);
/* The same for an error, with {"error":{...},"exit_code":N} on stdout if JSON was asked for. Returns the exit
 * code. */
int dmig_command_print_failure(const struct dmig_cli *cli, const struct dmig_error *e);
/* Receiver of the lines of dmig_recover(); opaque is the struct dmig_cli. */
void dmig_command_note(const char *line, void *opaque);

extern const struct dmig_cli_program dmig_program; /* the table, in main.c */
extern const struct dmig_cli_command dmig_cmd_migrate, dmig_cmd_check, dmig_cmd_status, dmig_cmd_cancel,
	dmig_cmd_resolve, dmig_cmd_report, dmig_cmd_setup, dmig_cmd_key, dmig_cmd_recover,
	dmig_cmd_completion, dmig_cmd_version;

#endif
