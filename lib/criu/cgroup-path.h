/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_CGROUP_PATH_H
#define DMIG_CRIU_CGROUP_PATH_H

#include <stdbool.h>

/*
 * From the text of /proc/PID/cgroup and /proc/self/mountinfo to the folder of a cgroup. Pure: no I/O. Lines
 * that do not parse are skipped: both files hold lines that are not ours to judge.
 */

/* Path of the process in the v1 freezer hierarchy or in v2, as it stands in the file. NULL: not there. Caller
 * frees. */
char *dmig_cgroup_path_in(const char *proc_cgroup, bool v2);
/* Folder under which that path is found: mount point minus the root that is mounted. NULL: not mounted.
 * Caller frees. */
char *dmig_cgroup_folder(const char *mountinfo, bool v2, const char *cgroup_path);

#endif
