/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_DUMP_H
#define DMIG_CRIU_DUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "criu/notify.h"
#include "util/error.h"

/*
 * Drive `runc checkpoint` of a Docker container, with our CRIU found first in PATH and our options in a CRIU
 * configuration file (CRIU_CONFIG_FILE) in the run folder. Nothing is written to /etc/criu. The caller serves
 * the stages from dmig_dump_notify(): answers POST_FREEZE and POST_DUMP when its own work allows. Used by one
 * thread.
 */
struct dmig_dump_opts {
	const char *runc;      /* program, normally "runc" */
	const char *runc_root; /* e.g. /run/docker/runtime-runc/moby */
	const char *container_id;
	const char
		*run_dir; /* ours, on tmpfs: socket, configuration, log. No space, quote or # in its path */
	const char *images_dir; /* made by us, mode 0700 */
	const char *criu_dir;   /* folder that holds our `criu`; NULL: the system's */
	const char *hook; /* dmigrate-hook, for a CRIU without notify-socket. NULL: such a CRIU is refused */
	bool tcp_close;   /* connections are dropped instead of kept (--tcp close) */
	bool skip_in_flight; /* connections that no accept(2) has taken yet are dropped; else they fail the
				dump */
	bool ext_unix_sk;    /* allow sockets whose other end is outside: that end is lost */
	bool external_netns; /* dump the network namespace as external (extRootNetNS) */
	pid_t init_pid;      /* of the container, host's number */
	bool inline_tmpfs;   /* the restoring CRIU has inline-tmpfs: use it if this one has, too */
	bool tty;            /* Config.Tty: /dev/pts and /dev/console as externals */
	int log_level;       /* CRIU's, 1-4; 0: as runc wants it (4) */
};
#define DMIG_DUMP_OPTS_INIT                                                                                  \
	{                                                                                                    \
		.runc = "runc", .runc_root = "/run/docker/runtime-runc/moby"                                 \
	}

struct dmig_dump;
int dmig_dump_start(const struct dmig_dump_opts *opts, struct dmig_dump **ret, struct dmig_error **err);
struct dmig_notify *dmig_dump_notify(struct dmig_dump *d); /* lent */
/* The stage at which all tasks are stopped: POST_FREEZE, or what comes closest with a stock CRIU. */
enum dmig_criu_stage dmig_dump_freeze_stage(const struct dmig_dump *d);
pid_t dmig_dump_pid(const struct dmig_dump *d); /* of runc */
/* Pollable: runc has ended. */
int dmig_dump_pidfd(const struct dmig_dump *d);
/*
 * Wait for runc's end; success only for exit code 0, else the last error lines of CRIU's log are in the
 * error, the tasks run on and CRIU is gone. -ETIMEDOUT: still running.
 *
 * A CRIU that is killed (OOM) lets the tasks run at once, with their TCP sockets still in repair mode:
 * connections break. So freeze the cgroup as soon as POST_DUMP comes; a failure after that is: wait or abort,
 * which end the repair mode, then thaw.
 */
int dmig_dump_wait(struct dmig_dump *d, int timeout_ms, struct dmig_error **err);
/*
 * Fail what is open and close: CRIU lets the tasks run on. After timeout_ms CRIU and runc are killed, which
 * also lets the tasks run (ptrace) but may leave CRIU's code mapped in them: -ETIMEDOUT then. 0: all ended by
 * themselves. A frozen cgroup is left frozen, because a dump is also dropped when nobody knows who runs;
 * before the commit the caller thaws it, also after -ETIMEDOUT where CRIU (v1) may have died between its own
 * freeze and thaw.
 */
int dmig_dump_abort(struct dmig_dump *d, int timeout_ms, struct dmig_error **err);
void dmig_dump_free(struct dmig_dump *d); /* aborts if it still runs */
/* Its log, for the report; lent. */
const char *dmig_dump_log(const struct dmig_dump *d);
/* "Error (...)" lines of a CRIU log, at most the last few, joined by "; ". NULL if there are none. Caller
 * frees. */
char *dmig_criu_log_errors(const char *log_path);

/*
 * The terminal of a `-t` container: /dev/console is a pty of the container's own devpts. Other ptys in there
 * (sshd, tmux) cannot be moved yet: their number is in other_ptys. -ENOTTY: /dev/console is no pty.
 */
struct dmig_criu_tty {
	uint64_t rdev,
		dev; /* of the slave behind /dev/console, as stat(2) says it: CRIU's external tty[RDEV:DEV] */
	unsigned other_ptys;
};
int dmig_criu_tty(pid_t init_pid, struct dmig_criu_tty *ret, struct dmig_error **err);

/*
 * What this CRIU can: bits of DMIG_CRIU_HAS_*, or -errno. criu_dir NULL: PATH. Asks the program (`check
 * --feature`), a few ms each; the answer is kept per folder for the life of the process. *ret_version (may be
 * NULL) is "4.2.1"; caller frees. Thread-safe.
 */
#define DMIG_CRIU_HAS_POST_FREEZE 1
#define DMIG_CRIU_HAS_NOTIFY_SOCKET 2
#define DMIG_CRIU_HAS_ROOT_HOST_PID 4
#define DMIG_CRIU_HAS_RLIMITS 8
#define DMIG_CRIU_HAS_WAIT_IMAGES 16
#define DMIG_CRIU_HAS_EXITKILL 32
#define DMIG_CRIU_HAS_INLINE_TMPFS 64
int dmig_criu_probe(const char *criu_dir, char **ret_version, struct dmig_error **err);

#endif
