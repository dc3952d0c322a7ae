/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/internal.h"
#include "runtime/remains.h"
#include "util/cleanup.h"
#include "util/io.h"

/* A killed process ends in less than a millisecond; a loaded machine may take longer. */
#define DEATH_MS 5000

/* The terminal that Docker holds the master of: its slave lives in P's devpts, which must outlive P. */
static int take_terminal(struct dmig_target *t, struct dmig_error **err)
{
	if (!t->tty || t->devpts)
		return 0;
	t->devpts = dmig_asprintf("%s/devpts", t->run_dir);
	if (!t->devpts)
		return dmig_error_set(err, ENOMEM, "out of memory");
	return dmig_devpts_take(t->info.pid, t->devpts, &t->devpts_slave, err);
}

/* The zombie keeps the number. */
static int kill_placeholder(struct dmig_target *t, struct dmig_error **err)
{
	siginfo_t info;
	kill(t->info.pid, SIGKILL);
	if (dmig_poll_one(t->pidfd, POLLIN, DEATH_MS) != 1)
		return dmig_error_set(
			err, ETIMEDOUT, "the waiting container (process %d) does not die", (int)t->info.pid);
	if (waitid(P_PID, (id_t)t->info.pid, &info, WEXITED | WNOWAIT) < 0)
		return dmig_error_set(err, errno, "process %d is not our zombie: %m", (int)t->info.pid);
	return 0;
}

/* Lock held: all of this takes about a millisecond and nobody else may act on P meanwhile. */
static int vacate(struct dmig_target *t, struct dmig_error **err)
{
	if (t->trouble)
		return dmig_target__copy_trouble(t, err);
	if (t->stage != STAGE_STARTED)
		return dmig_error_set(err, EINVAL, "the container is not started");
	int r = take_terminal(t, err);
	if (r < 0)
		return r;
	/* From here P's end is our doing. */
	dmig_target__set_stage(t, STAGE_VACATED);
	r = kill_placeholder(t, err);
	return r < 0 ? r : dmig_state_aside(&t->info, t->id, err);
}

int dmig_target_vacate(struct dmig_target *t, struct dmig_error **err)
{
	pthread_mutex_lock(&t->lock);
	int r = vacate(t, err);
	pthread_mutex_unlock(&t->lock);
	return r;
}
