/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "wrapper.h"

/*
 * OCI runtime "dmigrate": an uncommitted migration target is treated here, everything else becomes the real
 * runc by one execve. The test is one access(2) for the record of the container.
 */
static const struct {
	const char *name;
	int (*run)(const struct wrapper *w);
} commands[] = {
	{"create", create_target},
	{"start", start_target},
	{"kill", kill_target},
	{"delete", delete_target},
	{"exec", exec_target},
	{"state", state_target},
	{"ps", ps_target},
};

static bool is_recorded(const char *name, void *opaque)
{
	(void)opaque;
	return dmig_target_is_recorded(name);
}

static int run_target(const struct wrapper *w)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, w->args.command))
			return commands[i].run(w);
	return refuse_target(w);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
	struct wrapper w = {.argc = argc, .argv = argv};
	if (argc > 0 && !strcmp(base_name(argv[0]), "criu"))
		return launch_criu(argc, argv);
	dmig_runc_args_parse(argc, argv, is_recorded, NULL, &w.args);
	if (w.args.command && w.args.id && dmig_target_is_recorded(w.args.id))
		return run_target(&w);
	return run_real(&w);
}
