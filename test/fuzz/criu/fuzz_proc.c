/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text files of /proc and of a cgroup, and CRIU's log: names in them are chosen by the container. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "criu/cgroup-path.h"
#include "criu/freezer-internal.h"
#include "criu/internal.h"
#include "fuzz/fuzz.h"

static void run_cgroup(const char *text, bool v2)
{
	char *path = dmig_cgroup_path_in(text, v2);
	char *folder = dmig_cgroup_folder(text, v2, path ? path : "/docker/x");
	assert(!path || (path[0] == '/' && !strstr(path, "/../")));
	free(folder);
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_proc_stat stat;
	pid_t *pids = NULL;
	size_t n = 0;
	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	run_cgroup(text, false);
	run_cgroup(text, true);
	if (dmig_freezer__parse_stat(text, &stat) == 0)
		assert(stat.parent >= 0 && memchr(stat.name, '\0', sizeof(stat.name)));
	dmig_freezer__parse_procs(text, &pids, &n);
	free(pids);
	free(dmig_criu__errors_in(text, size));
	free(text);
	return 0;
}
