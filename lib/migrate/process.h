/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_PROCESS_H
#define DMIG_MIGRATE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/error.h"

/* Field 22 of /proc/PID/stat: with the pid it names one process for ever. 0 if there is none. */
unsigned long long dmig_process_start_time(pid_t pid);

/*
 * Make sure that a runc of ours and the CRIU below it are gone: wait for a natural end until timeout_ms, then SIGKILL both.
 * Another process that got the number meanwhile is left alone (start differs).
 */
int dmig_process_end_tree(pid_t pid, unsigned long long start, int timeout_ms, struct dmig_error **err);

/* Folder that holds our patched criu, or NULL: only the system's is there. Caller frees. */
/* Gone, a zombie, or on its way there: CRIU holds the dead of a container that it has stopped, and their pidfds do not tell. */
bool dmig_process_is_dead(pid_t pid);
char *dmig_criu_dir(void);

#endif
