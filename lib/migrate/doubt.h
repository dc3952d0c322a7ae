/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_DOUBT_H
#define DMIG_MIGRATE_DOUBT_H

#include <stdbool.h>

#include "migrate/options.h"
#include "migrate/worker.h"

/*
 * After GO without RESUMED: the source's tasks stay frozen, and only the destination's word (or a person's) ends that.
 */

/* A worker of its own, for the supervisor whose worker died between GO and the end. Returns an exit code of report.h. */
int dmig_source_doubt_run(struct dmig_worker *w, const struct dmig_options *o);

/* The destination runs: end the frozen tasks here, and the container unless it is to be kept; from the journal alone. */
int dmig_source_end_frozen(struct dmig_journal *j, bool keep, struct dmig_error **err);

#endif
