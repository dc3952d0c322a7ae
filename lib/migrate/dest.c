/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/dest.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "migrate/dest_internal.h"
#include "migrate/fault.h"
#include "migrate/report_file.h"
#include "migrate/undo.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

/* A bootstrapped dmigrated waits this long for its source, then ends. */
#define FIRST_CONNECTION_MS 60000
#define HANDSHAKE_MS 5000
/* A source asks twice a second; one that was cut off for longer than this needs a person. */
#define ANSWER_QUERIES_MS 600000

void dest__reached(struct dest *d, enum dmig_phase phase)
{
	dest__publish(d, phase, phase);
}

static int on_check(struct dest *d, const struct dmig_peer_msg *msg, struct dmig_error **err)
{
	json_t *body = NULL, *result = NULL;
	int r = dmig_peer_json(msg, &body, err);
	if (r == 0)
		r = dest__check(d, body, &result, err);
	json_decref(body);
	if (r < 0)
		return r;
	dest__reached(d, DMIG_PHASE_CHECK); /* before the answer: the image may follow it at once */
	return dmig_peer_send_json(d->peer, DMIG_MSG_CHECK_RESULT, result, err);
}

static int on_prepare(struct dest *d, const struct dmig_peer_msg *msg, struct dmig_error **err)
{
	(void)msg;
	int r = dest__prepare(d, err);
	return r < 0 ? r : dmig_peer_send(d->peer, DMIG_MSG_PREPARED, err);
}

static int on_start(struct dest *d, const struct dmig_peer_msg *msg, struct dmig_error **err)
{
	json_t *body = NULL;
	int r = dmig_peer_json(msg, &body, err);
	if (r == 0)
		r = dest__start(d, body, err);
	json_decref(body);
	return r < 0 ? r : dmig_peer_send(d->peer, DMIG_MSG_STARTED, err);
}

static int on_frozen(struct dest *d, const struct dmig_peer_msg *msg, struct dmig_error **err)
{
	(void)msg;
	(void)err;
	dmig_peer_frozen(d->peer, true);
	dest__reached(d, DMIG_PHASE_FREEZE);
	return 0;
}

static int on_state_end(struct dest *d, const struct dmig_peer_msg *msg, struct dmig_error **err)
{
	(void)msg;
	int r = dest__restore(d, err);
	return r < 0 ? r : dmig_peer_send(d->peer, DMIG_MSG_READY, err);
}

static int on_go(struct dest *d, const struct dmig_peer_msg *msg, struct dmig_error **err)
{
	(void)msg;
	cleanup_error struct dmig_error *lost = NULL;
	int r = dest__go(d, err);
	if (r < 0)
		return r;
	dmig_fault(d->w, "resumed", NULL);
	/* A source that does not hear this asks; the container runs either way. */
	if (dmig_peer_send(d->peer, DMIG_MSG_RESUMED, &lost) < 0)
		log_warn("RESUMED: %s", lost->message);
	dmig_peer_frozen(d->peer, false);
	return dest__after_go(d, err);
}

static int on_finish(struct dest *d, const struct dmig_peer_msg *msg, struct dmig_error **err)
{
	(void)msg;
	json_t *report = NULL;
	int r = dest__finish(d, &report, err);
	if (r < 0)
		return r;
	dest__reached(d, DMIG_PHASE_DONE);
	return dmig_peer_send_json(d->peer, DMIG_MSG_FINISHED, report, err);
}

/* What may come when: each message only right after the one before it. */
static const struct {
	enum dmig_msg type;
	enum dmig_phase after, phase;
	int (*enter)(struct dest *, const struct dmig_peer_msg *, struct dmig_error **);
} steps[] = {
	{DMIG_MSG_CHECK, DMIG_PHASE_CONNECT, DMIG_PHASE_CHECK, on_check},
	{DMIG_MSG_PREPARE, DMIG_PHASE_CHECK, DMIG_PHASE_PREPARE, on_prepare},
	{DMIG_MSG_START, DMIG_PHASE_PREPARE, DMIG_PHASE_STAGE, on_start},
	{DMIG_MSG_FROZEN, DMIG_PHASE_STAGE, DMIG_PHASE_FREEZE, on_frozen},
	{DMIG_MSG_STATE_END, DMIG_PHASE_FREEZE, DMIG_PHASE_STATE, on_state_end},
	/* ---- commit ---- */
	{DMIG_MSG_GO, DMIG_PHASE_READY, DMIG_PHASE_COMMIT, on_go},
	{DMIG_MSG_FINISH, DMIG_PHASE_COMMIT, DMIG_PHASE_FINISH, on_finish},
};

