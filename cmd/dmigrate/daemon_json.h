/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_DAEMON_JSON_H
#define DMIG_COMMAND_DAEMON_JSON_H

#include <stdbool.h>

#include "util/error.h"

/*
 * The one entry of ours in Docker's configuration. Pure text to text: old is the content of daemon.json, ""
 * when there is no file. path: program of the runtime; NULL takes the entry away. Everything else stays as it
 * was. What is not valid JSON, or has not the shape that Docker reads, is refused. *ret_text is NULL when
 * nothing has to change; caller frees.
 */
int dmig_daemon_json_edit(
	const char *old, const char *name, const char *path, char **ret_text, struct dmig_error **err);

/*
 * A daemon.json being changed: read, decide, write, and put back if Docker does not like it. Links are
 * followed, so that the file behind one is changed; mode and owner stay.
 */
struct dmig_daemon_json {
	char *path; /* links resolved */
	char *old;  /* NULL: there was no file */
	char *backup;
};
int dmig_daemon_json_open(const char *path, struct dmig_daemon_json *ret, struct dmig_error **err);
/* Keeps what was there beside it as PATH.before-dmigrate. */
int dmig_daemon_json_write(struct dmig_daemon_json *j, const char *text, struct dmig_error **err);
int dmig_daemon_json_put_back(struct dmig_daemon_json *j, struct dmig_error **err);
void dmig_daemon_json_clear(struct dmig_daemon_json *j);

#endif
