/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "migrate/control.h"
#include "migrate/report_file.h"
#include "util/cleanup.h"

/* Digits of a real number: what a double surely holds, so that 0.048 is not 0.048000000000000001. */
#define PRECISION 15

void dmig_command_note(const char *line, void *opaque)
{
	const struct dmig_cli *cli = opaque;
	if (!cli->common.quiet)
		fprintf(stderr, "%s\n", line);
}

/* What cannot be put right yet (Docker does not run, say) must not keep a person from looking and deciding.
 */
static void recover(struct dmig_cli *cli)
{
	cleanup_error struct dmig_error *e = NULL;
	if (dmig_recover(dmig_command_note, cli, &e) < 0)
		fprintf(stderr, "warning: not everything could be recovered: %s\n",
			e && e->message ? e->message : "no reason given");
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
		recover(cli);
	return 0;
}

void dmig_command_print_json(json_t *obj)
{
	json_dumpf(obj, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(PRECISION));
	putchar('\n');
	json_decref(obj);
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

int dmig_command_print_failure(const struct dmig_cli *cli, const struct dmig_error *e)
{
	int code = dmig_report_exit_code(e, 0);
	dmig_command_print_error(dmig_side_name(e->side), e->message ? e->message : strerror(e->code));
	if (cli->common.json)
		dmig_command_print_json(
			json_pack("{s:o,s:i}", "error", dmig_report_error(e), "exit_code", code));
	return code;
}