static int handle(struct dest *d, const struct dmig_peer_msg *msg, struct dmig_error **err)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (steps[i].type != msg->type)
			continue;
		if (steps[i].after != d->phase)
			break;
		dmig_worker_phase(d->w, steps[i].phase);
		int r = dmig_fault_phase(d->w, "before", steps[i].phase, err);
		if (r == 0)
			r = steps[i].enter(d, msg, err);
		return r < 0 ? r : dmig_fault_phase(d->w, "after", steps[i].phase, err);
	}
	return dmig_error_set(err, EPROTO, "%s came out of turn (after %s)", dmig_wire_name(msg->type),
		dmig_phase_name(d->phase));
}

static int serve(struct dest *d, struct dmig_error **err)
{
	while (d->phase != DMIG_PHASE_DONE) {
		struct dmig_peer_msg msg = {0};
		int r = dmig_peer_next(d->peer, -1, &msg, err);
		if (r == 0)
			r = handle(d, &msg, err);
		free(msg.payload);
		if (r < 0)
			return r;
	}
	dmig_worker_phase(d->w, DMIG_PHASE_DONE);
	return 0;
}

static bool has_journal(const char *id)
{
	cleanup_free char *path = dmig_asprintf("%s/%s/journal", dmig_state_dir(), id);
	return path && access(path, F_OK) == 0;
}

/* A source that is in doubt, and whose dmigrated here has ended: its journal knows. While somebody has it open, he answers. */
static int answer_from_journal(const char *id, struct dmig_conn *conn, struct dmig_error **err)
{
	struct dmig_journal *j = NULL;
	struct dmig_frame f;
	int r = dmig_journal_open(id, &j, err);
	if (r == 0)
		r = dmig_conn_recv(conn, HANDSHAKE_MS, &f, err);
	if (r == 0 && f.type != DMIG_MSG_QUERY)
		r = dmig_error_set(err, EEXIST, "migration %s has been here before", id);
	if (r == 0)
		r = dest__answer_query(conn, j, err);
	dmig_journal_free(j);
	return r;
}

/* 1: it was only a question. */
static int take_connection(struct dest *d, struct dmig_conn **ret, struct dmig_error **err)
{
	struct dmig_wire_hello hello;
	int fd = d->o->control_fd;
	if (fd < 0)
		fd = dmig_accept(d->o->listen_fd, FIRST_CONNECTION_MS, err);
	if (fd < 0)
		return dmig_error_wrap(err, "waiting for the source");
	int r = dmig_conn_server(fd, d->o->key, HANDSHAKE_MS, ret, err);
	if (r == 0)
		r = dest__hello(*ret, d->w->id[0] ? d->w->id : NULL, d->o->port, &hello, err);
	if (r == 0 && hello.role != DMIG_ROLE_CONTROL)
		r = dmig_error_set(err, EPROTO, "the first connection is not a control connection");
	if (r == 0 && has_journal(hello.id)) {
		r = answer_from_journal(hello.id, *ret, err);
		return r < 0 ? r : 1;
	}
	if (r == 0)
		r = dmig_worker_begin(d->w, hello.id, err);
	return r;
}

static int connect_source(struct dest *d, struct dmig_error **err)
{
	struct dmig_conn *conn = NULL;
	char boot[DMIG_BOOT_ID_BYTES];
	dest__boot_id(boot);
	int r = take_connection(d, &conn, err);
	if (r == 0)
		r = dmig_journal_create(d->w->id, &d->w->journal, err);
	if (r == 0)
		r = dmig_journal_add(d->w->journal, json_pack("{s:s,s:s,s:s,s:s}", "rec", "begin", "side", "destination",
							  "peer", dmig_conn_peer(conn), "boot", boot), err);
	if (r < 0 && conn && err && *err)
		dest__refuse(conn, *err); /* it cannot see our disk or our folders */
	if (r != 0) {
		dmig_conn_free(conn);
		return r;
	}
	dmig_worker_set(d->w, "peer", dmig_conn_peer(conn));
	r = dmig_peer_new(conn, DMIG_SIDE_DESTINATION, d->w->stop, &d->peer, err);
	return r < 0 ? r : dest__start_acceptor(d, err);
}

