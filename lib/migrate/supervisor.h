/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_SUPERVISOR_H
#define DMIG_MIGRATE_SUPERVISOR_H

#include "docker/docker.h"
#include "migrate/options.h"
#include "net/net.h"

/*
 * One side of one migration: the supervisor process. It has no threads, starts the worker, answers the control socket,
 * is subreaper of all that the worker starts, and undoes or finishes from the journal what a dead worker leaves.
 * Returns an exit code of report.h.
 */

/* ready_fd: one byte 'R' is written once the control socket is there, or an error text. Taken over. */
int dmig_supervise_source(const struct dmig_options *o, int ready_fd);

struct dmig_supervise_dest {
	const struct dmig_key *key;
	const struct dmig_allow *allow;
	const char *id;	/* known beforehand (bootstrap), or NULL: told by HELLO */
	int control_fd; /* accepted connection, or -1 */
	int listen_fd;
	uint16_t port;
};
int dmig_supervise_dest(const struct dmig_supervise_dest *o);

#endif
