/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_DUMP_INTERNAL_H
#define DMIG_CRIU_DUMP_INTERNAL_H

#include "criu/dump.h"
#include "criu/freezer.h"
#include "criu/notify-wire.h"

/* dump.c starts and waits, dump-end.c sees to it that CRIU is gone. */
struct dmig_dump {
	char *notify_path, *config_path, *work_dir, *log_path, *stderr_path;
	int features;
	pid_t runc; /* -1: not started */
	int pidfd;
	bool ended; /* runc has been reaped, status is its wait status */
	int status;
	struct dmig_notify *notify;
	struct dmig_freezer *freezer;
};

/*
 * Shut the notify socket and wait for CRIU's end: it fails its stage, lets the tasks run and ends. After
 * timeout_ms it is killed: -ETIMEDOUT. Either way no socket of the tasks is left in repair mode.
 */
int dmig_dump__end_criu(struct dmig_dump *d, int timeout_ms, struct dmig_error **err);

#endif
