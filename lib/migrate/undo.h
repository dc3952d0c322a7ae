/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_UNDO_H
#define DMIG_MIGRATE_UNDO_H

#include "migrate/journal.h"

/*
 * What a migration changed and how it is put back, written to the journal before it is changed. Each function below adds
 * one record; dmig_undo_run() does the reverse of all of them, last first. Every action may be run twice and may find
 * its work done already.
 */
int dmig_undo_restart_policy(struct dmig_journal *j, const char *container, const char *policy, int max,
	struct dmig_error **err);
int dmig_undo_links(struct dmig_journal *j, const char *links, struct dmig_error **err);     /* set up again */
int dmig_undo_freezer(struct dmig_journal *j, const char *path, struct dmig_error **err);    /* thaw */
int dmig_undo_dump(struct dmig_journal *j, pid_t pid, struct dmig_error **err);		      /* end runc and its CRIU */
int dmig_undo_made(struct dmig_journal *j, const char *kind, const char *id, struct dmig_error **err); /* container, network, volume, image */
int dmig_undo_gate(struct dmig_journal *j, struct dmig_error **err);
int dmig_undo_target(struct dmig_journal *j, const char *container, struct dmig_error **err);

/*
 * Undo everything in the journal, then write "done". Goes on after a failure and reports the first one: what could not be
 * put back is named. The caller has made sure that the commit was not reached.
 */
int dmig_undo_run(struct dmig_journal *j, struct dmig_error **err);

#endif
