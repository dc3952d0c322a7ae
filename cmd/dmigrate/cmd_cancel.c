/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "command.h"
#include "known.h"
#include "util/cleanup.h"
#include "watch.h"

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	cleanup_free char *id = NULL;
	char **args;
	int r = dmig_command_begin(cli, &dmig_cmd_cancel, argc, argv, NULL, &args, err);
	if (r)
		return r < 0 ? r : DMIG_EXIT_OK;
	if ((r = dmig_known_id(args[0], &id, err)) < 0 ||
		(r = dmig_watch_request(id, "{\"op\":\"cancel\"}", NULL, err)) < 0)
		return r;
	if (cli->common.json)
		dmig_command_print_json(json_pack("{s:s}", "id", id));
	else if (!cli->common.quiet)
		printf("%s is being cancelled; the container goes on at the source\n", id);
	return DMIG_EXIT_OK;
}

const struct dmig_cli_command dmig_cmd_cancel = {
	.name = "cancel",
	.summary = "Stop a migration before its commit",
	.args = "ID",
	.text = "The container goes on at the source as if nothing had happened. After the commit there is\n"
		"nothing to cancel: the container already runs at the destination.\n",
	.flags = DMIG_COMMAND_ROOT | DMIG_COMMAND_RECOVER,
	.run = run,
};
