/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/timeline.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/io.h"

/* A migration has ten phases and some dozens of steps; what does not fit is dropped, never an error. */
#define MAX_SPANS 256
#define NAME_BYTES 48

struct span {
	char name[NAME_BYTES];
	int64_t start_us, end_us; /* end 0: open */
};

struct spans {
	struct span list[MAX_SPANS];
	size_t n;
};

struct dmig_timeline {
	pthread_mutex_t lock; /* guards all below */
	struct spans phases, steps;
};

struct dmig_timeline *dmig_timeline_new(void)
{
	struct dmig_timeline *t = calloc(1, sizeof(*t));
	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

void dmig_timeline_free(struct dmig_timeline *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static void add(struct spans *s, const char *name, int64_t start, int64_t end)
{
	if (s->n == MAX_SPANS)
		return;
	struct span *span = &s->list[s->n++];
	snprintf(span->name, sizeof(span->name), "%s", name);
	span->start_us = start;
	span->end_us = end;
}

static void end_last(struct spans *s, int64_t now)
{
	if (s->n && !s->list[s->n - 1].end_us)
		s->list[s->n - 1].end_us = now;
}

void dmig_timeline_phase(struct dmig_timeline *t, const char *name)
{
	int64_t now = dmig_now_us();
	pthread_mutex_lock(&t->lock);
	end_last(&t->phases, now);
	add(&t->phases, name, now, 0);
	pthread_mutex_unlock(&t->lock);
}

void dmig_timeline_end(struct dmig_timeline *t)
{
	pthread_mutex_lock(&t->lock);
	end_last(&t->phases, dmig_now_us());
	pthread_mutex_unlock(&t->lock);
}

void dmig_timeline_step(struct dmig_timeline *t, const char *name, int64_t start_us, int64_t end_us)
{
	pthread_mutex_lock(&t->lock);
	add(&t->steps, name, start_us, end_us ? end_us : dmig_now_us());
	pthread_mutex_unlock(&t->lock);
}

static json_t *spans_to_json(const struct spans *s, int64_t now)
{
	json_t *list = json_array();
	for (size_t i = 0; i < s->n; i++) {
		int64_t end = s->list[i].end_us ? s->list[i].end_us : now;
		json_array_append_new(list, json_pack("{s:s,s:I,s:I}", "name", s->list[i].name, "start_us",
					    (json_int_t)s->list[i].start_us, "us", (json_int_t)(end - s->list[i].start_us)));
	}
	return list;
}

json_t *dmig_timeline_to_json(struct dmig_timeline *t)
{
	pthread_mutex_lock(&t->lock);
	json_t *obj = json_pack("{s:o,s:o}", "phases", spans_to_json(&t->phases, dmig_now_us()), "steps",
		spans_to_json(&t->steps, dmig_now_us()));
	pthread_mutex_unlock(&t->lock);
	return obj;
}

/* The object may come from the peer: what is not of the right form is left out. */
static void report(json_t *from, const char *side, int64_t origin_us, json_t *to)
{
	for (size_t i = 0; i < json_array_size(from) && i < MAX_SPANS; i++) {
		const char *name;
		json_int_t start, us;
		if (json_unpack(json_array_get(from, i), "{s:s,s:I,s:I}", "name", &name, "start_us", &start, "us", &us) < 0)
			continue;
		json_array_append_new(to, json_pack("{s:s,s:s,s:f,s:f}", "name", name, "side", side, "start_ms",
					  (double)(start - origin_us) / 1000.0, "ms", (double)us / 1000.0));
	}
}

void dmig_timeline_report(json_t *timeline, const char *side, int64_t origin_us, json_t *phases, json_t *steps)
{
	report(json_object_get(timeline, "phases"), side, origin_us, phases);
	report(json_object_get(timeline, "steps"), side, origin_us, steps);
}
