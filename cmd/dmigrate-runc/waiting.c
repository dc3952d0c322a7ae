/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/remains.h"
#include "util/cleanup.h"
#include "wrapper.h"

/* Answers for a target between create and commit: from its owner, or from the files when the owner is dead.
 */

/* The number is free as soon as the zombie is reaped, which takes the supervisor or pid 1 a moment. */
#define TOMBSTONE_MS 5000
#define KILL_MS 5000
/* CRIU that is told to stop needs this long to kill and unmount; tens of milliseconds with many tasks. */
#define GRACE_MS 1500
/* The helper of a dead owner cleans up by itself: wait for it rather than do half of it twice. */
#define HELPER_MS 9000

static bool no_record(const struct wrapper *w)
{
	return !dmig_target_is_recorded(w->args.id);
}

/* The owner died after the container was restored and let go: it is there, and plain runc can work on it. */
static bool runs_without_owner(const char *id)
{
	cleanup_target_info struct dmig_target_info info = {0};
	if (dmig_target_info_read(id, &info, NULL) < 0)
		return false;
	unsigned long long start = dmig_process_start(info.pid);
	return start && start != info.start && dmig_remains_alive(&info);
}

/* Kill what is left, put runc's state back so that `delete` finds it, show the shim the end. */
static int clean_up(const struct wrapper *w, bool tombstone)
{
	cleanup_target_info struct dmig_target_info info = {0};
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_helper_note note;
	if (dmig_helper_wait_gone(w->args.id, HELPER_MS) < 0)
		return fail(w, "the restore helper does not end");
	int r = dmig_target_info_read(w->args.id, &info, &err);
	if (r == -ENOENT)
		return 0; /* never created */
	dmig_helper_read(w->args.id, &note);
	if (r == 0)
		r = dmig_remains_kill(&info, &note, GRACE_MS, KILL_MS, &err);
	if (r == 0)
		r = dmig_state_put_back(&info, w->args.id, &err);
	if (r < 0)
		return fail(w, "%s", err->message);
	r = tombstone && !note.buried ? dmig_tombstone(info.pid, TOMBSTONE_MS) : 0;
	return r < 0 ? fail(w, "cannot show the end of process %d: %s", (int)info.pid, strerror(-r)) : 0;
}

static int tombstone_only(const struct wrapper *w)
{
	cleanup_target_info struct dmig_target_info info = {0};
	int r = dmig_target_info_read(w->args.id, &info, NULL);
	if (r == 0)
		r = dmig_tombstone(info.pid, TOMBSTONE_MS);
	return r < 0 ? fail(w, "cannot show the end of the container: %s", strerror(-r)) : 0;
}

static int do_action(const struct wrapper *w, const struct dmig_packet *answer)
{
	if (answer->head.type == DMIG_TARGET_FAILED)
		return fail(w, "%s", answer->data);
	if (answer->head.type != DMIG_TARGET_OK)
		return fail(w, "dmigrated gave an answer that makes no sense");
	switch (answer->head.value) {
	case DMIG_TARGET_PASS:
		return run_real(w);
	case DMIG_TARGET_DO_TOMBSTONE:
		return tombstone_only(w);
	default:
		return 0;
	}
}

int kill_target(const struct wrapper *w)
{
	cleanup_packet struct dmig_packet answer = DMIG_PACKET_INIT;
	int sig = dmig_signal_parse(w->args.signal);
	if (sig < 0)
		return fail(w, "unknown signal %s", w->args.signal);
	if (ask_owner(w, DMIG_TARGET_KILL, sig, DMIG_TARGET_ANSWER_MS, &answer) == 0)
		return do_action(w, &answer);
	if (no_record(w) || runs_without_owner(w->args.id))
		return run_real(w);
	return clean_up(w, true);
}

int delete_target(const struct wrapper *w)
{
	cleanup_packet struct dmig_packet answer = DMIG_PACKET_INIT;
	if (ask_owner(w, DMIG_TARGET_DELETE, w->args.force, DMIG_TARGET_ANSWER_MS, &answer) == 0)
		return do_action(w, &answer);
	if (no_record(w) || runs_without_owner(w->args.id))
		return run_real(w);
	int r = clean_up(w, false);
	return r ? r : run_real(w);
}

/* A health probe waits for the restore instead of failing. */
int exec_target(const struct wrapper *w)
{
	cleanup_packet struct dmig_packet answer = DMIG_PACKET_INIT;
	if (ask_owner(w, DMIG_TARGET_EXEC_WAIT, 0, DMIG_TARGET_ANSWER_MS, &answer) == 0)
		return do_action(w, &answer);
	if (no_record(w) || runs_without_owner(w->args.id))
		return run_real(w);
	return fail(w, "the container is being migrated to this host and does not run yet");
}

static bool ask_state(const struct wrapper *w, struct dmig_packet *answer)
{
	return ask_owner(w, DMIG_TARGET_STATE, 0, DMIG_TARGET_STATE_MS, answer) == 0 &&
	       answer->head.type == DMIG_TARGET_STATE;
}

int state_target(const struct wrapper *w)
{
	cleanup_packet struct dmig_packet answer = DMIG_PACKET_INIT;
	if (!ask_state(w, &answer))
		return run_real(w);
	return puts(answer.data) == EOF;
}

int ps_target(const struct wrapper *w)
{
	cleanup_packet struct dmig_packet answer = DMIG_PACKET_INIT;
	if (!ask_state(w, &answer))
		return run_real(w);
	if (w->args.format && !strcmp(w->args.format, "json"))
		return printf("[%d]\n", answer.head.value) < 0;
	return printf("PID\n%d\n", answer.head.value) < 0;
}

/* pause, resume, update, events, checkpoint, restore: not before it runs. */
int refuse_target(const struct wrapper *w)
{
	if (runs_without_owner(w->args.id) && strcmp(w->args.command, "restore") &&
		strcmp(w->args.command, "run"))
		return run_real(w);
	return fail(w, "%s: the container is being migrated to this host; try again when it runs",
		w->args.command);
}
