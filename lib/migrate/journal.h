/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_JOURNAL_H
#define DMIG_MIGRATE_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>

#include "util/error.h"

/*
 * /var/lib/dmigrate/ID/journal: one JSON object per line, each synced to disk BEFORE the thing it undoes is done. It is
 * the only memory that survives a crash, so undo after an orderly failure, after the death of the worker and after a
 * reboot are one and the same code (undo.h). The file is locked (flock) by supervisor and worker together: whoever can
 * take the lock knows that both are dead.
 *
 * Records {"rec": ...}:
 *   begin     side, container (id at this host), name, peer
 *   undo      what, and what it needs; see undo.c. Undone in reverse order
 *   in-doubt  source: GO is about to be sent; from here only the destination can say who runs
 *   committed source: the destination runs, or a person said so
 *   resuming  destination: GO was heard and the tasks may run from here on
 *   refused   destination: it is decided that nothing will ever run here
 *   done      result
 *
 * Thread-safe.
 */
struct dmig_journal;
/* Creates the folder and file, takes the lock. -EEXIST if the migration is known already. */
int dmig_journal_create(const char *id, struct dmig_journal **ret, struct dmig_error **err);
/* Opens an existing one and takes the lock: -EBUSY if its owner lives, -ENOENT. */
int dmig_journal_open(const char *id, struct dmig_journal **ret, struct dmig_error **err);
void dmig_journal_free(struct dmig_journal *j);
const char *dmig_journal_id(const struct dmig_journal *j);

/* Append and sync, or leave no trace of it. Takes the reference of record, also on failure. */
int dmig_journal_add(struct dmig_journal *j, json_t *record, struct dmig_error **err);
/* All records from the file, as an array (new reference); a torn last line, the mark of a crash, is dropped. */
/* Survives us but not a crash of the host: for what is written in the frozen window. */
int dmig_journal_note(struct dmig_journal *j, const char *rec, struct dmig_error **err);
int dmig_journal_read(struct dmig_journal *j, json_t **ret, struct dmig_error **err);
/* Is there a record of this kind? 1, 0, or -errno when that cannot be read: nobody may act as if it were a no. */
int dmig_journal_has(struct dmig_journal *j, const char *rec);
/*
 * Exactly one of two records ever gets in: write `rec` unless `against` is there. 1 = written (or was there already),
 * 0 = `against` had been decided before. This is the commit point of the destination.
 */
int dmig_journal_decide(struct dmig_journal *j, const char *rec, const char *against, struct dmig_error **err);

#endif
