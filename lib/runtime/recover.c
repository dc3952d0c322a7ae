/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/internal.h"
#include "runtime/remains.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* A helper whose owner died needs as long as an undo; the longest part is the time limit of its tombstone. */
#define HELPER_MS 15000
#define KILL_MS 5000
/* CRIU that is told to stop needs this long to kill and unmount; tens of milliseconds with many tasks. */
#define GRACE_MS 1500

int dmig_target_record_state(const char *container_id)
{
	return dmig_target_is_recorded(container_id) ? 0 : -ENOENT;
}

static void remove_socket(const char *id)
{
	cleanup_free char *path = dmig_target_run_path(id, ".sock");
	if (path)
		unlink(path);
}

/* The dead owner's zombie is ours if we are the next subreaper; while it stands, nobody can use its number.
 */
static void end_placeholder(const struct dmig_target_info *info)
{
	struct dmig_target_info alone = {.pid = info->pid, .start = info->start};
	dmig_remains_kill(&alone, NULL, 0, KILL_MS, NULL);
	waitpid(info->pid, NULL, WNOHANG);
}

int dmig_target_recover(const char *container_id, struct dmig_error **err)
{
	cleanup_target_info struct dmig_target_info info = {0};
	struct dmig_helper_note note;
	if (!dmig_target_is_recorded(container_id))
		return 0;
	remove_socket(container_id);
	int r = dmig_target_info_read(container_id, &info, NULL);
	if (r == -ENOENT)
		return 0; /* nothing was made, or a reboot took it */
	if (r < 0)
		return dmig_target_info_read(container_id, &info, err);
	end_placeholder(&info);
	/* It does what follows by itself, and can show Docker the end. */
	if (dmig_helper_wait_gone(container_id, HELPER_MS) < 0)
		log_warn("target %.12s: the restore helper does not end", container_id);
	dmig_helper_read(container_id, &note);
	r = dmig_remains_kill(&info, &note, GRACE_MS, KILL_MS, err);
	return r < 0 ? r : dmig_state_put_back(&info, container_id, err);
}

static int finish_running(const char *id, const struct dmig_target_info *info, struct dmig_error **err)
{
	cleanup_error struct dmig_error *ignored = NULL;
	if (dmig_target__fix_bundle(info, id, &ignored) < 0)
		log_warn("target %.12s: %s", id, ignored->message);
	dmig_state_drop(info, id);
	int r = dmig_target_record_remove(id);
	return r < 0 ? dmig_error_set(err, -r, "cannot remove the record of %s: %s", id, strerror(-r)) : 1;
}

int dmig_target_outcome(const char *container_id, int timeout_ms, struct dmig_error **err)
{
	cleanup_target_info struct dmig_target_info info = {0};
	struct dmig_helper_note note;
	if (!dmig_target_is_recorded(container_id))
		return 1;
	int r = dmig_target_info_read(container_id, &info, NULL);
	if (r == -ENOENT)
		return 0; /* a reboot took it, and what ran with it */
	if (r < 0)
		return dmig_target_info_read(container_id, &info, err);
	waitpid(info.pid, NULL, WNOHANG);
	r = dmig_helper_wait_gone(container_id, timeout_ms);
	if (r == 0) {
		dmig_helper_read(container_id, &note);
		r = dmig_target__wait_runc(&note, timeout_ms);
	}
	if (r < 0)
		return dmig_error_set(err, -r, "the restore of %.12s goes on still", container_id);
	remove_socket(container_id);
	if ((note.ended && note.status == 0) || dmig_target__runs(&info, container_id))
		return finish_running(container_id, &info, err);
	return dmig_target_recover(container_id, err);
}
