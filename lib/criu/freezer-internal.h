/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_FREEZER_INTERNAL_H
#define DMIG_CRIU_FREEZER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* freezer.c is the state, freezer-tasks.c what lives in it. */
struct dmig_freezer {
	char *path;
	int dir; /* open folder: the path may be renamed or re-created under us */
	bool v2;
};

int dmig_freezer__write(struct dmig_freezer *f, const char *knob, const char *text);

/* Fields of /proc/PID/stat. The name may hold anything, brackets and newlines included. 0 or -EBADMSG. */
struct dmig_proc_stat {
	char name[64]; /* unprintable bytes are '?' */
	char state;
	pid_t parent;
};
int dmig_freezer__parse_stat(const char *text, struct dmig_proc_stat *ret);
/* Parent of pid, 0 if it is outside our namespace or pid is gone. */
pid_t dmig_freezer__parent(pid_t pid);
/* Numbers of a cgroup.procs text are appended to *pids; 0 (a process of another pid namespace) is kept. */
int dmig_freezer__parse_procs(const char *text, pid_t **pids, size_t *n);

#endif
