/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_TIMELINE_H
#define DMIG_MIGRATE_TIMELINE_H

#include <jansson.h>
#include <stdint.h>

/*
 * When what happened on one side: phases (few, one after the other) and steps (finer, may overlap). Times are
 * microseconds of this host's CLOCK_MONOTONIC. Thread-safe.
 */
struct dmig_timeline;
struct dmig_timeline *dmig_timeline_new(void);
void dmig_timeline_free(struct dmig_timeline *t);
/* Starts a phase and ends the one before. */
void dmig_timeline_phase(struct dmig_timeline *t, const char *name);
void dmig_timeline_end(struct dmig_timeline *t); /* ends the last phase */
/* A finished step. end_us 0 = now. */
void dmig_timeline_step(struct dmig_timeline *t, const char *name, int64_t start_us, int64_t end_us);

/* {"phases":[{name,start_us,us}],"steps":[...]}: the form in which the destination's travels (its own clock). */
json_t *dmig_timeline_to_json(struct dmig_timeline *t);
/* Append to the report's arrays: from such an object, with side; origin_us = migration start on that object's clock. */
void dmig_timeline_report(json_t *timeline, const char *side, int64_t origin_us, json_t *phases, json_t *steps);

#endif
