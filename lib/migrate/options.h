/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_OPTIONS_H
#define DMIG_MIGRATE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/*
 * What a person asks of one migration. The command fills it, hands it as JSON to its dmigrated over a pipe (it holds the
 * key), and the part that the destination must know travels in CHECK.
 */
enum dmig_source_after { DMIG_SOURCE_REMOVE = 0, DMIG_SOURCE_KEEP };
enum dmig_tcp_mode { DMIG_TCP_ESTABLISHED = 0, DMIG_TCP_CLOSE };
enum dmig_exec_mode { DMIG_EXEC_WAIT = 0, DMIG_EXEC_DROP, DMIG_EXEC_REFUSE };
enum dmig_volumes_mode { DMIG_VOLUMES_ALL = 0, DMIG_VOLUMES_NONE };
enum dmig_bind_mode { DMIG_BIND_REFUSE = 0, DMIG_BIND_SHARE, DMIG_BIND_COPY };

struct dmig_bind_choice {
	char *path;
	enum dmig_bind_mode mode;
};

struct dmig_options {
	char *id;	 /* of the migration: 16 lower-case hexadecimal digits */
	char *container; /* name or id at the source */
	char *name;	 /* at the destination; NULL: the same */
	char *destination; /* as typed: ssh://... or tls://... */
	char *host;	   /* where to dial */
	uint16_t port;
	char **tunnel; /* argv that gives a byte stream to host:port on its stdio, tried when dialling fails; NULL: none */
	char *key;     /* dmig_key_format() text */
	enum dmig_source_after source_after;
	enum dmig_tcp_mode tcp;
	enum dmig_exec_mode exec;
	int exec_wait_ms;
	enum dmig_volumes_mode volumes;
	struct dmig_bind_choice *binds;
	size_t n_binds;
	bool dry_run;
	int timeout_ms; /* covers everything before the commit; 0: none */
	bool verbose;	/* logs at debug level, CRIU -v4 */
};
#define DMIG_OPTIONS_EXEC_WAIT_MS 10000 /* a health probe or a short exec ends by itself within that */

/* Fills defaults and a new random id. */
int dmig_options_init(struct dmig_options *o, struct dmig_error **err);
void dmig_options_clear(struct dmig_options *o);
char *dmig_options_to_json(const struct dmig_options *o); /* caller frees; holds the key */
int dmig_options_from_json(const char *json, size_t len, struct dmig_options *ret, struct dmig_error **err);

#endif
