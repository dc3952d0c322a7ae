/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_UTIL_ERROR_H
#define DMIG_UTIL_ERROR_H

#include <stdarg.h>

/*
 * Errors rise, the top prints.
 *
 * A function that can fail takes `struct dmig_error **err` last and returns 0
 * (or a useful non-negative value) or a negative errno. It leaves *err alone on
 * success and fills it exactly once on failure. err may be NULL: then only the
 * number is reported. On the way up a caller adds what it was doing with
 * dmig_error_wrap(). Nothing in lib/ prints an error or exits.
 *
 * Thread rules: an error object belongs to one thread at a time.
 */
enum dmig_side {
	DMIG_SIDE_LOCAL = 0, /* no migration involved, or not known yet */
	DMIG_SIDE_SOURCE,
	DMIG_SIDE_DESTINATION,
};

/* What the user should be told beside the errno; decides the exit code at the top. */
enum dmig_error_class {
	DMIG_ERR_FAILED = 0, /* it went wrong */
	DMIG_ERR_USAGE,	     /* bad arguments or input */
	DMIG_ERR_REFUSED,    /* a check says that this cannot work */
	DMIG_ERR_CANCELLED,  /* somebody asked us to stop */
	DMIG_ERR_UNKNOWN,    /* after GO without an answer: nobody knows who runs */
	DMIG_ERR_INTERNAL,   /* our own mistake */
};

struct dmig_error {
	int code; /* positive errno */
	enum dmig_side side;
	enum dmig_error_class class;
	char *message; /* one line, no trailing full stop or newline */
};

/* Fill *err (if err is not NULL and *err is NULL) and return -code. code 0 is taken as EIO. */
int dmig_error_set(struct dmig_error **err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int dmig_error_setv(struct dmig_error **err, int code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
int dmig_error_set_class(struct dmig_error **err, enum dmig_error_class class, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* "context: old message". Returns -code of *err, so `return dmig_error_wrap(err, ...)` works; -EIO if there is none. */
int dmig_error_wrap(struct dmig_error **err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Say where it happened, unless something closer already did. */
void dmig_error_side(struct dmig_error *err, enum dmig_side side);

void dmig_error_free(struct dmig_error *err);
const char *dmig_side_name(enum dmig_side side);

static inline void dmig_error_freep(struct dmig_error **err)
{
	dmig_error_free(*err);
	*err = (void *)0;
}
#define cleanup_error __attribute__((cleanup(dmig_error_freep)))

#endif
