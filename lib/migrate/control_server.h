/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_CONTROL_SERVER_H
#define DMIG_MIGRATE_CONTROL_SERVER_H

#include <jansson.h>
#include <poll.h>

#include "util/error.h"

/*
 * The supervisor's side of control.h: a listening socket and its clients, no threads. The owner polls the fds that
 * fill() gives and calls serve() with the result.
 */
struct dmig_control_server;

/* What a client asks for beyond status. Returns NULL, or an error message for the client. Lent json. */
typedef const char *dmig_control_request_fn(const char *op, json_t *request, void *opaque);

int dmig_control_server_new(const char *id, dmig_control_request_fn *fn, void *opaque, struct dmig_control_server **ret,
	struct dmig_error **err);
void dmig_control_server_free(struct dmig_control_server *s);
/* In a forked child: without copies of its descriptors there, clients see the end of the owner. NULL is fine. */
void dmig_control_server_leave(struct dmig_control_server *s);
#define DMIG_CONTROL_MAX_CLIENTS 16
/* Needs room for 1 + DMIG_CONTROL_MAX_CLIENTS entries; returns how many were filled. */
size_t dmig_control_server_fill(struct dmig_control_server *s, struct pollfd *p);
void dmig_control_server_serve(struct dmig_control_server *s, const struct pollfd *p, size_t n);
/* The worker's word; told to all that watch. Takes the reference. */
void dmig_control_server_status(struct dmig_control_server *s, json_t *status);
/* Tell all watchers the end and close them. Takes the reference. */
void dmig_control_server_end(struct dmig_control_server *s, json_t *report);
json_t *dmig_control_server_last(struct dmig_control_server *s); /* lent; {} before the first */

#endif