/* After the commit a failure is only told: the container runs here, and what is left to do is done from the journal. */
static void fail(struct dest *d, struct dmig_error *error)
{
	cleanup_error struct dmig_error *failed = NULL;
	log_error("%s", error->message);
	if (d->peer)
		dmig_peer_abort(d->peer, error);
	dest__unwatch_target(d);
	dest__stop_streams(d);
	if (!d->w->journal)
		return;
	bool decided = dmig_worker_is_committed(d->w) ||
		       dmig_journal_decide(d->w->journal, "refused", "resuming", &failed) == 0;
	if (d->phase < DMIG_PHASE_COMMIT) {
		dmig_notify_free(d->notify); /* a CRIU that waits for us fails its stage now */
		d->notify = NULL;
	}
	if (!decided && d->target && dmig_target_undo(d->target, &failed) < 0)
		log_error("target: %s", failed->message);
	dmig_error_freep(&failed);
	if (dmig_dest_settle(d->w->journal, &failed) < 0)
		log_error("%s: %s", decided ? "finishing alone" : "undo", failed->message);
}

/*
 * A source that has sent GO and lost us will ask. Where a listener runs it answers from the journal; a dmigrated that ssh
 * has started must do it itself.
 */
static void answer_later(struct dest *d)
{
	if (d->o->control_fd >= 0 || !d->peer || d->phase < DMIG_PHASE_READY || dmig_peer_has_aborted(d->peer))
		return;
	log_info("the source may ask who runs: answering for %d s", ANSWER_QUERIES_MS / 1000);
	dmig_dest_answer_queries(d->w, d->o, ANSWER_QUERIES_MS);
}

static void clear(struct dest *d)
{
	dest__unwatch_target(d);
	dest__stop_streams(d);
	dmig_notify_free(d->notify);
	dmig_target_free(d->target);
	dmig_links_free(d->links);
	dmig_announcer_free(d->announcer);
	dmig_container_free(d->container);
	dmig_spec_free(d->spec);
	dmig_docker_free(d->docker);
	if (d->images_dir)
		dmig_remove_tree(d->images_dir);
	for (size_t i = 0; d->binds && d->binds[i]; i++)
		free(d->binds[i]);
	free(d->binds);
	free(d->image_id);
	free(d->container_id);
	free(d->images_dir);
	free(d->tty_key);
	dmig_peer_free(d->peer); /* last: its end tells the source that we have cleaned up */
	pthread_mutex_destroy(&d->lock);
}

static json_t *report(struct dest *d, const struct dmig_error *error, enum dmig_exit code)
{
	json_t *r = dmig_report_minimal(d->w->id, error, dmig_worker_is_committed(d->w));
	json_object_set_new(r, "exit_code", json_integer(code));
	json_object_set_new(r, "side", json_string("destination"));
	if (d->container_id)
		json_object_set_new(r, "container", json_string(d->container_id));
	if (d->spec)
		json_object_set_new(r, "name", json_string(dmig_spec_container(d->spec)->name));
	return r;
}

int dmig_dest_run(struct dmig_worker *w, const struct dmig_dest_opts *o)
{
	struct dest d = {.w = w, .o = o};
	cleanup_error struct dmig_error *error = NULL;
	pthread_mutex_init(&d.lock, NULL);

	int r = connect_source(&d, &error);
	if (r == 0)
		r = serve(&d, &error);
	if (r == 1) {
		clear(&d);
		return DMIG_EXIT_OK;
	}
	if (r < 0) {
		if (!error)
			dmig_error_set(&error, -r, "%s", strerror(-r));
		dmig_error_side(error, DMIG_SIDE_DESTINATION);
		fail(&d, error);
		answer_later(&d);
	}
	enum dmig_exit code = dmig_report_exit_code(error, dmig_worker_is_committed(w));
	if (w->journal)
		dmig_report_write(w->id, report(&d, error, code));
	clear(&d);
	return code;
}
