/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_PROGRESS_H
#define DMIG_COMMAND_PROGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * What a person sees of the status events: a line for each finished phase and, on a terminal, one live line
 * below them with bytes, rate and time left.
 */
struct dmig_progress {
	FILE *out; /* NULL: show nothing */
	bool live; /* out is a terminal */
	int columns;
	char phase[32];
	double phase_start_ms;
	bool told_unknown;
	bool shown; /* a live line is on the terminal */
};

void dmig_progress_init(struct dmig_progress *p, FILE *out);
void dmig_progress_update(struct dmig_progress *p, const json_t *status);
/* A line for people among the progress. */
void dmig_progress_say(struct dmig_progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Take the live line away; the phase that was under way counts as finished if ok. */
void dmig_progress_end(struct dmig_progress *p, bool ok, double total_ms);

#endif
