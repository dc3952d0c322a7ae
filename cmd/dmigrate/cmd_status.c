/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "format.h"
#include "known.h"
#include "migrate/control.h"
#include "show.h"
#include "util/cleanup.h"
#include "watch.h"

struct values {
	bool watch;
};

static const struct dmig_cli_option options[] = {
	{"watch", NULL, "follow the migration to its end and show its report", DMIG_CLI_FLAG,
		offsetof(struct values, watch), NULL},
	{0},
};

/* "phase 45 %" of one that runs, the result of one that has ended. */
static void describe_state(const json_t *state, char *buf, size_t size)
{
	cleanup_free char *phase = dmig_json_text(state, "phase");
	cleanup_free char *word = dmig_json_text(state, "state");
	cleanup_free char *result = dmig_json_text(state, "result");
	const json_t *bytes = json_object_get(state, "bytes");
	double total = dmig_json_number(bytes, "total", 0), done = dmig_json_number(bytes, "done", 0);

	if (result && *result)
		snprintf(buf, size, "%s", result);
	else if (!word || !phase)
		snprintf(buf, size, "?");
	else if (strcmp(word, "running"))
		snprintf(buf, size, "%s (%s)", word, phase);
	else if (total > 0)
		snprintf(buf, size, "%s %.0f %%", phase, 100 * (done < total ? done / total : 1));
	else
		snprintf(buf, size, "%s", phase);
}

/* A running one says which side it is and names the other; a report names both ends. */
static void print_row(const json_t *state)
{
	cleanup_free char *id = dmig_json_text(state, "id");
	cleanup_free char *container = dmig_json_text(state, "container");
	cleanup_free char *name = dmig_json_text(state, "name");
	cleanup_free char *side = dmig_json_text(state, "side");
	cleanup_free char *peer =
		dmig_json_text(state, json_object_get(state, "side") ? "peer" : "destination");
	char what[96], took[DMIG_FORMAT_MAX];
	double ms = dmig_json_number(state, "elapsed_ms", dmig_json_number(state, "total_ms", -1));

	describe_state(state, what, sizeof(what));
	printf("%-18s %-20s %-12s %-24s %-18s %s\n", id ? id : "",
		name && *name ? name
		: container   ? container
			      : "",
		side && *side ? side : "-", peer ? peer : "", what,
		ms < 0 ? "-" : dmig_format_time(ms, took));
}

/* Only in folders, not running and without a report: one that ended before it began, or one that recovery
 * could not end. */
static json_t *state_or_trace(const char *id)
{
	json_t *state = NULL;
	cleanup_error struct dmig_error *e = NULL;
	if (dmig_known_state(id, &state, &e) == 0)
		return state;
	return e && e->code == ENOENT ? NULL : json_pack("{s:s,s:s}", "id", id, "result", "unreadable");
}

static int list_all(const struct dmig_cli *cli, struct dmig_error **err)
{
	char **ids = NULL;
	json_t *list = json_array();
	size_t i;
	json_t *state;
	int r = dmig_control_list(&ids, err);

	for (size_t n = 0; ids && ids[n]; n++)
		if ((state = state_or_trace(ids[n])))
			json_array_append_new(list, state);
	dmig_control_free_list(ids);
	if (r == 0 && cli->common.json) {
		dmig_command_print_json(list);
		return DMIG_EXIT_OK;
	}
	if (r == 0 && !cli->common.quiet && json_array_size(list))
		printf("%-18s %-20s %-12s %-24s %-18s %s\n", "ID", "CONTAINER", "SIDE", "PEER", "STATE",
			"TIME");
	json_array_foreach(list, i, state)
	{
		if (!cli->common.quiet)
			print_row(state);
	}
	json_decref(list);
	return r < 0 ? r : DMIG_EXIT_OK;
}

static void show_running(const json_t *state)
{
	static const char *const names[] = {"id", "container", "name", "side", "peer", "message"};
	char what[96], buf[DMIG_FORMAT_MAX];
	describe_state(state, what, sizeof(what));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cleanup_free char *text = dmig_json_text(state, names[i]);
		if (text && *text)
			printf("%-10s %s\n", names[i], text);
	}
	printf("%-10s %s\n", "state", what);
	printf("%-10s %s\n", "committed", json_is_true(json_object_get(state, "committed")) ? "yes" : "no");
	printf("%-10s %s\n", "since", dmig_format_time(dmig_json_number(state, "elapsed_ms", 0), buf));
}

static int show_one(const struct dmig_cli *cli, const char *id, struct dmig_error **err)
{
	json_t *state = NULL;
	int r = dmig_known_state(id, &state, err);
	if (r < 0)
		return r;
	if (json_object_get(state, "result"))
		dmig_show_end(state, cli->common.json, cli->common.quiet);
	else if (cli->common.json)
		dmig_command_print_json(json_incref(state));
	else if (!cli->common.quiet)
		show_running(state);
	json_decref(state);
	return DMIG_EXIT_OK;
}

static int follow(const struct dmig_cli *cli, const char *id, struct dmig_error **err)
{
	struct dmig_watch w = {.id = id, .out = cli->common.quiet || cli->common.json ? NULL : stderr};
	json_t *report = NULL;
	cleanup_fd int signals = dmig_watch_signals(err);
	int r = signals < 0 ? signals : dmig_watch_run(&w, signals, &report, err);
	if (r == DMIG_WATCH_REPORT)
		r = dmig_show_end(report, cli->common.json, cli->common.quiet);
	else if (r > 0)
		r = DMIG_EXIT_OK;
	json_decref(report);
	json_decref(w.last);
	return r;
}

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	struct values v = {0};
	cleanup_free char *id = NULL;
	char **args;
	int r = dmig_command_begin(cli, &dmig_cmd_status, argc, argv, &v, &args, err);
	if (r)
		return r < 0 ? r : DMIG_EXIT_OK;
	if (!args[0] && !v.watch)
		return list_all(cli, err);
	r = dmig_known_id(args[0], &id, err);
	if (r < 0)
		return r;
	return v.watch ? follow(cli, id, err) : show_one(cli, id, err);
}

const struct dmig_cli_command dmig_cmd_status = {
	.name = "status",
	.summary = "Show the migrations that this host knows, or one of them",
	.args = "[ID]",
	.text = "Works on either host. The beginning of an ID is enough. With --watch and no ID the newest\n"
		"one is followed; Ctrl-C then only stops watching.\n",
	.options = options,
	.flags = DMIG_COMMAND_ROOT | DMIG_COMMAND_RECOVER,
	.run = run,
};
