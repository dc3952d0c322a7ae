/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/stop.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/log.h"

struct dmig_stop {
	pthread_mutex_t lock; /* guards why */
	struct dmig_error *why;
	int fd;
};

struct dmig_stop *dmig_stop_new(void)
{
	struct dmig_stop *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0) {
		free(s);
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void dmig_stop_free(struct dmig_stop *s)
{
	if (!s)
		return;
	close(s->fd);
	dmig_error_free(s->why);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void dmig_stop_now(struct dmig_stop *s, struct dmig_error *why)
{
	uint64_t one = 1;
	pthread_mutex_lock(&s->lock);
	if (!s->why && why) {
		log_warn("stop: %s", why->message);
		s->why = why;
		why = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	dmig_error_free(why);
	if (write(s->fd, &one, sizeof(one)) < 0)
		log_error("eventfd: %m");
}

void dmig_stop_printf(struct dmig_stop *s, enum dmig_error_class class, int code, const char *fmt, ...)
{
	struct dmig_error *why = NULL;
	va_list ap;
	va_start(ap, fmt);
	dmig_error_setv(&why, code, fmt, ap);
	va_end(ap);
	if (why)
		why->class = class;
	dmig_stop_now(s, why);
}

int dmig_stop_fd(const struct dmig_stop *s)
{
	return s->fd;
}

int dmig_stop_check(struct dmig_stop *s, struct dmig_error **err)
{
	int r = 0;
	pthread_mutex_lock(&s->lock);
	if (s->why) {
		bool fresh = err && !*err;
		r = dmig_error_set_class(err, s->why->class, s->why->code, "%s", s->why->message);
		if (fresh && *err)
			(*err)->side = s->why->side;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}
