/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "show.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "command.h"
#include "format.h"
#include "migrate/report.h"
#include "util/cleanup.h"

static bool has_text(const json_t *obj, const char *name, const char *value)
{
	const char *s = json_string_value(json_object_get(obj, name));
	return s && !strcmp(s, value);
}

static void show_title(FILE *out, const json_t *report)
{
	cleanup_free char *id = dmig_json_text(report, "id");
	cleanup_free char *name = dmig_json_text(report, "name");
	cleanup_free char *container = dmig_json_text(report, "container");
	cleanup_free char *to = dmig_json_text(report, "destination");
	cleanup_free char *result = dmig_json_text(report, "result");
	if (!id || !name || !container || !to || !result)
		return;
	/* Before the container was found there is only what was asked for. */
	const char *what = *name ? name : container;
	if (!has_text(report, "result", "ok"))
		fprintf(out, "%s%s%s: %s", what, *to ? " to " : "", to, result);
	else if (json_is_true(json_object_get(report, "dry_run")))
		fprintf(out, "%s%s%s: nothing stands in the way", what, *to ? " to " : "", to);
	else
		fprintf(out, "%s moved to %s", what, to);
	fprintf(out, "  (migration %s)\n", id);
}

/* Time that a side spent in the phase, or -1 if it has no such phase. */
static double phase_ms(const json_t *phases, const char *name, const char *side)
{
	size_t i;
	json_t *phase;
	double sum = -1;
	json_array_foreach(phases, i, phase)
	{
		if (has_text(phase, "name", name) && has_text(phase, "side", side))
			sum = (sum < 0 ? 0 : sum) + dmig_json_number(phase, "ms", 0);
	}
	return sum;
}

static bool named_before(const json_t *phases, size_t end, const char *name)
{
	for (size_t i = 0; i < end; i++)
		if (has_text(json_array_get(phases, i), "name", name))
			return true;
	return false;
}

static void show_phases(FILE *out, const json_t *report)
{
	const json_t *phases = json_object_get(report, "phases");
	char a[DMIG_FORMAT_MAX], b[DMIG_FORMAT_MAX];
	size_t i;
	json_t *phase;

	if (json_array_size(phases) == 0)
		return;
	fprintf(out, "\n  %-12s %12s %12s\n", "phase", "source", "destination");
	json_array_foreach(phases, i, phase)
	{
		cleanup_free char *name = dmig_json_text(phase, "name");
		if (!name || named_before(phases, i, name))
			continue;
		double here = phase_ms(phases, name, "source"), there = phase_ms(phases, name, "destination");
		fprintf(out, "  %-12s %12s %12s\n", name, here < 0 ? "-" : dmig_format_time(here, a),
			there < 0 ? "-" : dmig_format_time(there, b));
	}
	fputc('\n', out);
}

static void show_time(FILE *out, const json_t *report, const char *name, const char *label)
{
	char buf[DMIG_FORMAT_MAX];
	double ms = dmig_json_number(report, name, -1);
	if (ms >= 0)
		fprintf(out, "  %-12s %s\n", label, dmig_format_time(ms, buf));
}

static void show_bytes(FILE *out, const char *label, const json_t *part, const char *more)
{
	char all[DMIG_FORMAT_MAX], wire[DMIG_FORMAT_MAX];
	double bytes = dmig_json_number(part, "bytes", 0), sent = dmig_json_number(part, "wire_bytes", 0);
	if (bytes > 0 || sent > 0)
		fprintf(out, "  %-12s %s, %s on the wire%s\n", label, dmig_format_bytes(bytes, all),
			dmig_format_bytes(sent, wire), more);
}

/* What did not happen is left out: a migration that ended early has moved nothing. */
static void show_amounts(FILE *out, const json_t *report)
{
	const json_t *files = json_object_get(report, "files"), *image = json_object_get(report, "image");
	double layers = dmig_json_number(image, "layers_sent", 0);
	double connections = dmig_json_number(json_object_get(report, "network"), "tcp_connections", 0);
	char count[DMIG_FORMAT_MAX + 16], bytes[DMIG_FORMAT_MAX];

	show_bytes(out, "memory", json_object_get(report, "memory"), "");
	snprintf(count, sizeof(count), " (%.0f files)", dmig_json_number(files, "count", 0));
	show_bytes(out, "files", files, count);
	if (json_is_true(json_object_get(image, "reused")))
		fprintf(out, "  %-12s already there\n", "image");
	else if (layers > 0)
		fprintf(out, "  %-12s %.0f layers sent, %s\n", "image", layers,
			dmig_format_bytes(dmig_json_number(image, "bytes", 0), bytes));
	if (connections > 0)
		fprintf(out, "  %-12s %.0f TCP connections\n", "network", connections);
}

static void show_table(FILE *out, const json_t *report)
{
	size_t i;
	json_t *warning;
	show_title(out, report);
	show_phases(out, report);
	show_time(out, report, "downtime_ms", "downtime");
	show_time(out, report, "frozen_ms", "frozen");
	show_time(out, report, "total_ms", "total");
	show_amounts(out, report);
	json_array_foreach(json_object_get(report, "warnings"), i, warning)
	{
		cleanup_free char *text = json_is_string(warning) ? strdup(json_string_value(warning)) : NULL;
		if (text)
			fprintf(out, "  warning: %s\n", dmig_cli_clean(text));
	}
}

static void show_error(const json_t *report)
{
	const json_t *e = json_object_get(report, "error");
	cleanup_free char *side = dmig_json_text(e, "side");
	const char *message = json_string_value(json_object_get(e, "message"));
	if (message)
		dmig_command_print_error(side, message);
}

static int exit_code_of(const json_t *report)
{
	double code = dmig_json_number(report, "exit_code", -1);
	return code >= DMIG_EXIT_OK && code <= DMIG_EXIT_UNKNOWN ? (int)code : DMIG_EXIT_INTERNAL;
}

int dmig_show_end(const json_t *report, bool json, bool quiet)
{
	int code = exit_code_of(report);
	if (code != DMIG_EXIT_OK)
		show_error(report);
	if (json)
		dmig_command_print_json(json_deep_copy(report));
	else if (!quiet)
		show_table(stdout, report);
	return code;
}
