/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "migrate/control.h"
#include "migrate/dest.h"
#include "migrate/doubt.h"
#include "migrate/journal.h"
#include "migrate/report_file.h"
#include "migrate/undo.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/paths.h"

struct recovery {
	void (*note)(const char *line, void *opaque);
	void *opaque;
	struct dmig_error **err;
	int first;
};

static void say(struct recovery *rc, const char *id, const char *what)
{
	cleanup_free char *line = dmig_asprintf("migration %s: %s", id, what);
	if (rc->note && line)
		rc->note(line, rc->opaque);
}

static bool is_destination(struct dmig_journal *j)
{
	json_t *list = NULL;
	if (dmig_journal_read(j, &list, NULL) < 0)
		return false;
	const char *side = json_string_value(json_object_get(json_array_get(list, 0), "side"));
	bool r = side && !strcmp(side, "destination");
	json_decref(list);
	return r;
}

static void tell_undone(struct recovery *rc, struct dmig_journal *j, int r)
{
	const char *id = dmig_journal_id(j);
	cleanup_error struct dmig_error *cause = NULL;
	enum dmig_side side = is_destination(j) ? DMIG_SIDE_DESTINATION : DMIG_SIDE_SOURCE;
	dmig_error_set(&cause, EOWNERDEAD, "dmigrated of the %s died; what it had changed was put back", dmig_side_name(side));
	dmig_error_side(cause, side);
	dmig_report_write(id, dmig_report_minimal(id, cause, 0));
	say(rc, id, r < 0 ? "its dmigrated died; not everything could be put back" : cause->message);
}

static int recover_source(struct recovery *rc, struct dmig_journal *j, struct dmig_error **err)
{
	const char *id = dmig_journal_id(j);
	if (dmig_journal_has(j, "committed") == 1) {
		int r = dmig_source_end_frozen(j, true, err);
		dmig_report_write(id, dmig_report_minimal(id, NULL, 1));
		say(rc, id, "its dmigrated died after the commit; the container runs at the destination, the stopped one is kept here");
		return r;
	}
	if (dmig_journal_has(j, "in-doubt") != 0) {
		/* No report: it is not over. The journal shows the state, and keeps it from being forgotten. */
		say(rc, id, "UNKNOWN which side runs: look at the destination, then dmigrate resolve ID --source or --destination");
		return 0;
	}
	int r = dmig_undo_run(j, err);
	tell_undone(rc, j, r);
	return r;
}

static int recover_destination(struct recovery *rc, struct dmig_journal *j, struct dmig_error **err)
{
	const char *id = dmig_journal_id(j);
	cleanup_error struct dmig_error *why = NULL;
	int runs = dmig_dest_settle(j, &why);
	bool committed = dmig_journal_has(j, "resuming") != 0 && dmig_journal_has(j, "revoked") != 1;
	if (runs == 1) {
		dmig_report_write(id, dmig_report_minimal(id, NULL, 1));
		say(rc, id, "its dmigrated died after the commit; the container runs here");
		return 0;
	}
	if (!committed) {
		tell_undone(rc, j, runs);
	} else {
		dmig_error_side(why, DMIG_SIDE_DESTINATION);
		dmig_report_write(id, dmig_report_minimal(id, why, 1));
		say(rc, id, why->message);
	}
	if (runs < 0 && err && !*err)
		*err = steal_ptr(&why);
	return runs;
}

static void recover_one(struct recovery *rc, const char *id)
{
	struct dmig_journal *j = NULL;
	cleanup_error struct dmig_error *error = NULL;
	if (dmig_journal_open(id, &j, NULL) < 0)
		return; /* its owner lives, or it has a report only */
	int r = 0;
	if (dmig_journal_has(j, "done") == 0)
		r = is_destination(j) ? recover_destination(rc, j, &error) : recover_source(rc, j, &error);
	cleanup_free char *run = dmig_asprintf("%s/%s", dmig_run_dir(), id);
	if (run && dmig_journal_has(j, "done") == 1)
		dmig_remove_tree(run);
	dmig_journal_free(j);
	if (r < 0 && rc->first == 0) {
		rc->first = r;
		if (rc->err && !*rc->err)
			*rc->err = steal_ptr(&error);
	}
}

int dmig_recover(void (*note)(const char *line, void *opaque), void *opaque, struct dmig_error **err)
{
	struct recovery rc = {note, opaque, err, 0};
	char **ids = NULL;
	int r = dmig_control_list(&ids, err);
	if (r < 0)
		return r;
	for (size_t i = 0; ids[i]; i++)
		recover_one(&rc, ids[i]);
	dmig_control_free_list(ids);
	return rc.first;
}

bool dmig_recover_is_owned(const char *id)
{
	struct dmig_journal *j = NULL;
	int r = dmig_journal_open(id, &j, NULL);
	dmig_journal_free(j);
	return r == -EBUSY;
}

static void report_resolved(const char *id, bool at_destination)
{
	cleanup_error struct dmig_error *cause = NULL;
	if (!at_destination)
		dmig_error_set(&cause, ECANCELED, "resolved by hand: the source runs");
	if (cause)
		dmig_error_side(cause, DMIG_SIDE_SOURCE);
	dmig_report_write(id, dmig_report_minimal(id, cause, at_destination));
}

int dmig_resolve_dead(const char *id, const char *run_at, struct dmig_error **err)
{
	struct dmig_journal *j = NULL;
	int r = dmig_journal_open(id, &j, err);
	if (r < 0)
		return r;
	if (dmig_journal_has(j, "in-doubt") == 0 || dmig_journal_has(j, "done") != 0)
		r = dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "migration %s is not in doubt: nothing to resolve", id);
	else if (!strcmp(run_at, "destination"))
		r = dmig_journal_add(j, json_pack("{s:s}", "rec", "committed"), err) < 0 ? -EIO
											 : dmig_source_end_frozen(j, true, err);
	else
		r = dmig_undo_run(j, err);
	cleanup_free char *run = dmig_asprintf("%s/%s", dmig_run_dir(), id);
	if (r == 0)
		report_resolved(id, !strcmp(run_at, "destination"));
	if (r == 0 && run)
		dmig_remove_tree(run);
	dmig_journal_free(j);
	return r;
}
