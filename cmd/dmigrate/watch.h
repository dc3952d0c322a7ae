/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_WATCH_H
#define DMIG_COMMAND_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "util/error.h"

enum dmig_watch_end {
	DMIG_WATCH_REPORT = 0, /* it ended, here is the report */
	DMIG_WATCH_LEFT,       /* interrupted after the commit, or a mere onlooker: it goes on without us */
	DMIG_WATCH_IMPATIENT   /* interrupted again while it was being cancelled */
};

struct dmig_watch {
	const char *id;
	FILE *out;    /* progress; NULL: none */
	bool owner;   /* SIGINT and SIGTERM cancel what is not committed */
	json_t *last; /* latest status, or NULL; unref with json_decref() */
};

/* SIGINT and SIGTERM become readable from the returned fd instead of ending us. To be called before the
 * migration starts. */
int dmig_watch_signals(struct dmig_error **err);

/* Follow a migration to its end. signals: from dmig_watch_signals(). *ret_report is a new reference. */
int dmig_watch_run(struct dmig_watch *w, int signals, json_t **ret_report, struct dmig_error **err);

/* One request on a connection of its own; *ret (may be NULL) is the answer. An {"event":"error"} becomes an
 * error. */
int dmig_watch_request(const char *id, const char *request, json_t **ret, struct dmig_error **err);

#endif
