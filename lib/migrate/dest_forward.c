/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "migrate/dest_internal.h"
#include "migrate/undo.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* One call of a source that asks: handshake, HELLO, QUERY. */
#define CALL_MS 5000
/* A restore that was committed comes to its end within this, or never. */
#define OUTCOME_MS 30000

static int links_up(json_t *rec, struct dmig_error **err)
{
	struct dmig_links *links = NULL;
	const char *text = json_string_value(json_object_get(rec, "links"));
	int r = text && text[0] ? dmig_links_parse(text, &links, err) : 0;
	if (r == 0 && links)
		r = dmig_links_up(links, err);
	dmig_links_free(links);
	return r == -ENODEV ? 0 : r;
}

static bool is_kind(json_t *rec, const char *kind)
{
	const char *have = json_string_value(json_object_get(rec, "rec"));
	return have && !strcmp(have, kind);
}

static int must_run(json_t *rec, struct dmig_error **err)
{
	const char *id = json_string_value(json_object_get(rec, "container"));
	if (!id || dmig_target_record_state(id) != 0)
		return 0; /* its record goes when it has come up */
	int outcome = dmig_target_outcome(id, OUTCOME_MS, err);
	if (outcome == 0)
		return dmig_error_set(err, ESRCH, "container %.12s was committed to run here, but did not come up: docker start "
						  "makes it run from its files", id);
	return outcome < 0 ? outcome : 0;
}

static int policy_back(json_t *rec, struct dmig_error **err)
{
	const char *id = json_string_value(json_object_get(rec, "container"));
	const char *policy = json_string_value(json_object_get(rec, "policy"));
	struct dmig_docker *docker = NULL;
	if (!id)
		return dmig_error_set(err, EINVAL, "the journal does not say which container it was");
	if (!policy || !policy[0] || !strcmp(policy, "no"))
		return 0;
	int r = dmig_docker_open(&docker, err);
	if (r == 0)
		r = dmig_docker_set_restart_policy(docker, id, policy,
			(int)json_integer_value(json_object_get(rec, "max")), err);
	dmig_docker_free(docker);
	return r;
}

int dmig_dest_roll_forward(struct dmig_journal *j, struct dmig_error **err)
{
	json_t *list = NULL, *rec;
	size_t i;
	int r = dmig_journal_read(j, &list, err);
	if (r < 0)
		return r;
	json_array_foreach(list, i, rec)
		if (r == 0 && is_kind(rec, "target"))
			r = must_run(rec, err);
	if (r == 0 && dmig_journal_has(j, "resumed") != 1)
		r = dmig_journal_note(j, "resumed", err);
	json_array_foreach(list, i, rec) {
		const char *kind = json_string_value(json_object_get(rec, "rec"));
		if (r == 0 && kind && !strcmp(kind, "held-links"))
			r = links_up(rec, err);
		if (r == 0 && kind && !strcmp(kind, "target"))
			r = policy_back(rec, err);
	}
	json_decref(list);
	if (r == 0)
		r = dmig_gate_open(dmig_journal_id(j), err);
	if (r == 0 && dmig_journal_has(j, "done") == 0)
		r = dmig_journal_add(j, json_pack("{s:s,s:s}", "rec", "done", "result", "ok"), err);
	return r;
}

/* Notes do not survive a crash of the host: after one their absence says nothing. */
static bool was_never_let_go(struct dmig_journal *j)
{
	json_t *list = NULL;
	char boot[DMIG_BOOT_ID_BYTES];
	if (dmig_journal_has(j, "let-go") != 0 || dmig_journal_has(j, "resumed") != 0 || dmig_journal_read(j, &list, NULL) < 0)
		return false;
	const char *then = json_string_value(json_object_get(json_array_get(list, 0), "boot"));
	dest__boot_id(boot);
	bool same = then && boot[0] && !strcmp(then, boot);
	json_decref(list);
	return same;
}

/*
 * A person may want to start it here, afresh from its files: with the record its runtime would refuse that for ever. A source
 * that asks and has not heard yet that it ran gets no answer.
 */
static void did_not_come_up(struct dmig_journal *j)
{
	json_t *list = NULL, *rec;
	size_t i;
	if (dmig_journal_add(j, json_pack("{s:s}", "rec", "lost"), NULL) < 0 || dmig_journal_read(j, &list, NULL) < 0)
		return;
	json_array_foreach(list, i, rec) {
		const char *id = is_kind(rec, "target") ? json_string_value(json_object_get(rec, "container")) : NULL;
		if (id && dmig_target_record_remove(id) < 0)
			log_error("the record of container %s cannot be removed", id);
	}
	json_decref(list);
	if (dmig_journal_has(j, "resumed") == 1) /* it has run, and the source knows or can hear that: nothing is open */
		dmig_journal_add(j, json_pack("{s:s,s:s}", "rec", "done", "result", "lost"), NULL);
}

int dmig_dest_settle(struct dmig_journal *j, struct dmig_error **err)
{
	int decided = dmig_journal_has(j, "revoked") == 1 ? 1 : dmig_journal_decide(j, "refused", "resuming", err);
	cleanup_error struct dmig_error *why = NULL;
	/* A disk that takes no decision has taken none to run either: that one is written before anything runs. */
	if (decided == 1 || (decided < 0 && dmig_journal_has(j, "resuming") == 0)) {
		if (err)
			dmig_error_freep(err);
		return dmig_undo_run(j, err);
	}
	if (decided < 0)
		return decided;
	if (dmig_journal_has(j, "lost") == 1)
		return dmig_error_set(err, ESRCH, "the container was committed to run here, but did not come up");
	int r = dmig_dest_roll_forward(j, &why);
	if (r == -ESRCH && was_never_let_go(j)) {
		log_warn("the commit is taken back: the target died before it was let go");
		r = dmig_journal_add(j, json_pack("{s:s}", "rec", "revoked"), err);
		return r < 0 ? r : dmig_undo_run(j, err);
	}
	if (r == -ESRCH)
		did_not_come_up(j);
	if (r < 0 && err && !*err)
		*err = steal_ptr(&why);
	return r < 0 ? r : 1;
}

static int answer_one(struct dmig_worker *w, const struct dmig_dest_opts *o, int fd, struct dmig_error **err)
{
	struct dmig_conn *conn = NULL;
	struct dmig_wire_hello hello;
	struct dmig_frame f;
	int r = dmig_conn_server(fd, o->key, CALL_MS, &conn, err);
	if (r == 0)
		r = dest__hello(conn, w->id, o->port, &hello, err);
	if (r == 0)
		r = dmig_conn_recv(conn, CALL_MS, &f, err);
	if (r == 0 && f.type == DMIG_MSG_QUERY)
		r = dest__answer_query(conn, w->journal, err);
	else if (r == 0)
		r = dmig_error_set(err, EPROTO, "%s where QUERY was expected", dmig_wire_name(f.type));
	dmig_conn_free(conn);
	return r;
}

int dmig_dest_answer_queries(struct dmig_worker *w, const struct dmig_dest_opts *o, int timeout_ms)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	while (dmig_now_ms() < deadline) {
		cleanup_error struct dmig_error *error = NULL;
		int fd = dmig_accept(o->listen_fd, (int)(deadline - dmig_now_ms()), &error);
		if (fd < 0)
			return fd == -ETIMEDOUT ? 0 : fd;
		if (answer_one(w, o, fd, &error) < 0)
			log_warn("query: %s", error ? error->message : "?");
	}
	return 0;
}
