/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_DOCKERD_H
#define DMIG_COMMAND_DOCKERD_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/error.h"

/* The daemon behind a Docker socket. It is found by the socket, never by its name: there may be several. */
struct dmig_dockerd {
	pid_t pid;
	int pidfd;
	char *command; /* its arguments, each ended by NUL; an empty one ends them */
};

/* -ENOENT, -ECONNREFUSED: nothing serves the socket. */
int dmig_dockerd_find(const char *socket_path, struct dmig_dockerd *ret, struct dmig_error **err);
void dmig_dockerd_clear(struct dmig_dockerd *d);

/* Value of --name on its command line ("--name=x", "--name x"); "" if it stands there without; NULL if it
 * does not. Lent. */
const char *dmig_dockerd_option(const struct dmig_dockerd *d, const char *name);

/* SIGHUP, which makes it read its configuration. Refused for a process that would die of it. */
int dmig_dockerd_reload(const struct dmig_dockerd *d, struct dmig_error **err);

/* For tests: a process other than but that holds the listening socket at path; 0 if there is none. */
pid_t dmig_dockerd_holder(const char *socket_path, pid_t but);

#endif
