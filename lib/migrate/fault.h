/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_FAULT_H
#define DMIG_MIGRATE_FAULT_H

#include "migrate/worker.h"

/*
 * Named points at which a test makes a worker stop, die or fail (docs/design/testing.md lists them). Without
 * DMIGRATE_FAULT=SIDE:POINT:ACTION in dmigrated's environment each is one getenv(). ACTION:
 *   stop             wait until the file RUN_DIR/fault, made here, is removed or the worker is told to stop
 *   hold             the same, but deaf to a stop
 *   hang             SIGSTOP to the whole worker: a host that is stuck
 *   kill-worker, kill-supervisor, kill-both   SIGKILL
 *   fail             the step fails
 */
int dmig_fault(struct dmig_worker *w, const char *point, struct dmig_error **err);
/* The points "before-PHASE" and "after-PHASE". */
int dmig_fault_phase(struct dmig_worker *w, const char *when, enum dmig_phase phase, struct dmig_error **err);

#endif
