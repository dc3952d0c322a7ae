/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "command.h"
#include "migrate/control.h"

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	char **args;
	int r = dmig_command_begin(cli, &dmig_cmd_recover, argc, argv, NULL, &args, err);
	if (r == 0)
		r = dmig_recover(dmig_command_note, cli, err);
	if (r == 0 && cli->common.json)
		dmig_command_print_json(json_pack("{s:i}", "exit_code", DMIG_EXIT_OK));
	return r < 0 ? r : DMIG_EXIT_OK;
}

const struct dmig_cli_command dmig_cmd_recover = {
	.name = "recover",
	.summary = "Put right what a crash or a reboot left behind",
	.text = "Migrations whose process is gone are undone if they had not been committed: the source\n"
		"runs with its network and its restart policy, the destination keeps nothing. Committed\n"
		"ones are finished. Runs at boot; every other command does the same first.\n",
	.flags = DMIG_COMMAND_ROOT,
	.run = run,
};
