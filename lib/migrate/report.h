/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_REPORT_H
#define DMIG_MIGRATE_REPORT_H

/*
 * The report of one migration, as JSON (stable; dmigrate-report(5)):
 * {"id","container","name","source","destination","result":"ok"|"refused"|"failed"|"cancelled"|"unknown"|"incomplete","error": null or
 *  {"side","code","message"}, "exit_code",
 *  "phases":[{"name","side","start_ms","ms"}],   start_ms: since the start, on the source's clock
 *  "steps":[{"name","side","start_ms","ms"}],    finer: what the downtime consists of
 *  "clock_error_ms","downtime_ms","frozen_ms","total_ms",
 *  "memory":{"bytes","zero_bytes","wire_bytes","faults","fault_p50_us","fault_p99_us"},
 *  "files":{"count","bytes","wire_bytes","on_demand","hits","misses"},
 *  "image":{"reused","layers_sent","bytes"},
 *  "network":{"tcp_connections"}, "warnings":[...],"docker":{"source","destination"},"version"}
 * Numbers that do not exist in a mode are null.
 */

/* Exit codes of every command: documented, stable (dmigrate(1)). */
enum dmig_exit {
	DMIG_EXIT_OK = 0,
	DMIG_EXIT_INTERNAL = 1,
	DMIG_EXIT_USAGE = 2,
	DMIG_EXIT_REFUSED = 3,
	DMIG_EXIT_FAILED = 4,	 /* and the source runs */
	DMIG_EXIT_CANCELLED = 5,
	DMIG_EXIT_INCOMPLETE = 6, /* committed, but the drain is not complete */
	DMIG_EXIT_UNKNOWN = 7,
};

#endif
