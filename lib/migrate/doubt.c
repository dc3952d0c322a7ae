/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/doubt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "migrate/report_file.h"
#include "migrate/source_internal.h"
#include "migrate/undo.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* Asking again who runs: a pause between two tries, so that a dead host is not flooded. */
#define QUERY_RETRY_MS 500
#define QUERY_MS 3000
/* A killed tree of tasks, and runc and Docker behind it. */
#define TASKS_END_MS 30000

static int ask_at(struct source *s, uint16_t port, enum dmig_ran *ret, struct dmig_error **err)
{
	struct dmig_conn *conn = NULL;
	struct dmig_frame f;
	int r = source__dial(s, DMIG_ROLE_CONTROL, port, QUERY_MS, &conn, err);
	if (r < 0)
		return r;
	r = dmig_conn_send(conn, DMIG_MSG_QUERY, 0, NULL, 0, NULL, 0, err);
	while (r == 0) {
		r = dmig_conn_recv(conn, QUERY_MS, &f, err);
		if (r < 0 || f.type == DMIG_MSG_QUERY_RESULT)
			break;
	}
	if (r == 0)
		r = dmig_wire_decode_query_result(f.payload, f.length, ret, err);
	dmig_conn_free(conn);
	return r;
}

/*
 * In turns: the migration's own port, which answers as long as its dmigrated lives, and the listener, which reads the
 * journal. One at a time, so that a person's decision is not kept waiting for two silent ports.
 */
static int ask_once(struct source *s, unsigned turn, enum dmig_ran *ret, struct dmig_error **err)
{
	return ask_at(s, turn % 2 ? s->o->port : s->data_port, ret, err);
}

static int decided_by_person(struct source *s, struct dmig_error **err)
{
	if (dmig_worker_resolved_to(s->w, DMIG_SIDE_DESTINATION))
		return 1;
	if (!dmig_worker_resolved_to(s->w, DMIG_SIDE_SOURCE))
		return 0;
	return dmig_error_set_class(err, DMIG_ERR_FAILED, ECANCELED, "resolved by hand: the source runs");
}

/*
 * GO was sent and nothing came back. The tasks stay frozen, and we keep asking. Only the destination's "nothing ran, and
 * nothing will" lets the source run again, or a person's word.
 */
int source__in_doubt(struct source *s, struct dmig_error **err)
{
	log_warn("no answer after GO: asking the destination");
	dmig_worker_state(s->w, "unknown",
		"no answer after GO: the container stays frozen until the destination says whether it runs "
		"(dmigrate resolve decides by hand)");
	for (unsigned turn = 0;; turn++) {
		cleanup_error struct dmig_error *why = NULL;
		enum dmig_ran ran;
		int r = decided_by_person(s, err);
		if (r != 0)
			return r < 0 ? r : 0;
		r = ask_once(s, turn, &ran, &why);
		if (r == 0 && ran == DMIG_RAN_YES)
			return 0;
		if (r == 0)
			return dmig_error_set(err, ECONNABORTED,
				"the destination stopped before anything ran there: the source goes on");
		log_info("destination does not answer: %s", why ? why->message : "?");
		struct timespec pause = {.tv_nsec = QUERY_RETRY_MS * 1000000L};
		nanosleep(&pause, NULL);
	}
}

/* ---------------------------------------------------------------- from the journal alone: the worker before us died */

static const char *find(json_t *records, const char *key, const char *value, const char *field)
{
	json_t *rec;
	size_t i;
	const char *found = NULL;
	json_array_foreach(records, i, rec) {
		const char *have = json_string_value(json_object_get(rec, key));
		if (have && !strcmp(have, value))
			found = json_string_value(json_object_get(rec, field));
	}
	return found;
}

/* Rules that cut the container's links name them by number: they do not go with the links. */
static void forget_links(json_t *records)
{
	const char *text = find(records, "what", "links", "links");
	struct dmig_links *links = NULL;
	if (text && dmig_links_parse(text, &links, NULL) == 0)
		dmig_links_up(links, NULL);
	dmig_links_free(links);
}

int dmig_source_end_frozen(struct dmig_journal *j, bool keep, struct dmig_error **err)
{
	json_t *records = NULL;
	struct dmig_freezer *f = NULL;
	struct dmig_docker *docker = NULL;
	int r = dmig_journal_read(j, &records, err);
	const char *path = find(records, "what", "freezer", "path");
	const char *container = find(records, "rec", "begin", "container");
	if (r == 0 && path && access(path, F_OK) == 0) {
		r = dmig_freezer_open_path(path, &f, err);
		if (r == 0)
			r = dmig_freezer_kill(f, err);
		if (r == 0)
			r = dmig_freezer_thaw(f, err);
	}
	if (r == 0 && container)
		r = dmig_docker_open(&docker, err);
	if (r == 0 && container)
		r = dmig_docker_wait_stopped(docker, container, TASKS_END_MS, err);
	if (r == 0)
		forget_links(records);
	if (r == 0 && container && !keep)
		r = dmig_docker_remove_container(docker, container, false, true, err);
	if (r == 0)
		r = dmig_journal_add(j, json_pack("{s:s,s:s}", "rec", "done", "result", "ok"), err);
	dmig_docker_free(docker);
	dmig_freezer_free(f);
	json_decref(records);
	return r;
}

static uint16_t data_port_of(struct dmig_journal *j, uint16_t otherwise)
{
	json_t *records = NULL, *rec;
	size_t i;
	if (dmig_journal_read(j, &records, NULL) < 0)
		return otherwise;
	json_array_foreach(records, i, rec) {
		json_int_t port = json_integer_value(json_object_get(rec, "data_port"));
		if (port > 0 && port <= UINT16_MAX)
			otherwise = (uint16_t)port;
	}
	json_decref(records);
	return otherwise;
}

/* Who runs? 0: the destination. 1: here, the destination or a person said so. Negative: cannot even ask. */
static int settle(struct dmig_worker *w, const struct dmig_options *o, struct dmig_error **err)
{
	struct source s = {.w = w, .o = o, .init_pidfd = -1, .data_port = data_port_of(w->journal, o->port)};
	if (dmig_journal_has(w->journal, "committed") == 1)
		return 0;
	int r = dmig_key_parse(o->key, strlen(o->key), &s.key, err);
	if (r < 0)
		return r;
	r = source__in_doubt(&s, err);
	dmig_key_free(s.key);
	if (r == 0)
		dmig_journal_add(w->journal, json_pack("{s:s}", "rec", "committed"), NULL);
	return r < 0 ? 1 : 0;
}

int dmig_source_doubt_run(struct dmig_worker *w, const struct dmig_options *o)
{
	cleanup_error struct dmig_error *error = NULL, *failed = NULL;
	int r = settle(w, o, &error);
	if (r == 0) {
		dmig_worker_committed(w);
		/* The destination has not said that its files are on disk: the stopped container stays. */
		r = dmig_source_end_frozen(w->journal, true, &error);
	} else if (r == 1) {
		r = dmig_undo_run(w->journal, &failed);
	} else if (error) {
		error->class = DMIG_ERR_UNKNOWN;
	}
	dmig_error_side(error, DMIG_SIDE_SOURCE);
	if (r < 0)
		log_error("%s", failed ? failed->message : error ? error->message : strerror(-r));
	enum dmig_exit code = dmig_report_exit_code(error, dmig_worker_is_committed(w));
	dmig_report_write(w->id, dmig_report_minimal(w->id, error, dmig_worker_is_committed(w)));
	return code;
}
