/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_UTIL_PATHS_H
#define DMIG_UTIL_PATHS_H

/*
 * Where our own programs are. $DMIGRATE_LIBEXEC comes first, whatever the program; then what belongs to the running
 * executable (build tree, or an installation that was moved); then the configured place. The name always resolves to
 * one of ours: a stock criu that happens to stand beside dmigrated is not taken.
 */

/* criu, dmigrate-runc, dmigrate-hook. Path whether or not it exists (the caller's exec says so); caller frees, NULL: no memory. */
char *dmig_libexec_path(const char *name);
/* dmigrate, dmigrated. Falls back to the bare name, which exec looks up in PATH. */
char *dmig_program_path(const char *name);

/* /run/dmigrate and /var/lib/dmigrate; $DMIGRATE_RUN_DIR and $DMIGRATE_STATE_DIR replace them in tests. Lent. */
const char *dmig_run_dir(void);
const char *dmig_state_dir(void);

#endif
