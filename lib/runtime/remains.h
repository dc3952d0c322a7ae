/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_REMAINS_H
#define DMIG_RUNTIME_REMAINS_H

#include <stdbool.h>

#include "runtime/record.h"

/*
 * What is left of a target that did not make it, and how it goes away. Used by whoever lives: dmigrated's
 * undo, the helper, the recovery by the supervisor, the wrapper's kill and delete. Everything may be done
 * twice and by two at once.
 */

/* Field 22 of /proc/PID/stat; 0: no such process. A zombie still has it. */
unsigned long long dmig_process_start(pid_t pid);
/* Same process, and not only a zombie of it? */
bool dmig_process_runs(pid_t pid, unsigned long long start);

/*
 * runc's state folder ROOT/ID to ROOT/../.dmigrate-ID and back. Same filesystem, so a rename; not inside
 * ROOT, where each folder is a container to runc. Putting back first removes what a broken-off runc restore
 * left at its place.
 */
int dmig_state_aside(const struct dmig_target_info *info, const char *id, struct dmig_error **err);
int dmig_state_put_back(const struct dmig_target_info *info, const char *id, struct dmig_error **err);
/* After commit: the folder that was set aside is of no use to anybody. */
int dmig_state_drop(const struct dmig_target_info *info, const char *id);

/*
 * End all that runs of this target. A runc restore that still runs (`runc` names it) gets grace_ms to fail by
 * itself: CRIU, left alone by its notify socket, then takes its tasks and its mounts along. What is left is
 * killed: the number P first (init of a pid namespace takes the rest along, and CRIU must not let its tasks
 * go by dying before them), then everything in P's cgroup, runc and its children; mounts that a killed CRIU
 * left below run_dir are taken away. -ETIMEDOUT.
 */
int dmig_remains_kill(const struct dmig_target_info *info, const struct dmig_helper_note *runc, int grace_ms,
	int timeout_ms, struct dmig_error **err);
/* Is anything in P's cgroup? */
bool dmig_remains_alive(const struct dmig_target_info *info);

/*
 * A sibling of the caller with the number pid that ends at once, so that the caller's parent, the shim, sees
 * "its" process end (exit code 137, as after SIGKILL). While the number is taken, by a zombie that is about
 * to be reaped, it tries again until timeout_ms: then -EEXIST.
 */
int dmig_tombstone(pid_t pid, int timeout_ms);

#endif
