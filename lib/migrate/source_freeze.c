/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "migrate/fault.h"
#include "migrate/process.h"
#include "migrate/source_internal.h"
#include "migrate/undo.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

/* CRIU starts within a second even on a busy host; a task in uninterruptible sleep is the usual reason for more. */
#define FREEZE_MS 20000
/* One stage of the dump; memory is written between two of them, so this grows with it: 1 GiB takes 1-4 s here. */
#define STAGE_MS 600000
#define ABORT_MS 2000
/* All tasks are stopped already: this takes well below a millisecond. */
#define CGROUP_FREEZE_MS 1000
/* Between two looks at tasks that were exec'd into the container. */
#define EXEC_POLL_MS 50

static int restart_policy_off(struct source *s, struct dmig_error **err)
{
	const struct dmig_container *c = s->container;
	if (!strcmp(c->restart_policy, "no") || !c->restart_policy[0] || c->auto_remove)
		return 0;
	int r = dmig_undo_restart_policy(s->w->journal, c->id, c->restart_policy, c->restart_max, err);
	return r < 0 ? r : dmig_docker_set_restart_policy(s->docker, c->id, "no", 0, err);
}

/* Everything that will be switched in the frozen window is looked up, and its undo journaled, before. */
static int get_ready(struct source *s, struct dmig_error **err)
{
	int r = dmig_freezer_open(s->container->pid, &s->freezer, err);
	if (r == 0)
		r = dmig_undo_freezer(s->w->journal, dmig_freezer_path(s->freezer), err);
	if (r < 0 || !s->own_netns)
		return r;
	cleanup_free char *path = dmig_asprintf("/proc/%d/ns/net", (int)s->container->pid);
	cleanup_fd int ns = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (ns < 0)
		return dmig_error_set(err, errno, "cannot open the container's network namespace: %m");
	r = dmig_links_find(ns, &s->links, err);
	if (r < 0 || dmig_links_count(s->links) == 0)
		return r;
	cleanup_free char *text = dmig_links_format(s->links);
	return text ? dmig_undo_links(s->w->journal, text, err) : dmig_error_set(err, ENOMEM, "out of memory");
}

static int start_dump(struct source *s, struct dmig_error **err)
{
	cleanup_free char *criu_dir = dmig_criu_dir();
	cleanup_free char *hook = dmig_libexec_path("dmigrate-hook");
	struct dmig_dump_opts opts = {.runc = "runc",
		.runc_root = s->runc_root,
		.hook = hook,
		.skip_in_flight = true, /* their clients have no answer yet and try again */
		.container_id = s->container->id,
		.run_dir = s->w->run_dir,
		.images_dir = s->images_dir,
		.criu_dir = criu_dir,
		.tcp_close = s->o->tcp == DMIG_TCP_CLOSE,
		.external_netns = s->own_netns,
		.init_pid = s->container->pid,
		.inline_tmpfs = json_is_true(json_object_get(s->check_result, "inline_tmpfs")),
		.tty = s->container->tty,
		.log_level = s->o->verbose ? 4 : 1};
	int r = dmig_remove_tree(s->images_dir);
	if (r == 0)
		r = dmig_mkdir_p(s->images_dir, 0700);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot make %s: %s", s->images_dir, strerror(-r));
	r = dmig_dump_start(&opts, &s->dump, err);
	return r < 0 ? r : dmig_undo_dump(s->w->journal, dmig_dump_pid(s->dump), err);
}

/* -EAGAIN: somebody exec'd into the container right now. */
static int on_frozen(struct source *s, struct dmig_error **err)
{
	int64_t now = dmig_now_us();
	s->frozen_us = now;
	dmig_timeline_step(s->w->timeline, "stop all tasks", s->freeze_us, now);
	int r = s->links ? dmig_links_down(s->links, err) : 0;
	if (r < 0)
		return r;
	dmig_timeline_step(s->w->timeline, "cut the network", now, 0);
	cleanup_free char *who = NULL;
	int n = dmig_freezer_foreign(s->freezer, s->container->pid, &who, err);
	if (n < 0)
		return n;
	if (n > 0 && s->o->exec != DMIG_EXEC_DROP) {
		dmig_error_set_class(err, DMIG_ERR_REFUSED, EAGAIN, "docker exec runs in the container: %s", who ? who : "?");
		return -EAGAIN;
	}
	if (n > 0)
		json_array_append_new(s->warnings, json_sprintf("dropped as asked (--exec drop): %s", who ? who : "?"));
	dmig_peer_frozen(s->peer, true);
	r = dmig_peer_send(s->peer, DMIG_MSG_FROZEN, err);
	if (r == 0)
		r = source__start_files(s, err);
	return r < 0 ? r : dmig_fault(s->w, "frozen", err);
}

