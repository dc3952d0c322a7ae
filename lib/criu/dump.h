/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_DUMP_H
#define DMIG_CRIU_DUMP_H

#include <stdbool.h>
#include <sys/types.h>

#include "criu/notify.h"
#include "util/error.h"

/*
 * Drive `runc checkpoint` of a Docker container, with our CRIU found first in PATH and our options in a CRIU
 * configuration file (CRIU_CONFIG_FILE) in the run folder. Nothing is written to /etc/criu. The caller serves the stages
 * from dump->notify: answers POST_FREEZE and POST_DUMP when its own work allows.
 * Used by one thread.
 */
struct dmig_dump_opts {
	const char *runc;	   /* program, normally "runc" */
	const char *runc_root;	   /* e.g. /run/docker/runtime-runc/moby */
	const char *container_id;
	const char *run_dir;	   /* ours, on tmpfs: socket, configuration, log */
	const char *images_dir;	   /* made by us, mode 0700 */
	const char *criu_dir;	   /* folder that holds our `criu`; NULL: the system's */
	bool tcp_close;		   /* connections are dropped instead of kept (--tcp close) */
	bool external_netns;	   /* dump the network namespace as external (extRootNetNS) */
	pid_t init_pid;		   /* of the container, host's number */
	bool tty;		   /* Config.Tty: /dev/pts and /dev/console as externals */
	int log_level;		   /* CRIU's, 1-4 */
};

struct dmig_dump;
int dmig_dump_start(const struct dmig_dump_opts *opts, struct dmig_dump **ret, struct dmig_error **err);
struct dmig_notify *dmig_dump_notify(struct dmig_dump *d); /* lent */
pid_t dmig_dump_pid(const struct dmig_dump *d); /* of runc */
/* Pollable: runc has ended. */
int dmig_dump_pidfd(const struct dmig_dump *d);
/* Wait for runc's end; success only for exit code 0, else the last error lines of CRIU's log are in the error. */
int dmig_dump_wait(struct dmig_dump *d, int timeout_ms, struct dmig_error **err);
/* Answer what is open with failure and close: CRIU lets the tasks run on. Waits at most timeout_ms, then SIGKILLs runc and CRIU. */
int dmig_dump_abort(struct dmig_dump *d, int timeout_ms, struct dmig_error **err);
void dmig_dump_free(struct dmig_dump *d); /* aborts if it still runs */
/* "Error (...)" lines of a CRIU log, at most the last few, joined by "; ". NULL if there are none. Caller frees. */
char *dmig_criu_log_errors(const char *log_path);

/* What this CRIU can: bits of DMIG_CRIU_HAS_*, or -errno. criu_dir NULL: PATH. Asks the program (`check --feature`), cached per path in the process. */
#define DMIG_CRIU_HAS_POST_FREEZE 1
#define DMIG_CRIU_HAS_NOTIFY_SOCKET 2
#define DMIG_CRIU_HAS_ROOT_HOST_PID 4
#define DMIG_CRIU_HAS_RLIMITS 8
#define DMIG_CRIU_HAS_WAIT_IMAGES 16
#define DMIG_CRIU_HAS_EXITKILL 32
int dmig_criu_probe(const char *criu_dir, char **ret_version, struct dmig_error **err);

#endif
