/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_MIGRATE_H
#define DMIG_COMMAND_MIGRATE_H

#include "command.h"
#include "migrate/options.h"

/* What `migrate` and `check` are told. */
struct dmig_migrate_values {
	struct dmig_options options;
	struct dmig_cli_ports ports;
	char *key_file;
	bool detach;
};

int dmig_migrate_add_bind(void *values, const char *text, struct dmig_error **err);

/* Rows that both commands have. */
#define DMIG_MIGRATE_PLACE(member) offsetof(struct dmig_migrate_values, member), NULL
#define DMIG_MIGRATE_OPTIONS                                                                                 \
	{"name", "NAME", "name of the container at the destination", DMIG_CLI_TEXT,                          \
		DMIG_MIGRATE_PLACE(options.name)},                                                           \
		{"source", "remove|keep", "what becomes of the container here (remove)", DMIG_CLI_CHOICE,    \
			DMIG_MIGRATE_PLACE(options.source_after)},                                           \
		{"tcp", "established|close", "connections move along (established)", DMIG_CLI_CHOICE,        \
			DMIG_MIGRATE_PLACE(options.tcp)},                                                    \
		{"volumes", "all|none", "volumes whose contents move along (all)", DMIG_CLI_CHOICE,          \
			DMIG_MIGRATE_PLACE(options.volumes)},                                                \
		{"bind", "PATH=refuse|share|copy", "what to do with a bind mount (refuse)", DMIG_CLI_CALL,   \
			0, dmig_migrate_add_bind},                                                           \
		{"exec", "wait|drop|refuse", "what to do with a running docker exec (wait)",                 \
			DMIG_CLI_CHOICE, DMIG_MIGRATE_PLACE(options.exec)},                                  \
		{"timeout", "DURATION", "give up if not committed by then (no limit)", DMIG_CLI_DURATION,    \
			DMIG_MIGRATE_PLACE(options.timeout_ms)},                                             \
		{"data-port", "LOW[-HIGH]", "ports to listen on at an ssh:// destination", DMIG_CLI_PORTS,   \
			DMIG_MIGRATE_PLACE(ports)},                                                          \
	{                                                                                                    \
		"key", "FILE", "key of a tls:// destination", DMIG_CLI_TEXT, DMIG_MIGRATE_PLACE(key_file)    \
	}

/* The whole of both commands. */
int dmig_migrate_run(struct dmig_cli *cli, const struct dmig_cli_command *cmd, bool check, int argc,
	char **argv, struct dmig_error **err);

/* Where to dial, with which key: fills host, port, key and tunnel from v->options.destination. Starts
 * dmigrated at ssh://. */
int dmig_migrate_reach(struct dmig_migrate_values *v, struct dmig_error **err);

/*
 * Start the dmigrated of this side, detached from terminal and session, and hand it the options. Returns when
 * its control socket exists.
 */
int dmig_migrate_launch(const struct dmig_options *o, struct dmig_error **err);

#endif
