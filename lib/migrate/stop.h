/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_STOP_H
#define DMIG_MIGRATE_STOP_H

#include "util/error.h"

/*
 * The one reason why a worker must stop what it does: cancelled by a person, peer silent, supervisor gone, a stream failed,
 * a task of the container died. The first reason wins. Thread-safe; every blocking wait of the worker watches the fd.
 */
struct dmig_stop;
struct dmig_stop *dmig_stop_new(void); /* NULL: out of memory or descriptors */
void dmig_stop_free(struct dmig_stop *s);
/* Takes ownership of why. */
void dmig_stop_now(struct dmig_stop *s, struct dmig_error *why);
void dmig_stop_printf(struct dmig_stop *s, enum dmig_error_class class, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Readable once stopped; lent. */
int dmig_stop_fd(const struct dmig_stop *s);
/* 0, or -code with a copy of the reason. */
int dmig_stop_check(struct dmig_stop *s, struct dmig_error **err);

#endif
