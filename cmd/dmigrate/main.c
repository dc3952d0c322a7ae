/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static const struct dmig_cli_command *const commands[] = {
	&dmig_cmd_migrate,
	&dmig_cmd_check,
	&dmig_cmd_status,
	&dmig_cmd_cancel,
	&dmig_cmd_resolve,
	&dmig_cmd_report,
	&dmig_cmd_setup,
	&dmig_cmd_key,
	&dmig_cmd_recover,
	&dmig_cmd_completion,
	&dmig_cmd_version,
	NULL,
};

static const struct dmig_cli_lister listers[] = {
	{"CONTAINER", "docker ps --format {{.Names}} 2>/dev/null"},
	/* Ids have 16 digits; nothing else in these folders has a name of that length. */
	{"ID", "ls -1 /run/dmigrate /var/lib/dmigrate 2>/dev/null | grep -x ................ | sort -u"},
	{0},
};

const struct dmig_cli_program dmig_program = {"dmigrate", commands, listers};

static void help(FILE *out)
{
	fputs("Usage: dmigrate COMMAND [OPTION]... [ARGUMENT]...\n\n"
	      "Move a running Docker container to another host while its clients stay "
	      "connected.\n\nCommands:\n",
		out);
	for (size_t i = 0; commands[i]; i++)
		fprintf(out, "  %-12s%s\n", commands[i]->name, commands[i]->summary);
	fputs("\ndmigrate COMMAND --help describes a command.\n", out);
}

static const struct dmig_cli_command *find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int run(const struct dmig_cli_command *cmd, int argc, char **argv)
{
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_cli cli = {0};
	int r = cmd->run(&cli, argc, argv, &err);
	if (r < 0 && !err)
		dmig_error_set_class(&err, DMIG_ERR_INTERNAL, -r, "%s failed: %s", cmd->name, strerror(-r));
	if (r < 0)
		r = dmig_command_print_failure(&cli, err);
	/* A full disk or a closed pipe must not look like success. */
	if (fflush(stdout) == EOF && r == 0)
		r = DMIG_EXIT_INTERNAL;
	return r;
}

/* A program started with closed stdio would hand those numbers to sockets and pipes, and print into them. */
static void open_stdio(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
}

int main(int argc, char **argv)
{
	open_stdio();
	signal(SIGPIPE, SIG_IGN);
	const char *name = argc > 1 ? argv[1] : "";
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		const struct dmig_cli_command *topic = argc > 2 ? find(argv[2]) : NULL;
		if (topic)
			dmig_cli_help(stdout, dmig_program.name, topic);
		else
			help(stdout);
		return DMIG_EXIT_OK;
	}
	const struct dmig_cli_command *cmd = find(!strcmp(name, "--version") ? "version" : name);
	if (cmd)
		return run(cmd, argc - 1, argv + 1);
	if (*name)
		fprintf(stderr, "dmigrate: \"%s\" is not a command; see dmigrate --help\n", name);
	else
		help(stderr);
	return DMIG_EXIT_USAGE;
}
