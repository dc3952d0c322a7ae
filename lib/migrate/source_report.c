/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/report_file.h"
#include "migrate/source_internal.h"
#include "util/io.h"

static json_t *number_or_null(int64_t from_us, int64_t to_us)
{
	return from_us && to_us ? json_real((double)(to_us - from_us) / 1000.0) : json_null();
}

static json_t *memory_json(const struct source *s)
{
	return json_pack("{s:I,s:I,s:I,s:n,s:n,s:n}", "bytes", (json_int_t)s->memory_bytes, "zero_bytes",
		(json_int_t)s->zero_bytes, "wire_bytes", (json_int_t)s->memory_stats.wire_bytes, "faults", "fault_p50_us",
		"fault_p99_us");
}

static json_t *files_json(const struct source *s)
{
	return json_pack("{s:I,s:I,s:I,s:n,s:n,s:n}", "count", (json_int_t)s->file_stats.files, "bytes",
		(json_int_t)s->file_stats.bytes, "wire_bytes", (json_int_t)s->file_stats.wire_bytes, "on_demand", "hits",
		"misses");
}

static json_t *image_json(const struct source *s)
{
	bool present = json_is_true(json_object_get(json_object_get(s->check_result, "image"), "present"));
	return json_pack("{s:b,s:I,s:I}", "reused", present, "layers_sent", (json_int_t)s->layers_sent, "bytes",
		(json_int_t)s->image_stats.bytes);
}

/* The moment when the destination's tasks went on, on our clock; RESUMED's arrival when it did not say. */
static int64_t resumed_at(const struct source *s, int64_t offset_us)
{
	json_int_t theirs = json_integer_value(json_object_get(s->destination_report, "resumed_us"));
	return theirs ? theirs - offset_us : s->resumed_us;
}

static void add_times(struct source *s, json_t *report)
{
	int64_t offset = 0, error = 0;
	json_t *phases = json_array(), *steps = json_array(), *own = dmig_timeline_to_json(s->w->timeline);
	if (s->peer)
		dmig_peer_clock(s->peer, &offset, &error);
	dmig_timeline_report(own, "source", s->start_us, phases, steps);
	dmig_timeline_report(json_object_get(s->destination_report, "timeline"), "destination", s->start_us + offset, phases,
		steps);
	json_decref(own);
	json_object_set_new(report, "phases", phases);
	json_object_set_new(report, "steps", steps);
	json_object_set_new(report, "clock_error_ms", s->peer && error < INT64_MAX ? json_real((double)error / 1000.0)
										   : json_null());
	json_object_set_new(report, "downtime_ms", number_or_null(s->freeze_us, resumed_at(s, offset)));
	json_object_set_new(report, "frozen_ms", number_or_null(s->freeze_us, s->released_us));
	json_object_set_new(report, "total_ms", number_or_null(s->start_us, dmig_now_us()));
}

static void add_names(struct source *s, json_t *report)
{
	const struct dmig_container *c = s->container;
	json_object_set_new(report, "id", json_string(s->w->id));
	json_object_set_new(report, "container", json_string(c ? c->id : s->o->container));
	json_object_set_new(report, "name", json_string(s->o->name ? s->o->name : c ? c->name : s->o->container));
	json_object_set_new(report, "source", json_string("local"));
	json_object_set_new(report, "destination", json_string(s->o->destination));
	json_object_set_new(report, "dry_run", json_boolean(s->o->dry_run));
	json_object_set_new(report, "docker", json_pack("{s:s?,s:O?}", "source",
						   s->docker ? dmig_docker_version(s->docker) : NULL, "destination",
						   json_object_get(s->check_result, "docker")));
	json_object_set_new(report, "version", json_string(DMIG_VERSION));
}

json_t *source__report(struct source *s, const struct dmig_error *error)
{
	json_t *report = json_object();
	enum dmig_exit code = dmig_report_exit_code(error, dmig_worker_is_committed(s->w));
	add_names(s, report);
	json_object_set_new(report, "result", json_string(dmig_report_result(code)));
	json_object_set_new(report, "error", dmig_report_error(error));
	json_object_set_new(report, "exit_code", json_integer(code));
	add_times(s, report);
	json_object_set_new(report, "memory", memory_json(s));
	json_object_set_new(report, "files", files_json(s));
	json_object_set_new(report, "image", image_json(s));
	json_object_set_new(report, "network", json_pack("{s:i}", "tcp_connections", (int)s->tcp_connections));
	json_object_set(report, "warnings", s->warnings);
	return report;
}
