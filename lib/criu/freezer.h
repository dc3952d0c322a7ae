/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_FREEZER_H
#define DMIG_CRIU_FREEZER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * The container's cgroup, found from /proc/PID/cgroup of its init: v1 freezer hierarchy or v2. One thread at
 * a time. Facts (tried): frozen while CRIU holds the tasks works on both; tasks then stay stopped when CRIU
 * dies. v1: SIGKILL pends until the thaw. v2: frozen tasks die at once.
 */
struct dmig_freezer;
int dmig_freezer_open(pid_t init_pid, struct dmig_freezer **ret, struct dmig_error **err);
/* From a path that was journaled with dmig_freezer_path(), when init may be gone. */
int dmig_freezer_open_path(const char *path, struct dmig_freezer **ret, struct dmig_error **err);
const char *dmig_freezer_path(const struct dmig_freezer *f); /* lent: the folder that is written to */
bool dmig_freezer_is_v2(const struct dmig_freezer *f);
void dmig_freezer_free(struct dmig_freezer *f);
/* Freeze and wait for it by event where there is one (v2: cgroup.events), else short polls below 1 ms at
 * first. */
int dmig_freezer_freeze(struct dmig_freezer *f, int timeout_ms, struct dmig_error **err);
int dmig_freezer_thaw(struct dmig_freezer *f, struct dmig_error **err);
/* All pids in it and below it; caller frees *ret. */
int dmig_freezer_pids(struct dmig_freezer *f, pid_t **ret, size_t *ret_n, struct dmig_error **err);
/* SIGKILL to everything in it. */
int dmig_freezer_kill(struct dmig_freezer *f, struct dmig_error **err);

/*
 * Tasks in the cgroup that are not descendants of init (docker exec, health probes): CRIU would lose them
 * silently. Returns their number (0: none) and for the first ones "pid (name)" joined by ", " in *ret_who
 * (may be NULL).
 */
int dmig_freezer_foreign(struct dmig_freezer *f, pid_t init_pid, char **ret_who, struct dmig_error **err);

/*
 * A CRIU that was killed between dumping a TCP connection and its end leaves the socket in repair mode, in
 * which the application gets EINVAL and EPERM: ends that mode for all sockets of all tasks. Call it while
 * frozen, or the application may be faster. Returns how many there were.
 */
int dmig_freezer_release_tcp(struct dmig_freezer *f, struct dmig_error **err);

/*
 * Ask the peers of all established TCP connections how far they are. For restored tasks that do not run yet,
 * with the network up: what was under way when the source was cut, and the peers' window updates since then,
 * are lost, and without this the kernel finds out by timeouts that begin at a second. Returns how many there
 * are.
 */
int dmig_freezer_probe_tcp(struct dmig_freezer *f, struct dmig_error **err);

#endif
