/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "criu/freezer.h"
#include "criu/dump.h"
#include "migrate/dest_internal.h"
#include "migrate/fault.h"
#include "migrate/process.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

/* runc and CRIU up to the point where they need images: execs and probing of the kernel. */
#define LAUNCH_MS 30000
/* One stage of a restore; reading memory back is the longest. */
#define STAGE_MS 600000
/* The kernel's work queue needs well below a millisecond, a loaded host some. */
#define LINK_READY_MS 200
/* From CRIU's last answer to the end of runc restore. */
#define RESTORED_MS 30000

static int launch(struct dest *d, struct dmig_error **err)
{
	cleanup_free char *socket = dmig_asprintf("%s/restore.sock", d->w->run_dir);
	cleanup_free char *key = NULL;
	struct dmig_container *c = NULL;
	if (!socket)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = dmig_notify_new(socket, &d->notify, err);
	if (r == 0)
		r = dmig_docker_inspect(d->docker, d->container_id, &c, err);
	if (r < 0)
		return r;
	key = c->sandbox_key && c->sandbox_key[0] ? strdup(c->sandbox_key) : NULL;
	dmig_container_free(c);
	struct dmig_restore_opts opts = {.images_dir = d->images_dir,
		.notify_socket = socket,
		.sandbox_key = d->own_netns ? key : NULL,
		.external_netns = d->own_netns,
		.tcp_close = d->tcp_close,
		.tty_key = d->tty_key,
		.wait_images = d->early,
		.log_level = d->verbose ? 4 : 1};
	r = dmig_target_restore(d->target, &opts, err);
	d->restoring = r == 0;
	return r;
}

/* The next stage of the restore, or why there is none: runc's and CRIU's own words if they ended. */
static int next_stage(struct dest *d, int timeout_ms, struct dmig_notify_event *ev, struct dmig_error **err)
{
	cleanup_error struct dmig_error *why = NULL;
	/* After the commit nothing stops it: a connection lost right after GO must not leave a CRIU that waits for us. */
	int cancel = dmig_worker_is_committed(d->w) ? -1 : dmig_stop_fd(d->w->stop);
	int r = dmig_notify_next(d->notify, timeout_ms, cancel, ev, &why);
	if (r == -ECANCELED && dmig_stop_check(d->w->stop, err) < 0)
		return r;
	if (r == -EPIPE || r == -ETIMEDOUT) {
		int ended = dmig_target_wait_restored(d->target, r == -EPIPE ? RESTORED_MS : 0, err);
		if (ended < 0 && ended != -ETIMEDOUT)
			return dmig_error_wrap(err, "restore");
		if (err)
			dmig_error_freep(err);
	}
	if (r < 0) {
		if (err && !*err)
			*err = steal_ptr(&why);
		return dmig_error_wrap(err, "restore");
	}
	log_debug("criu: stage %s", ev->name);
	return 0;
}

static int answer_pid(struct dest *d, struct dmig_error **err)
{
	pid_t pid = 0;
	int r = dmig_target_reap(d->target, &pid, err);
	return r < 0 ? r : dmig_notify_answer(d->notify, 0, pid, err);
}

/* Serve stages until `until` has come; that one is left unanswered. */
static int serve_until(struct dest *d, enum dmig_criu_stage until, int timeout_ms, struct dmig_error **err)
{
	for (;;) {
		struct dmig_notify_event ev;
		int r = next_stage(d, timeout_ms, &ev, err);
		if (r < 0)
			return r;
		if (ev.stage == until)
			return 0;
		r = ev.stage == DMIG_CRIU_ROOT_HOST_PID ? answer_pid(d, err) : dmig_notify_answer(d->notify, 0, 0, err);
		if (r < 0)
			return r;
	}
}

/* A CRIU that can wait for its images is started now, before the freeze: exec, linking and probing cost over 100 ms. */
int dest__launch_restore(struct dest *d, struct dmig_error **err)
{
	cleanup_free char *criu_dir = dmig_criu_dir();
	int has = dmig_criu_probe(criu_dir, NULL, err);
	if (has < 0)
		return has;
	d->early = has & DMIG_CRIU_HAS_WAIT_IMAGES;
	if (!d->early)
		return 0;
	int64_t start = dmig_now_us();
	int r = launch(d, err);
	if (r == 0)
		r = serve_until(d, DMIG_CRIU_WAIT_IMAGES, LAUNCH_MS, err);
	dmig_timeline_step(d->w->timeline, "start CRIU up to its images", start, 0);
	return r;
}

int dest__restore(struct dest *d, struct dmig_error **err)
{
	int64_t start = dmig_now_us();
	int r = d->early ? dmig_notify_answer(d->notify, 0, 0, err) : launch(d, err);
	if (r == 0)
		r = serve_until(d, DMIG_CRIU_PRE_RESUME, STAGE_MS, err);
	dmig_timeline_step(d->w->timeline, "restore", start, 0);
	dest__reached(d, DMIG_PHASE_READY);
	return r;
}

