/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "command.h"
#include "known.h"
#include "migrate/control.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "watch.h"

struct values {
	bool source, destination;
};

static const struct dmig_cli_option options[] = {
	{"source", NULL, "the container shall run at the source", DMIG_CLI_FLAG,
		offsetof(struct values, source), NULL},
	{"destination", NULL, "the container shall run at the destination", DMIG_CLI_FLAG,
		offsetof(struct values, destination), NULL},
	{0},
};

/* Its dmigrated may be dead as well: then we do its work. */
static int decide(const char *id, const char *side, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL;
	cleanup_free char *request = dmig_asprintf("{\"op\":\"resolve\",\"run_at\":\"%s\"}", side);
	if (!request)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = dmig_watch_request(id, request, NULL, &e);
	if (r == -ENOENT)
		return dmig_resolve_dead(id, side, err);
	if (r < 0 && err && !*err)
		*err = steal_ptr(&e);
	return r;
}

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	struct values v = {0};
	cleanup_free char *id = NULL;
	char **args;
	int r = dmig_command_begin(cli, &dmig_cmd_resolve, argc, argv, &v, &args, err);
	if (r)
		return r < 0 ? r : DMIG_EXIT_OK;
	if (v.source == v.destination)
		return dmig_error_set_class(
			err, DMIG_ERR_USAGE, EINVAL, "resolve needs one of --source and --destination");
	const char *side = v.source ? "source" : "destination";
	if ((r = dmig_known_id(args[0], &id, err)) < 0 || (r = decide(id, side, err)) < 0)
		return r;
	if (cli->common.json)
		dmig_command_print_json(json_pack("{s:s,s:s}", "id", id, "run_at", side));
	else if (!cli->common.quiet)
		printf("%s: the container shall run at the %s\n", id, side);
	return DMIG_EXIT_OK;
}

const struct dmig_cli_command dmig_cmd_resolve = {
	.name = "resolve",
	.summary = "Decide where the container runs when nobody else can know",
	.args = "ID",
	.text = "A migration is in the state unknown when the destination was told to go and never "
		"answered.\n"
		"Make sure that the container does NOT run on the other side before you say where it shall:\n"
		"two copies would talk to the same clients and write to the same data.\n",
	.options = options,
	.flags = DMIG_COMMAND_ROOT | DMIG_COMMAND_RECOVER,
	.run = run,
};