static int on_stage(struct source *s, const struct dmig_notify_event *ev, struct dmig_error **err)
{
	struct dmig_notify *n = dmig_dump_notify(s->dump);
	int r = 0;
	log_debug("criu: stage %s", ev->name);
	if (ev->stage == dmig_dump_freeze_stage(s->dump))
		r = on_frozen(s, err);
	if (ev->stage == DMIG_CRIU_POST_DUMP)
		return 0; /* held: CRIU is answered at finish */
	if (r < 0)
		return r;
	if (!s->frozen_us)
		s->freeze_us = dmig_now_us(); /* the freeze begins after the last answer before post-freeze */
	return dmig_notify_answer(n, 0, 0, err);
}

static int until_post_dump(struct source *s, struct dmig_error **err)
{
	struct dmig_notify_event ev;
	cleanup_error struct dmig_error *why = NULL;
	do {
		int r = dmig_notify_next(dmig_dump_notify(s->dump), s->frozen_us ? STAGE_MS : FREEZE_MS,
			dmig_stop_fd(s->w->stop), &ev, &why);
		if (r == -ECANCELED)
			return dmig_stop_check(s->w->stop, err);
		if (r < 0) {
			/* CRIU is gone: its log knows more than our socket */
			int ended = dmig_dump_wait(s->dump, ABORT_MS, err);
			if (ended == 0)
				return dmig_error_set(err, EPROTO, "runc checkpoint ended before the dump was complete");
			return ended;
		}
		r = on_stage(s, &ev, err);
		if (r < 0)
			return r;
	} while (ev.stage != DMIG_CRIU_POST_DUMP);
	if (!s->frozen_us)
		return dmig_error_set(err, EPROTO, "CRIU dumped without saying when all tasks were stopped");
	dmig_timeline_step(s->w->timeline, "dump", s->frozen_us, 0);
	/* A CRIU that is killed from here on must not let the tasks run: their sockets are in repair mode (dump.h). */
	return dmig_freezer_freeze(s->freezer, CGROUP_FREEZE_MS, err);
}

void source__release(struct source *s)
{
	if (s->dump) {
		cleanup_error struct dmig_error *e = NULL;
		if (s->links)
			dmig_links_up(s->links, NULL);
		/* A living CRIU lets them go with their sockets released. After a dead one undo does that before it thaws. */
		if (s->freezer && dmig_notify_waits(dmig_dump_notify(s->dump)))
			dmig_freezer_thaw(s->freezer, NULL);
		if (dmig_dump_abort(s->dump, ABORT_MS, &e) < 0)
			log_error("dump: %s", e->message);
		dmig_dump_free(s->dump);
		s->dump = NULL;
	}
}

/* Before the freeze: is somebody in there by docker exec? Waits as --exec says. */
static int wait_for_exec(struct source *s, int64_t deadline, struct dmig_error **err)
{
	for (;;) {
		cleanup_free char *who = NULL;
		int n = dmig_freezer_foreign(s->freezer, s->container->pid, &who, err);
		if (n <= 0 || s->o->exec == DMIG_EXEC_DROP)
			return n < 0 ? n : 0;
		if (s->o->exec == DMIG_EXEC_REFUSE || dmig_now_ms() >= deadline)
			return dmig_error_set_class(err, DMIG_ERR_REFUSED, EBUSY,
				"docker exec runs in the container (%s) and would be lost: end it, or use --exec drop",
				who ? who : "?");
		dmig_worker_state(s->w, "running", "waiting for docker exec to end");
		int r = dmig_poll_one(dmig_stop_fd(s->w->stop), POLLIN, EXEC_POLL_MS);
		if (r != 0)
			return r < 0 ? r : dmig_stop_check(s->w->stop, err);
	}
}

int source__freeze(struct source *s, struct dmig_error **err)
{
	int64_t deadline = dmig_now_ms() + s->o->exec_wait_ms;
	s->images_dir = dmig_asprintf("%s/images", s->w->run_dir);
	if (!s->images_dir)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = restart_policy_off(s, err);
	if (r == 0)
		r = get_ready(s, err);
	while (r == 0) {
		cleanup_error struct dmig_error *why = NULL;
		r = wait_for_exec(s, deadline, err);
		if (r == 0)
			r = start_dump(s, err);
		if (r < 0)
			break;
		r = until_post_dump(s, &why);
		if (r == 0)
			return 0;
		if (r != -EAGAIN || s->o->exec == DMIG_EXEC_REFUSE || dmig_now_ms() >= deadline) {
			if (err && !*err)
				*err = steal_ptr(&why);
			return r;
		}
		source__release(s); /* a health probe or an exec came in between: let it end, then try again */
		s->frozen_us = 0;
		r = 0;
	}
	return r;
}
