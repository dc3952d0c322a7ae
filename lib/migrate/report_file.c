/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/report_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "migrate/control.h"
#include "migrate/journal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

static bool is_over(const char *id)
{
	struct dmig_journal *j = NULL;
	int r = dmig_journal_open(id, &j, NULL);
	if (r < 0)
		return r == -ENOENT; /* else somebody works on it */
	bool over = dmig_journal_has(j, "done") == 1;
	dmig_journal_free(j);
	return over;
}

/* Ended migrations beyond the last hundred go; one whose journal is not closed stays, whatever its age. */
static void forget_old(void)
{
	char **ids = NULL;
	if (dmig_control_list(&ids, NULL) < 0)
		return;
	for (size_t i = 0, kept = 0; ids[i]; i++) {
		cleanup_free char *dir = dmig_asprintf("%s/%s", dmig_state_dir(), ids[i]);
		cleanup_free char *report = dmig_asprintf("%s/report.json", dir ? dir : "");
		if (report && access(report, F_OK) == 0 && is_over(ids[i]) && ++kept > DMIG_REPORTS_KEPT)
			dmig_remove_tree(dir);
	}
	dmig_control_free_list(ids);
}

void dmig_report_write(const char *id, json_t *report)
{
	cleanup_error struct dmig_error *error = NULL;
	cleanup_free char *path = dmig_asprintf("%s/%s/report.json", dmig_state_dir(), id);
	cleanup_free char *text = json_dumps(report, JSON_COMPACT);
	json_decref(report);
	if (!path || !text)
		return;
	if (dmig_write_file_atomic(path, text, strlen(text), 0600, &error) < 0)
		log_error("report: %s", error->message);
	forget_old();
}

enum dmig_exit dmig_report_exit_code(const struct dmig_error *error, int committed)
{
	if (!error)
		return DMIG_EXIT_OK;
	if (error->class == DMIG_ERR_UNKNOWN)
		return DMIG_EXIT_UNKNOWN;
	if (committed)
		return DMIG_EXIT_INCOMPLETE;
	switch (error->class) {
	case DMIG_ERR_USAGE:
		return DMIG_EXIT_USAGE;
	case DMIG_ERR_REFUSED:
		return DMIG_EXIT_REFUSED;
	case DMIG_ERR_CANCELLED:
		return DMIG_EXIT_CANCELLED;
	case DMIG_ERR_INTERNAL:
		return DMIG_EXIT_INTERNAL;
	default:
		return DMIG_EXIT_FAILED;
	}
}

const char *dmig_report_result(enum dmig_exit code)
{
	static const char *const words[] = {
		"ok", "failed", "refused", "refused", "failed", "cancelled", "incomplete", "unknown"};
	return (unsigned)code < sizeof(words) / sizeof(words[0]) ? words[code] : "failed";
}

json_t *dmig_report_error(const struct dmig_error *error)
{
	if (!error)
		return json_null();
	return json_pack("{s:s,s:i,s:o}", "side", dmig_side_name(error->side), "code", error->code, "message",
		json_stringn_nocheck(error->message ? error->message : "", strlen(error->message ? error->message : "")));
}

json_t *dmig_report_minimal(const char *id, const struct dmig_error *error, int committed)
{
	enum dmig_exit code = dmig_report_exit_code(error, committed);
	return json_pack("{s:s,s:s,s:o,s:i,s:s}", "id", id, "result", dmig_report_result(code), "error",
		dmig_report_error(error), "exit_code", (int)code, "version", DMIG_VERSION);
}
