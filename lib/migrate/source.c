/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/source.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "migrate/fault.h"
#include "migrate/report_file.h"
#include "migrate/source_internal.h"
#include "migrate/undo.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* How long the destination may take to clean up after a failure before we stop waiting for it. */
#define PEER_CLEANUP_MS 15000
/* How long its reason may take on the control connection when another one has broken. */
#define REASON_MS 200

static const struct {
	enum dmig_phase phase;
	int (*enter)(struct source *, struct dmig_error **);
} phases[] = {
	{DMIG_PHASE_CONNECT, source__connect},
	{DMIG_PHASE_CHECK, source__check},
	{DMIG_PHASE_PREPARE, source__prepare},
	{DMIG_PHASE_STAGE, source__stage},
	{DMIG_PHASE_FREEZE, source__freeze},
	{DMIG_PHASE_STATE, source__state},
	{DMIG_PHASE_READY, source__ready},
	/* ---- the one commit point: source__commit sends GO; above it every failure is undone, below nothing is ---- */
	{DMIG_PHASE_COMMIT, source__commit},
	{DMIG_PHASE_FINISH, source__finish},
};

/* A reason to stop that came meanwhile is the better message than what failed because of it. */
static int stopped_because(struct source *s, int r, struct dmig_error **err)
{
	cleanup_error struct dmig_error *why = NULL;
	/* A stream that breaks is often the first sign of an ABORT that says why. */
	if ((r == -EPIPE || r == -ECONNRESET || r == -ECONNABORTED) && !dmig_worker_is_committed(s->w))
		dmig_poll_one(dmig_stop_fd(s->w->stop), POLLIN, REASON_MS);
	if (r >= 0 || dmig_worker_is_committed(s->w) || dmig_stop_check(s->w->stop, &why) == 0)
		return r;
	dmig_error_freep(err);
	*err = steal_ptr(&why);
	return -(*err)->code;
}

static int run_phases(struct source *s, struct dmig_error **err)
{
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		dmig_worker_phase(s->w, phases[i].phase);
		int r = dmig_fault_phase(s->w, "before", phases[i].phase, err);
		if (r == 0 && phases[i].phase < DMIG_PHASE_FINISH)
			r = dmig_stop_check(s->w->stop, err);
		if (r == 0)
			r = phases[i].enter(s, err);
		if (r == 0)
			r = dmig_fault_phase(s->w, "after", phases[i].phase, err);
		if (r < 0)
			return stopped_because(s, r, err);
		if (s->o->dry_run && phases[i].phase == DMIG_PHASE_CHECK)
			break;
	}
	dmig_worker_phase(s->w, DMIG_PHASE_DONE);
	return 0;
}

static void undo(struct source *s, struct dmig_error *error)
{
	cleanup_error struct dmig_error *failed = NULL;
	if (s->peer)
		dmig_peer_abort(s->peer, error);
	source__release(s);
	if (dmig_undo_run(s->w->journal, &failed) < 0)
		json_array_append_new(s->warnings, json_sprintf("could not put back everything: %s", failed->message));
	s->released_us = dmig_now_us();
	source__join(&s->files, NULL);
	source__join(&s->images, NULL);
	if (s->peer)
		dmig_peer_wait_closed(s->peer, PEER_CLEANUP_MS);
}

static void clear(struct source *s)
{
	source__unwatch_streams(s);
	dmig_dump_free(s->dump);
	dmig_freezer_free(s->freezer);
	dmig_links_free(s->links);
	dmig_conn_free(s->files.conn);
	dmig_conn_free(s->images.conn);
	dmig_peer_free(s->peer);
	dmig_container_free(s->container);
	dmig_docker_free(s->docker);
	dmig_key_free(s->key);
	if (s->images_dir)
		dmig_remove_tree(s->images_dir);
	free(s->runc_root);
	free(s->upper);
	free(s->images_dir);
	free(s->log_path);
	if (s->init_pidfd >= 0)
		close(s->init_pidfd);
	json_decref(s->warnings);
	json_decref(s->check_result);
	json_decref(s->destination_report);
}

static void on_deadline(union sigval value)
{
	dmig_stop_printf(value.sival_ptr, DMIG_ERR_FAILED, ETIMEDOUT, "not committed within --timeout");
}

/* --timeout covers everything before the commit; source__commit() disarms it. */
static void arm_deadline(struct source *s)
{
	struct sigevent ev = {
		.sigev_notify = SIGEV_THREAD, .sigev_value.sival_ptr = s->w->stop, .sigev_notify_function = on_deadline};
	struct itimerspec when = {.it_value = {s->o->timeout_ms / 1000, s->o->timeout_ms % 1000 * 1000000L}};
	if (s->o->timeout_ms <= 0)
		return;
	if (timer_create(CLOCK_MONOTONIC, &ev, &s->deadline) < 0 || timer_settime(s->deadline, 0, &when, NULL) < 0)
		log_error("--timeout cannot be kept: %m");
	else
		s->has_deadline = true;
}

int dmig_source_run(struct dmig_worker *w, const struct dmig_options *o)
{
	struct source s = {.w = w, .o = o, .init_pidfd = -1, .warnings = json_array(), .start_us = dmig_now_us()};
	cleanup_error struct dmig_error *error = NULL;

	arm_deadline(&s);
	int r = run_phases(&s, &error);
	if (r < 0) {
		if (!error)
			dmig_error_set(&error, -r, "%s", strerror(-r));
		dmig_error_side(error, DMIG_SIDE_SOURCE);
		log_error("%s", error->message);
		if (!dmig_worker_is_committed(w))
			undo(&s, error);
	} else if (dmig_journal_has(w->journal, "done") == 0) {
		dmig_journal_add(w->journal, json_pack("{s:s,s:s}", "rec", "done", "result", "ok"), NULL);
	}
	json_t *report = source__report(&s, error);
	int code = (int)json_integer_value(json_object_get(report, "exit_code"));
	dmig_report_write(w->id, report);
	clear(&s);
	return code;
}
