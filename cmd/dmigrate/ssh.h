/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_SSH_H
#define DMIG_COMMAND_SSH_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/table.h"
#include "util/error.h"

/*
 * A host as ssh reaches it. $DMIGRATE_SSH (words split at blanks) replaces the command "ssh",
 * $DMIGRATE_REMOTE the path of dmigrated there.
 */
struct dmig_ssh {
	char **words; /* the ssh command, options, "--", host; what to do there is to follow. NULL-terminated
		       */
	char *target; /* as given, for messages */
	char *hostname;      /* what ssh makes of it: aliases resolved */
	const char *program; /* dmigrated there; lent */
	bool root;           /* the user there is root */
};

/* Further options stand before these last words. */
#define DMIG_SSH_TAIL 2

/* text: ssh://[user@]host[:port]. Asks ssh -G what its configuration makes of it; no connection is made. */
int dmig_ssh_open(const char *text, struct dmig_ssh *ret, struct dmig_error **err);
void dmig_ssh_clear(struct dmig_ssh *s);

/*
 * Start dmigrated there with the key of this migration and learn its port. ssh has the terminal, so that it
 * can ask for a password or show a host key; without an answer within timeout_ms it is ended.
 */
int dmig_ssh_bootstrap(const struct dmig_ssh *s, const char *id, const char *key, struct dmig_cli_ports ports,
	int timeout_ms, uint16_t *ret_port, struct dmig_error **err);

/* argv of a byte stream to 127.0.0.1:port there, without any question to a person. NULL: out of memory. */
char **dmig_ssh_tunnel(const struct dmig_ssh *s, uint16_t port);

#endif
