/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* A removed file has no event that is worth an inotify here; tests measure hundreds of ms. */
#define LOOK_MS 5

static int wait_for_removal(struct dmig_worker *w, bool deaf)
{
	cleanup_free char *path = dmig_asprintf("%s/fault", w->run_dir);
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		return 0;
	close(fd);
	while (access(path, F_OK) == 0)
		if (dmig_poll_one(deaf ? -1 : dmig_stop_fd(w->stop), POLLIN, LOOK_MS) == 1)
			break;
	unlink(path);
	return 0;
}

static int act(struct dmig_worker *w, const char *point, const char *action, struct dmig_error **err)
{
	log_warn("fault at %s: %s", point, action);
	if (!strcmp(action, "stop") || !strcmp(action, "hold"))
		return wait_for_removal(w, action[0] == 'h');
	if (!strcmp(action, "kill-supervisor") || !strcmp(action, "kill-both"))
		kill(getppid(), SIGKILL);
	if (!strcmp(action, "kill-worker") || !strcmp(action, "kill-both"))
		kill(getpid(), SIGKILL);
	if (!strcmp(action, "hang"))
		kill(getpid(), SIGSTOP);
	return strcmp(action, "fail") ? 0 : dmig_error_set(err, EIO, "fault at %s, as asked", point);
}

int dmig_fault(struct dmig_worker *w, const char *point, struct dmig_error **err)
{
	const char *asked = getenv("DMIGRATE_FAULT");
	if (!asked)
		return 0;
	cleanup_free char *here = dmig_asprintf("%s:%s:", dmig_side_name(w->side), point);
	if (!here || strncmp(asked, here, strlen(here)))
		return 0;
	return act(w, point, asked + strlen(here), err);
}

int dmig_fault_phase(struct dmig_worker *w, const char *when, enum dmig_phase phase, struct dmig_error **err)
{
	char point[32];
	snprintf(point, sizeof(point), "%s-%s", when, dmig_phase_name(phase));
	return dmig_fault(w, point, err);
}
