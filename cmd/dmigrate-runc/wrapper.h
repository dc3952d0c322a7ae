/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIGRATE_RUNC_WRAPPER_H
#define DMIGRATE_RUNC_WRAPPER_H

#include "runtime/args.h"
#include "runtime/message.h"
#include "runtime/record.h"
#include "util/error.h"

/* One call of the wrapper. */
struct wrapper {
	int argc;
	char **argv;
	struct dmig_runc_args args;
};

/* Replace this process by the real runc, same arguments. Returns only on failure, with an exit code. */
int run_real(const struct wrapper *w);
/* Path of the real runc: $DMIGRATE_RUNC, the line in /etc/dmigrate/runc, PATH; never ourselves. Caller frees,
 * NULL: none. */
char *find_real_runc(void);

/*
 * Tell containerd why: one JSON line in runc's --log, where its shim looks for the reason, and stderr.
 * Returns the exit code of a failed runc, 1.
 */
int fail(const struct wrapper *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Commands on a target that is recorded. Exit codes. */
int create_target(const struct wrapper *w);
int start_target(const struct wrapper *w);
int kill_target(const struct wrapper *w);
int delete_target(const struct wrapper *w);
int exec_target(const struct wrapper *w);
int state_target(const struct wrapper *w);
int ps_target(const struct wrapper *w);
int refuse_target(const struct wrapper *w);

/* Connection to the owner: fd, or -errno. Only root's sockets count. */
int connect_owner(const char *id);
/* Send a request without strings and receive its answer: 0, or -errno. */
int ask_owner(const struct wrapper *w, enum dmig_target_type type, int value, int timeout_ms,
	struct dmig_packet *ret);

/* The helper's life after STARTED. Never returns. */
struct helper {
	const char *id;
	int sock;  /* to the owner */
	int file;  /* dmig_helper_open() */
	pid_t pid; /* P's number */
};
__attribute__((noreturn)) void helper_main(const struct helper *h);

/* Called as "criu" by runc: opens the container's terminal for the real CRIU and becomes it. Exit code. */
int launch_criu(int argc, char **argv);

#endif
