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

static int ask_once(struct source *s, enum dmig_ran *ret, struct dmig_error **err)
{
	struct dmig_conn *conn = NULL;
	struct dmig_frame f;
	int r = source__dial(s, DMIG_ROLE_CONTROL, s->data_port, QUERY_MS, &conn, err);
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

static int decided_by_person(struct source *s, struct dmig_error **err)
{
	const char *where = dmig_worker_resolved(s->w);
	if (!where)
		return 0;
	if (!strcmp(where, "destination"))
		return 1;
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
	for (;;) {
		cleanup_error struct dmig_error *why = NULL;
		enum dmig_ran ran;
		int r = decided_by_person(s, err);
		if (r != 0)
			return r < 0 ? r : 0;
		r = ask_once(s, &ran, &why);
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
	if (r == 0 && container && !keep)
		r = dmig_docker_remove_container(docker, container, false, true, err);
	if (r == 0)
		r = dmig_journal_add(j, json_pack("{s:s,s:s}", "rec", "done", "result", "ok"), err);
	dmig_docker_free(docker);
	dmig_freezer_free(f);
	json_decref(records);
	return r;
}

int dmig_source_doubt_run(struct dmig_worker *w, const struct dmig_options *o)
{
	struct source s = {.w = w, .o = o, .init_pidfd = -1, .data_port = o->port};
	cleanup_error struct dmig_error *error = NULL;
	int r = dmig_key_parse(o->key, strlen(o->key), &s.key, &error);
	bool known = dmig_journal_has(w->journal, "committed");
	json_t *records = NULL;
	if (r == 0 && dmig_journal_read(w->journal, &records, NULL) == 0) {
		json_t *rec;
		size_t i;
		json_array_foreach(records, i, rec) {
			json_int_t port = json_integer_value(json_object_get(rec, "data_port"));
			if (port > 0 && port <= UINT16_MAX)
				s.data_port = (uint16_t)port;
		}
		json_decref(records);
	}
	if (r == 0 && !known)
		r = source__in_doubt(&s, &error);
	if (r == 0) {
		dmig_worker_committed(w);
		if (!known)
			dmig_journal_add(w->journal, json_pack("{s:s}", "rec", "committed"), NULL);
		r = dmig_source_end_frozen(w->journal, o->source_after == DMIG_SOURCE_KEEP, &error);
	} else {
		dmig_undo_run(w->journal, NULL);
	}
	enum dmig_exit code = dmig_report_exit_code(error, dmig_worker_is_committed(w));
	dmig_report_write(w->id, dmig_report_minimal(w->id, error, dmig_worker_is_committed(w)));
	dmig_key_free(s.key);
	return code;
}
