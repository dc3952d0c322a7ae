/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_CONTROL_H
#define DMIG_MIGRATE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "util/error.h"

/*
 * How commands talk to the dmigrated of a migration on this host: /run/dmigrate/ID/control.sock, SOCK_SEQPACKET, root only,
 * one JSON object per packet (at most 64 KiB).
 *
 * Requests:  {"op":"status"} -> one {"event":"status",...}
 *            {"op":"watch"}  -> {"event":"status",...} now and at every change (phase, at most 5 a second for bytes), then
 *                               {"event":"end","report":{...}} and end of file
 *            {"op":"cancel"} -> {"event":"ok"} | {"event":"error","message":...}
 *            {"op":"resolve","run_at":"source"|"destination"} -> the same
 *
 * status: {"event":"status","id","side":"source"|"destination","container","name","peer","phase","state":"running"|"unknown"|
 *          "done"|"failed"|"cancelled","committed":bool,"started_ms","elapsed_ms",
 *          "bytes":{"image","files","memory","total","done","rate"},"eta_ms" or null,"message": latest line for people}
 * report: see report.h and dmigrate-report(5).
 *
 * A migration that has ended has no socket; its report is /var/lib/dmigrate/ID/report.json.
 */
#define DMIG_CONTROL_MAX_BYTES 65536

/* Connect to the dmigrated of migration id; -ENOENT if none runs here. */
int dmig_control_connect(const char *id, int *ret_fd, struct dmig_error **err);
/* Send one request, or receive one event (caller frees; NULL at end of file). */
int dmig_control_send(int fd, const char *json, struct dmig_error **err);
int dmig_control_recv(int fd, int timeout_ms, char **ret_json, struct dmig_error **err);

/* Ids of migrations that have traces here (running, or with a stored report), newest first. NULL-terminated; free with dmig_control_free_list. */
int dmig_control_list(char ***ret_ids, struct dmig_error **err);
void dmig_control_free_list(char **ids);
/* Stored report as JSON text, -ENOENT if there is none. Caller frees. */
int dmig_control_report(const char *id, char **ret_json, struct dmig_error **err);

/*
 * Put right what a crash left: for each journal without a living owner, run its undo (source: tasks run, network up, restart
 * policy back; destination: nothing of ours left) or finish what was committed. Every command calls it first; the
 * boot-time unit too. Lines for people go to note (may be NULL).
 */
int dmig_recover(void (*note)(const char *line, void *opaque), void *opaque, struct dmig_error **err);

/* Whether a dmigrated of this migration lives: a worker that lost its supervisor puts things right alone. */
bool dmig_recover_is_owned(const char *id);

/* `dmigrate resolve` for a migration in doubt whose dmigrated is dead as well. run_at: "source" or "destination". */
int dmig_resolve_dead(const char *id, const char *run_at, struct dmig_error **err);

#endif
