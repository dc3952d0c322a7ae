/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_ARGS_H
#define DMIG_RUNTIME_ARGS_H

#include <stdbool.h>

/*
 * The command line of one runc call, as containerd's go-runc makes it, read only as far as we need. Runtimes
 * gain options with every release, so unknown ones must not matter: for these a word that follows may be
 * their value or the command (known names decide) or the container's ID (is_target decides). All strings
 * point into argv.
 */
struct dmig_runc_args {
	const char *command; /* NULL: none, e.g. --version */
	const char *id;      /* NULL: none */
	const char *signal;  /* kill: as written, NULL: none */
	const char *root, *log, *log_format;
	const char *bundle, *pid_file, *console_socket, *format;
	bool systemd_cgroup, force;
};

/* Is this name a container that we care about? */
typedef bool dmig_is_target_fn(const char *name, void *opaque);

/* argv[0] is the program. Never fails: what is not found stays NULL. */
void dmig_runc_args_parse(
	int argc, char *const *argv, dmig_is_target_fn *is_target, void *opaque, struct dmig_runc_args *ret);

/* "TERM", "SIGTERM", "15" -> 15; NULL -> SIGTERM; -EINVAL. */
int dmig_signal_parse(const char *text);

#endif
