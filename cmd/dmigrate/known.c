/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "migrate/control.h"
#include "migrate/journal.h"
#include "util/cleanup.h"
#include "watch.h"

static int choose(char **ids, const char *text, char **ret_id, struct dmig_error **err)
{
	const char *found = NULL;
	if (!text)
		found = ids[0];
	for (size_t i = 0; text && *text && ids[i]; i++) {
		if (strncmp(ids[i], text, strlen(text)))
			continue;
		if (found)
			return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
				"%s is the beginning of several ids: %s, %s, ...", text, found, ids[i]);
		found = ids[i];
	}
	if (!found && text)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, ENOENT,
			"no migration %s is known here; see dmigrate status", text);
	if (!found)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, ENOENT, "no migration is known here");
	*ret_id = strdup(found);
	return *ret_id ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

int dmig_known_id(const char *text, char **ret_id, struct dmig_error **err)
{
	char **ids = NULL;
	int r = dmig_control_list(&ids, err);
	if (r < 0)
		return r;
	r = choose(ids, text, ret_id, err);
	dmig_control_free_list(ids);
	return r;
}

int dmig_known_report(const char *id, json_t **ret, struct dmig_error **err)
{
	cleanup_free char *text = NULL;
	json_error_t je;
	int r = dmig_control_report(id, &text, err);
	if (r < 0)
		return r;
	*ret = json_loads(text, 0, &je);
	return *ret ? 0
		    : dmig_error_set(err, EBADMSG, "the report of migration %s is damaged: %s", id, je.text);
}

static json_t *record_of(const json_t *list, const char *kind)
{
	size_t i;
	json_t *rec;
	json_array_foreach(list, i, rec)
	{
		const char *name = json_string_value(json_object_get(rec, "rec"));
		if (name && !strcmp(name, kind))
			return rec;
	}
	return NULL;
}

static void copy_member(json_t *to, const json_t *from, const char *name)
{
	if (json_is_string(json_object_get(from, name)))
		json_object_set(to, name, json_object_get(from, name));
}

/* No process and no report: recovery could not end it. Who runs it is unknown if GO had been sent. */
static json_t *journal_state(const char *id)
{
	static const char *const names[] = {"side", "container", "name", "peer"};
	struct dmig_journal *j = NULL;
	json_t *list = NULL, *state = NULL;
	if (dmig_journal_open(id, &j, NULL) < 0)
		return NULL;
	if (dmig_journal_read(j, &list, NULL) == 0 && !record_of(list, "done")) {
		bool doubt = record_of(list, "in-doubt") && !record_of(list, "committed");
		state = json_pack("{s:s,s:s,s:s,s:b}", "id", id, "phase", doubt ? "commit" : "recovery",
			"state", doubt ? "unknown" : "failed", "committed",
			record_of(list, "committed") != NULL);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			copy_member(state, record_of(list, "begin"), names[i]);
	}
	json_decref(list);
	dmig_journal_free(j);
	return state;
}

int dmig_known_state(const char *id, json_t **ret, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL, *e2 = NULL;
	int r = dmig_watch_request(id, "{\"op\":\"status\"}", ret, &e);
	if (r == 0) {
		json_object_del(*ret, "event");
		return 0;
	}
	/* Gone, or going right now. */
	if (r == -ENOENT || r == -ECONNRESET || r == -EPIPE) {
		/* Doubt is told by the journal, whatever recovery wrote down for the report. */
		json_t *state = journal_state(id);
		bool doubt = state && !strcmp(json_string_value(json_object_get(state, "state")), "unknown");
		r = doubt ? -ENOENT : dmig_known_report(id, ret, &e2);
		if (r == -ENOENT && state) {
			*ret = state;
			return 0;
		}
		json_decref(state);
		if (r < 0 && err && !*err)
			*err = steal_ptr(&e2);
		return r;
	}
	if (err && !*err)
		*err = steal_ptr(&e);
	return r;
}
