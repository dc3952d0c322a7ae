/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <libgen.h>
#include <string.h>

#include "command.h"
#include "net/net.h"
#include "paths.h"
#include "util/cleanup.h"
#include "util/io.h"

DMIG_DEFINE_CLEANUP(struct dmig_key, dmig_key_free)

/* Only the default's folder is made: a mistyped path should fail. */
static int make_folder(const char *file, struct dmig_error **err)
{
	char path[] = DMIG_KEY_FILE;
	if (strcmp(file, DMIG_KEY_FILE))
		return 0;
	int r = dmig_mkdir_p(dirname(path), 0700);
	return r < 0 ? dmig_error_set(err, -r, "cannot make %s: %s", path, strerror(-r)) : 0;
}

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	cleanup_with(dmig_key_free) struct dmig_key *key = NULL;
	char **args;
	int r = dmig_command_begin(cli, &dmig_cmd_key, argc, argv, NULL, &args, err);
	if (r)
		return r < 0 ? r : DMIG_EXIT_OK;
	if (strcmp(args[0], "new"))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
			"key: \"%s\" is not an action; the only one is new", args[0]);
	const char *file = args[1] ? args[1] : DMIG_KEY_FILE;
	if ((r = make_folder(file, err)) < 0 || (r = dmig_key_generate(&key, err)) < 0 ||
		(r = dmig_key_save(key, file, err)) < 0)
		return r;
	if (cli->common.json)
		dmig_command_print_json(json_pack("{s:s}", "file", file));
	else if (!cli->common.quiet)
		printf("%s: new key; copy it to the other host. Who holds it is root on both.\n", file);
	return DMIG_EXIT_OK;
}

const struct dmig_cli_command dmig_cmd_key = {
	.name = "key",
	.summary = "Make the key that two hosts share for tls://",
	.args = "new [FILE]",
	.text = "FILE is " DMIG_KEY_FILE " if not given. It is readable for its owner alone and never\n"
		"overwritten. Both hosts need the same file.\n",
	.run = run,
};
