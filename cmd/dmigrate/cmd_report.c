/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "command.h"
#include "known.h"
#include "migrate/control.h"
#include "show.h"
#include "util/cleanup.h"

/* Without an id the newest that has ended: one under way has no report yet. */
static int newest_report(json_t **ret, struct dmig_error **err)
{
	char **ids = NULL;
	int r = dmig_control_list(&ids, err);
	for (size_t i = 0; r == 0 && ids[i] && !*ret; i++)
		dmig_known_report(ids[i], ret, NULL);
	dmig_control_free_list(ids);
	if (r == 0 && !*ret)
		r = dmig_error_set_class(err, DMIG_ERR_USAGE, ENOENT, "no report is stored here");
	return r;
}

static int find_report(const char *text, json_t **ret, struct dmig_error **err)
{
	cleanup_free char *id = NULL;
	if (!text)
		return newest_report(ret, err);
	int r = dmig_known_id(text, &id, err);
	return r < 0 ? r : dmig_known_report(id, ret, err);
}

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	json_t *report = NULL;
	char **args;
	int r = dmig_command_begin(cli, &dmig_cmd_report, argc, argv, NULL, &args, err);
	if (r)
		return r < 0 ? r : DMIG_EXIT_OK;
	r = find_report(args[0], &report, err);
	if (r < 0)
		return r;
	dmig_show_end(report, cli->common.json, cli->common.quiet);
	json_decref(report);
	return DMIG_EXIT_OK;
}

const struct dmig_cli_command dmig_cmd_report = {
	.name = "report",
	.summary = "Show the report of a migration that has ended",
	.args = "[ID]",
	.text = "Without ID that of the newest one. The exit code is 0 whatever the report tells; with "
		"--json it\n"
		"is the object that dmigrate-report(5) describes.\n",
	.flags = DMIG_COMMAND_ROOT | DMIG_COMMAND_RECOVER,
	.run = run,
};
