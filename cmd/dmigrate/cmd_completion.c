/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "command.h"

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	char **args;
	int r = dmig_command_begin(cli, &dmig_cmd_completion, argc, argv, NULL, &args, err);
	if (r)
		return r < 0 ? r : DMIG_EXIT_OK;
	r = dmig_cli_complete(stdout, args[0], &dmig_program, err);
	return r < 0 ? r : DMIG_EXIT_OK;
}

const struct dmig_cli_command dmig_cmd_completion = {
	.name = "completion",
	.summary = "Write a completion script for a shell",
	.args = "bash|zsh|fish",
	.text = "Installed packages bring these scripts; this is for other places:\n"
		"  source <(dmigrate completion bash)\n",
	.run = run,
};
