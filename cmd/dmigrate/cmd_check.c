/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate.h"

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	return dmig_migrate_run(cli, &dmig_cmd_check, true, argc, argv, err);
}

static const struct dmig_cli_option options[] = {
	DMIG_MIGRATE_OPTIONS,
	{0},
};

const struct dmig_cli_command dmig_cmd_check = {
	.name = "check",
	.summary = "Tell whether a container can move, and what would hinder it",
	.args = "CONTAINER [DEST]",
	.text = "The same as migrate --dry-run. Without DEST only this side is looked at.\n",
	.options = options,
	.flags = DMIG_COMMAND_ROOT | DMIG_COMMAND_RECOVER,
	.run = run,
};
