/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_UTIL_SPAWN_H
#define DMIG_UTIL_SPAWN_H

#include <sys/types.h>

#include "util/error.h"

/*
 * Start programs without a shell. Descriptors other than 0-2 are not inherited unless listed in keep_fds;
 * stdio defaults to /dev/null. The child gets default signal handling and an empty mask.
 * Safe in a threaded process: the child only makes async-signal-safe calls before exec.
 */
struct dmig_spawn {
	const char *const *argv; /* NULL-terminated; argv[0] is searched in PATH */
	const char *const *env;	 /* NULL-terminated "K=V" that replace or add to ours; NULL: none */
	int stdin_fd, stdout_fd, stderr_fd; /* borrowed; -1: /dev/null */
	const int *keep_fds;		    /* borrowed; keep their numbers in the child */
	size_t n_keep_fds;
	int parent_death_signal; /* 0: none. Delivered when the starting THREAD ends (prctl(2)) */
};
#define DMIG_SPAWN_INIT                                                                                                \
	{                                                                                                              \
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1                                                       \
	}

/* Returns the pid, or -errno (exec failures included). ret_pidfd may be NULL. */
pid_t dmig_spawn(const struct dmig_spawn *s, int *ret_pidfd, struct dmig_error **err);

/* Wait at most timeout_ms (-1: for ever). Returns the waitpid status, or -ETIMEDOUT (still running, not killed), -errno. */
int dmig_wait_pid(pid_t pid, int pidfd, int timeout_ms);

/*
 * Run to the end, collecting at most 1 MiB of stdout (ret_out may be NULL) and keeping the end of stderr for the
 * error message. 0 only for exit code 0. On timeout the child is killed: -ETIMEDOUT.
 */
int dmig_run(const char *const *argv, const char *const *env, int timeout_ms, char **ret_out, struct dmig_error **err);

#endif
