/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "migrate/control.h"
#include "util/cleanup.h"

/* Digits of a real number: what a double surely holds, so that 0.048 is not 0.048000000000000001. */
#define PRECISION 15

static void print_note(const char *line, void *opaque)
{
	const struct dmig_cli *cli = opaque;
	if (!cli->common.quiet)
		fprintf(stderr, "%s\n", line);
}

int dmig_command_begin(struct dmig_cli *cli, const struct dmig_cli_command *cmd, int argc, char **argv,
	void *values, char ***ret_args, struct dmig_error **err)
{
	int r = dmig_cli_parse(cmd, argc, argv, values, &cli->common, ret_args, err);
	if (r < 0)
		return r;
	if (cli->common.help) {
		dmig_cli_help(stdout, dmig_program.name, cmd);
		return 1;
	}
	if ((cmd->flags & DMIG_COMMAND_ROOT) && geteuid() != 0)
		return dmig_error_set_class(
			err, DMIG_ERR_USAGE, EPERM, "%s needs root (try sudo)", cmd->name);
	if (cmd->flags & DMIG_COMMAND_RECOVER)
		r = dmig_recover(print_note, cli, err);
	return r;
}

void dmig_command_print_json(json_t *obj)
{
	json_dumpf(obj, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(PRECISION));
	putchar('\n');
	json_decref(obj);
}

int dmig_command_exit_code(const struct dmig_error *e)
{
	switch (e->class) {
	case DMIG_ERR_USAGE:
		return DMIG_EXIT_USAGE;
	case DMIG_ERR_REFUSED:
		return DMIG_EXIT_REFUSED;
	case DMIG_ERR_CANCELLED:
		return DMIG_EXIT_CANCELLED;
	case DMIG_ERR_UNKNOWN:
		return DMIG_EXIT_UNKNOWN;
	case DMIG_ERR_INTERNAL:
		return DMIG_EXIT_INTERNAL;
	case DMIG_ERR_FAILED:
		break;
	}
	return DMIG_EXIT_FAILED;
}

json_t *dmig_command_error_json(const struct dmig_error *e, int exit_code)
{
	return json_pack("{s:{s:s,s:i,s:s},s:i}", "error", "side", dmig_side_name(e->side), "code", e->code,
		"message", e->message ? e->message : "", "exit_code", exit_code);
}

void dmig_command_print_error(const char *side, const char *message)
{
	cleanup_free char *copy = strdup(message);
	char *rest = copy;
	bool named = side && *side && strcmp(side, dmig_side_name(DMIG_SIDE_LOCAL));
	fprintf(stderr, "dmigrate: %s%s", named ? side : "", named ? ": " : "");
	/* A check puts its findings on lines of their own. */
	for (char *line; (line = strsep(&rest, "\n"));)
		fprintf(stderr, "%s\n", dmig_cli_clean(line));
}
