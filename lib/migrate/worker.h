/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_WORKER_H
#define DMIG_MIGRATE_WORKER_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "migrate/journal.h"
#include "migrate/phases.h"
#include "migrate/stop.h"
#include "migrate/timeline.h"
#include "wire/proto.h"

/*
 * What source and destination workers have in common: the link to their supervisor, the journal, the clock of phases,
 * progress. The worker is a child of the supervisor; if either dies the other acts: the supervisor undoes or finishes
 * what the worker began, a worker without a supervisor stops (before the commit) or finishes alone (after it).
 */
enum dmig_bytes_kind { DMIG_BYTES_IMAGE, DMIG_BYTES_FILES, DMIG_BYTES_MEMORY, DMIG_BYTES_KINDS };

struct dmig_worker {
	enum dmig_side side;
	char id[DMIG_WIRE_ID_LEN + 1];
	char run_dir[64];
	struct dmig_stop *stop;
	struct dmig_journal *journal; /* destination: NULL until HELLO */
	struct dmig_timeline *timeline;
	int supervisor; /* SOCK_SEQPACKET, JSON packets */
	pthread_t listener;
	bool listening;

	pthread_mutex_t lock; /* guards all below */
	json_t *status;
	enum dmig_phase phase;
	bool committed;
	uint64_t bytes[DMIG_BYTES_KINDS], total;
	int64_t started_us, reported_us;
};

/* supervisor: ownership of the fd passes. */
int dmig_worker_init(struct dmig_worker *w, enum dmig_side side, int supervisor, struct dmig_error **err);
void dmig_worker_clear(struct dmig_worker *w);
/* Known once the id is: run folder, journal. */
int dmig_worker_begin(struct dmig_worker *w, const char *id, struct dmig_error **err);
/* Things for status: "container", "name", "peer". */
void dmig_worker_set(struct dmig_worker *w, const char *field, const char *value);
void dmig_worker_phase(struct dmig_worker *w, enum dmig_phase phase);
void dmig_worker_committed(struct dmig_worker *w);
bool dmig_worker_is_committed(struct dmig_worker *w);
void dmig_worker_state(struct dmig_worker *w, const char *state, const char *message);
/* Absolute numbers; told to the supervisor at most 5 times a second. */
void dmig_worker_bytes(struct dmig_worker *w, enum dmig_bytes_kind kind, uint64_t done);
void dmig_worker_total(struct dmig_worker *w, uint64_t total);
/* Did a person say, by `dmigrate resolve`, that this side runs? */
bool dmig_worker_resolved_to(struct dmig_worker *w, enum dmig_side side);

#endif
