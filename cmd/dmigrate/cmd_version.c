/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "command.h"

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	char **args;
	int r = dmig_command_begin(cli, &dmig_cmd_version, argc, argv, NULL, &args, err);
	if (r)
		return r < 0 ? r : DMIG_EXIT_OK;
	if (cli->common.json)
		dmig_command_print_json(json_pack("{s:s}", "version", DMIG_VERSION));
	else
		puts("dmigrate " DMIG_VERSION);
	return DMIG_EXIT_OK;
}

const struct dmig_cli_command dmig_cmd_version = {
	.name = "version",
	.summary = "Print the version",
	.run = run,
};