static void probe_connections(struct dest *d)
{
	struct dmig_freezer *f = NULL;
	cleanup_error struct dmig_error *error = NULL;
	int64_t start = dmig_now_us();
	int r = dmig_freezer_open(dmig_target_pid(d->target), &f, &error);
	if (r == 0)
		r = dmig_freezer_probe_tcp(f, &error);
	if (r < 0)
		log_warn("connections: %s", error->message); /* they go on a second later by themselves */
	dmig_freezer_free(f);
	dmig_timeline_step(d->w->timeline, "probe connections", start, 0);
}

/*
 * Before the first task runs: what it sends while its link is not active yet would be lost, and a restored TCP socket has
 * no round trip time, so that it would wait a whole second before it sends again. Committed already: a failure here is
 * told, but the tasks run all the same; the end of dest__finish tries again.
 */
static void join_network(struct dest *d)
{
	cleanup_error struct dmig_error *error = NULL;
	int64_t start = dmig_now_us();
	int r = d->links ? dmig_links_up(d->links, &error) : 0;
	if (r == 0 && d->announcer)
		r = dmig_announcer_wait_ready(d->announcer, LINK_READY_MS, &error);
	if (r == 0 && d->announcer)
		r = dmig_announcer_send(d->announcer, &error);
	if (r < 0)
		log_error("network: %s", error->message);
	dmig_timeline_step(d->w->timeline, "network up and announced", start, 0);
	if (d->links && !d->tcp_close)
		probe_connections(d);
}

/*
 * The commit on this side. The restore helper is told not to kill any more (a CRIU that is never answered still ends
 * without running anything); then the journal decides: if the source was told meanwhile that nothing ran, nothing will;
 * then CRIU may let the tasks go.
 */
int dest__go(struct dest *d, struct dmig_error **err)
{
	int64_t start = dmig_now_us();
	int r = dmig_target_release(d->target, err);
	if (r < 0)
		return r;
	dmig_timeline_step(d->w->timeline, "disarm the restore helper", start, 0);
	dmig_fault(d->w, "before-decision", NULL);
	start = dmig_now_us();
	r = dmig_journal_decide(d->w->journal, "resuming", "refused", err);
	if (r == 0)
		return dmig_error_set(err, ECONNABORTED, "GO came after the source was told that nothing runs here");
	if (r < 0)
		return r;
	dmig_worker_committed(d->w);
	dmig_timeline_step(d->w->timeline, "journal the commit", start, 0);
	dmig_fault(d->w, "after-decision", NULL);
	join_network(d);
	start = dmig_now_us();
	/* In this order: without the note it is certain that nothing ran, and the source may go on (dmig_dest_settle). */
	r = dmig_journal_note(d->w->journal, "let-go", err);
	if (r == 0)
		r = dmig_notify_answer(d->notify, 0, 0, err);
	if (r == 0)
		r = serve_until(d, DMIG_CRIU_POST_RESUME, STAGE_MS, err);
	if (r == 0)
		r = dmig_journal_note(d->w->journal, "resumed", err);
	if (r < 0)
		return r;
	d->resumed_us = dmig_now_us();
	dmig_timeline_step(d->w->timeline, "resume", start, d->resumed_us);
	dest__reached(d, DMIG_PHASE_COMMIT);
	return 0;
}

/* Off the critical path: RESUMED is sent already. */
int dest__after_go(struct dest *d, struct dmig_error **err)
{
	int r = dmig_notify_answer(d->notify, 0, 0, err);
	while (r == 0) {
		struct dmig_notify_event ev;
		cleanup_error struct dmig_error *ended = NULL;
		if (dmig_notify_next(d->notify, RESTORED_MS, -1, &ev, &ended) < 0)
			break;
		r = dmig_notify_answer(d->notify, 0, 0, err);
	}
	r = dmig_target_wait_restored(d->target, RESTORED_MS, err);
	if (d->announcer)
		dmig_announcer_send(d->announcer, NULL); /* once more, for switches that were slow to see the port */
	return r < 0 ? r : dmig_target_commit(d->target, err);
}

static int sync_below(int dirfd, const char *path)
{
	cleanup_fd int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || syncfs(fd) < 0 ? -errno : 0;
}

/* The source removes its copy after FINISHED: what we have must be on disk by then. */
static int sync_files(struct dest *d, struct dmig_error **err)
{
	int r = sync_below(dmig_target_root_fd(d->target), ".");
	for (size_t i = 0; r == 0 && i < d->container->n_mounts; i++)
		if (d->container->mounts[i].type == DMIG_MOUNT_VOLUME)
			r = sync_below(AT_FDCWD, d->container->mounts[i].source);
	return r < 0 ? dmig_error_set(err, -r, "cannot sync the container's files: %s", strerror(-r)) : 0;
}

int dest__finish(struct dest *d, json_t **ret_report, struct dmig_error **err)
{
	int64_t start = dmig_now_us();
	int r = sync_files(d, err);
	dmig_timeline_step(d->w->timeline, "sync files", start, 0);
	if (r == 0)
		r = dmig_dest_roll_forward(d->w->journal, err);
	if (r < 0)
		return r;
	dmig_docker_stale_forget(dmig_state_dir(), d->container);
	*ret_report = json_pack("{s:I,s:o,s:{s:I,s:I}}", "resumed_us", (json_int_t)d->resumed_us, "timeline",
		dmig_timeline_to_json(d->w->timeline), "files", "count", (json_int_t)d->files.files, "bytes",
		(json_int_t)d->files.bytes);
	return *ret_report ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}
