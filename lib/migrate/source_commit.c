/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "criu/image.h"
#include "migrate/fault.h"
#include "migrate/process.h"
#include "migrate/source_internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

/* Restoring: CRIU's work plus reading back the memory that was sent. */
#define READY_MS 600000
#define FREEZE_MS 2000
/* After GO the destination answers within some milliseconds; then the heartbeat decides. */
#define RESUMED_MS 10000
#define FINISH_MS 120000
/* A killed tree of tasks, and runc and Docker behind it. */
#define TASKS_END_MS 30000

int source__state(struct source *s, struct dmig_error **err)
{
	struct dmig_criu_summary summary = {0};
	if (dmig_criu_image_summary(s->images_dir, &summary, NULL) == 0) {
		s->memory_bytes = summary.page_bytes;
		s->zero_bytes = summary.pages_zero * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	dmig_worker_total(s->w, s->memory_bytes + s->file_stats.bytes);
	int r = source__send_images(s, err);
	if (r == 0)
		r = source__join(&s->files, err);
	if (r == 0)
		dmig_timeline_step(s->w->timeline, "send files", s->files.start_us, s->files.end_us);
	return r < 0 ? r : dmig_peer_send(s->peer, DMIG_MSG_STATE_END, err);
}

int source__ready(struct source *s, struct dmig_error **err)
{
	int64_t start = dmig_now_us();
	int r = dmig_peer_expect(s->peer, DMIG_MSG_READY, READY_MS, err);
	dmig_timeline_step(s->w->timeline, "destination restores", start, 0);
	if (r < 0)
		return r;
	/* From here a dying CRIU must not let the tasks run (design.md): frozen tasks stay stopped without it. */
	start = dmig_now_us();
	r = dmig_freezer_freeze(s->freezer, FREEZE_MS, err);
	dmig_timeline_step(s->w->timeline, "freeze the cgroup", start, 0);
	if (r < 0)
		return r;
	if (dmig_poll_one(s->init_pidfd, POLLIN, 0) == 1 || dmig_process_is_dead(s->container->pid))
		return dmig_error_set(err, ESRCH, "the container was stopped or killed while it was frozen");
	if (!dmig_notify_waits(dmig_dump_notify(s->dump)) || dmig_poll_one(dmig_dump_pidfd(s->dump), POLLIN, 0) == 1)
		return dmig_error_set(err, ECHILD, "runc or CRIU was killed while the container was frozen");
	return 0;
}

static int wait_resumed(struct source *s, struct dmig_error **err)
{
	cleanup_error struct dmig_error *why = NULL;
	int r = dmig_peer_expect(s->peer, DMIG_MSG_RESUMED, RESUMED_MS, &why);
	if (r == 0) {
		s->resumed_us = dmig_now_us();
		return 0;
	}
	r = source__in_doubt(s, err);
	if (r == 0)
		dmig_worker_state(s->w, "running", "the destination runs");
	return r;
}

int source__commit(struct source *s, struct dmig_error **err)
{
	if (s->has_deadline)
		timer_delete(s->deadline);
	dmig_docker_set_cancel_fd(s->docker, -1); /* what follows the commit is done whatever happens */
	int r = dmig_stop_check(s->w->stop, err); /* the last moment at which a reason to stop counts */
	if (r == 0)
		r = dmig_journal_add(s->w->journal, json_pack("{s:s}", "rec", "in-doubt"), err);
	if (r < 0)
		return r;
	dmig_fault(s->w, "before-go", NULL);
	int64_t start = dmig_now_us();
	cleanup_error struct dmig_error *unsent = NULL;
	/* Whether a GO that could not be sent whole was heard, only the destination knows: wait_resumed() asks. */
	if (dmig_peer_send(s->peer, DMIG_MSG_GO, &unsent) < 0)
		log_warn("GO: %s", unsent->message);
	dmig_fault(s->w, "go-sent", NULL);
	r = wait_resumed(s, err);
	if (r < 0)
		return r;
	dmig_fault(s->w, "heard-resumed", NULL);
	dmig_timeline_step(s->w->timeline, "GO to RESUMED", start, 0);
	/* Written after the fact: without it recovery asks the destination, and gets the same answer. */
	dmig_worker_committed(s->w);
	dmig_peer_frozen(s->peer, false);
	return dmig_journal_add(s->w->journal, json_pack("{s:s}", "rec", "committed"), err);
}

/*
 * Kill while frozen, then thaw: not one instruction runs in between (v1: the signal pends until the thaw; v2: frozen
 * tasks die at once). CRIU then hears "go on" and finds its tasks dead.
 */
static int end_tasks(struct source *s, struct dmig_error **err)
{
	int r = dmig_freezer_kill(s->freezer, err);
	if (r == 0)
		r = dmig_freezer_thaw(s->freezer, err);
	if (r < 0)
		return r;
	cleanup_error struct dmig_error *dead = NULL;
	if (dmig_notify_answer(dmig_dump_notify(s->dump), 0, 0, &dead) < 0 ||
		dmig_dump_wait(s->dump, TASKS_END_MS, &dead) < 0)
		log_info("runc checkpoint did not end well after its tasks were killed: %s", dead ? dead->message : "?");
	s->released_us = dmig_now_us();
	return dmig_docker_wait_stopped(s->docker, s->container->id, TASKS_END_MS, err);
}

static int remove_source(struct source *s, struct dmig_error **err)
{
	cleanup_error struct dmig_error *unmarked = NULL;
	/* Named volumes stay here and may be replaced when the container comes back. */
	if (dmig_docker_stale_mark(s->docker, dmig_state_dir(), s->container, &unmarked) < 0)
		log_warn("%s", unmarked ? unmarked->message : "volumes are not marked as stale");
	if (s->o->source_after == DMIG_SOURCE_KEEP)
		return 0;
	/* Anonymous volumes go with it. */
	return dmig_docker_remove_container(s->docker, s->container->id, false, true, err);
}

/*
 * Docker took the cut links away with the container's network; rules that name them do not go by themselves. Not before
 * that: dead sockets could still send.
 */
static void forget_links(struct source *s)
{
	if (s->links)
		dmig_links_up(s->links, NULL);
}

static int tell_destination(struct source *s, struct dmig_error **err)
{
	int r = dmig_peer_send(s->peer, DMIG_MSG_FINISH, err);
	return r < 0 ? r : dmig_peer_expect_json(s->peer, DMIG_MSG_FINISHED, FINISH_MS, &s->destination_report, err);
}

int source__finish(struct source *s, struct dmig_error **err)
{
	cleanup_error struct dmig_error *lost = NULL;
	int r = end_tasks(s, err);
	if (r < 0)
		return dmig_error_wrap(err, "the container runs at the destination, but its stopped copy here does not end");
	dmig_fault(s->w, "tasks-ended", NULL);
	/* The destination syncs its files before it says FINISHED: only then may ours go. */
	r = tell_destination(s, &lost);
	if (r < 0) {
		json_array_append_new(s->warnings, json_sprintf("the destination runs, but did not confirm that its files are "
								"on disk (%s): the stopped container is kept here",
							   lost ? lost->message : "?"));
		forget_links(s);
		return 0;
	}
	r = remove_source(s, err);
	forget_links(s);
	return r;
}
