/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CLI_COMPLETE_H
#define DMIG_CLI_COMPLETE_H

#include <stdio.h>

#include "cli/table.h"

/* A word of the tables (an argument or the value of an option) and a command that prints what can stand
 * there, one a line. */
struct dmig_cli_lister {
	const char *word;    /* "CONTAINER" */
	const char *command; /* for sh; without quotes */
};

struct dmig_cli_program {
	const char *name;
	const struct dmig_cli_command *const *commands; /* NULL-terminated */
	const struct dmig_cli_lister *listers;          /* ended by a NULL word */
};

/* Completion script for shell: "bash", "zsh" or "fish". */
int dmig_cli_complete(
	FILE *out, const char *shell, const struct dmig_cli_program *program, struct dmig_error **err);

#endif
