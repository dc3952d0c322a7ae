/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_SOURCE_H
#define DMIG_MIGRATE_SOURCE_H

#include "migrate/options.h"
#include "migrate/worker.h"

/*
 * The source's worker: one migration from dialling to the removed container. Writes the report; returns the exit code of
 * report.h. The journal is created by the caller and empty.
 */
int dmig_source_run(struct dmig_worker *w, const struct dmig_options *o);

#endif
