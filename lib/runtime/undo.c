/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/internal.h"
#include "runtime/remains.h"
#include "runtime/spec.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* Killing takes milliseconds, CRIU's own cleaning up of half-made tasks tens of them. */
#define HELPER_MS 8000
#define KILL_MS 5000
/* CRIU that is told to stop needs this long to kill and unmount; tens of milliseconds with many tasks. */
#define GRACE_MS 1500
/* runc writes its files and ends right after the tasks run. */
#define RUNC_END_MS 10000
/* runc's state.json holds the whole configuration. */
#define MAX_STATE DMIG_SPEC_MAX_BYTES

/* ---- undo: lock held, but let go of by the waits */

static void wait_created(struct dmig_target *t)
{
	int64_t deadline = dmig_now_ms() + DMIG_TARGET_CREATE_MS;
	while (t->stage == STAGE_CREATING && !t->trouble)
		if (dmig_target__wait_change(t, deadline) < 0)
			break;
}

/* P may be alive still: its number must be free before the helper can make the tombstone. */
static void end_placeholder(struct dmig_target *t)
{
	if (!t->reaped && dmig_process_runs(t->info.pid, t->info.start)) {
		kill(t->info.pid, SIGKILL);
		dmig_poll_one(t->pidfd, POLLIN, KILL_MS);
	}
	dmig_target__reap_zombie(t);
}

static bool helper_undoes(struct dmig_target *t)
{
	int64_t deadline = dmig_now_ms() + HELPER_MS;
	if (t->helper < 0 || dmig_packet_send_text(t->helper, DMIG_TARGET_FAILED, 0, t->trouble->message) < 0)
		return false;
	while (!t->buried && t->helper >= 0)
		if (dmig_target__wait_change(t, deadline) < 0)
			break;
	return t->buried;
}

/* No helper, or one that does not act: the same by ourselves. Docker hears of the end when it calls `kill`.
 */
static int undo_without_helper(struct dmig_target *t, struct dmig_error **err)
{
	struct dmig_helper_note note;
	if (t->helper >= 0)
		kill(t->helper_pid, SIGKILL);
	pthread_mutex_unlock(&t->lock);
	dmig_helper_read(t->id, &note);
	int r = dmig_remains_kill(&t->info, &note, GRACE_MS, KILL_MS, err);
	if (r == 0)
		r = dmig_state_put_back(&t->info, t->id, err);
	pthread_mutex_lock(&t->lock);
	return r;
}

static int undo(struct dmig_target *t, struct dmig_error **err)
{
	int r = 0;
	if (t->stage == STAGE_COMMITTED)
		return dmig_error_set(err, EINVAL, "the target was committed");
	wait_created(t);
	dmig_target__trouble(t, DMIG_ERR_FAILED, ECANCELED, "the migration was undone");
	dmig_target__close_stdio(t);
	if (t->stage >= STAGE_CREATED)
		end_placeholder(t);
	if (t->stage >= STAGE_STARTED && !helper_undoes(t))
		r = undo_without_helper(t, err);
	if (t->devpts)
		dmig_devpts_drop(t->devpts);
	if (r == 0)
		dmig_target__set_stage(t, STAGE_UNDONE);
	return r;
}

int dmig_target_undo(struct dmig_target *t, struct dmig_error **err)
{
	pthread_mutex_lock(&t->lock);
	int r = t->stage == STAGE_UNDONE ? 0 : undo(t, err);
	pthread_mutex_unlock(&t->lock);
	return r;
}

/* ---- commit */

/* runc's state names our copy of the bundle, which goes away: hooks and `runc state` shall see Docker's. */
int dmig_target__fix_bundle(const struct dmig_target_info *info, const char *id, struct dmig_error **err)
{
	cleanup_free char *path = dmig_asprintf("%s/%s/state.json", info->root, id);
	cleanup_free char *json = NULL, *fixed = NULL;
	size_t len = 0;
	int r = path ? dmig_read_file(path, MAX_STATE, &json, &len) : -ENOMEM;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read runc's state of the container: %s", strerror(-r));
	r = dmig_spec_state_bundle(json, len, info->bundle, &fixed, err);
	return r < 0 ? r : dmig_write_file_atomic(path, fixed, strlen(fixed), 0600, err);
}

int dmig_target__wait_runc(const struct dmig_helper_note *note, int timeout_ms)
{
	if (note->ended || !note->runc || !dmig_process_runs(note->runc, note->start))
		return 0;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, note->runc, 0);
	if (pidfd < 0)
		return errno == ESRCH ? 0 : -errno;
	int r = dmig_poll_one(pidfd, POLLIN, timeout_ms);
	return r < 0 ? r : r ? 0 : -ETIMEDOUT;
}

bool dmig_target__runs(const struct dmig_target_info *info, const char *id)
{
	cleanup_free char *state = dmig_asprintf("%s/%s/state.json", info->root, id);
	return state && access(state, F_OK) == 0 && dmig_remains_alive(info);
}

static int commit(struct dmig_target *t, struct dmig_error **err)
{
	cleanup_error struct dmig_error *ignored = NULL;
	if (t->stage == STAGE_COMMITTED)
		return 0;
	if (t->stage != STAGE_RELEASED)
		return dmig_error_set(err, EINVAL, "commit without release");
	int r = dmig_target__wait_restored(t, dmig_now_ms() + RUNC_END_MS, err);
	if (r < 0)
		return r;
	if (dmig_target__fix_bundle(&t->info, t->id, &ignored) < 0)
		log_warn("target %.12s: %s", t->id, ignored->message);
	dmig_state_drop(&t->info, t->id);
	if (t->devpts)
		dmig_devpts_drop(t->devpts);
	/* In this order: a wrapper that finds no socket looks for the record again. */
	r = dmig_target_record_remove(t->id);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot remove the record of the target: %s", strerror(-r));
	dmig_target__set_stage(t, STAGE_COMMITTED);
	if (t->helper >= 0)
		dmig_packet_send(t->helper, DMIG_TARGET_OK, 0, NULL, 0, NULL, 0);
	return 0;
}

int dmig_target_commit(struct dmig_target *t, struct dmig_error **err)
{
	pthread_mutex_lock(&t->lock);
	int r = commit(t, err);
	pthread_mutex_unlock(&t->lock);
	return r;
}
