/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 4, 0))) static int set(
	struct dmig_error **err, enum dmig_error_class class, int code, const char *fmt, va_list ap)
{
	if (code <= 0)
		code = code < 0 ? -code : EIO;
	if (!err || *err)
		return -code;
	struct dmig_error *e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->code = code;
	e->class = class;
	if (vasprintf(&e->message, fmt, ap) < 0)
		e->message = NULL;
	*err = e;
	return -code;
}

int dmig_error_setv(struct dmig_error **err, int code, const char *fmt, va_list ap)
{
	return set(err, DMIG_ERR_FAILED, code, fmt, ap);
}

int dmig_error_set(struct dmig_error **err, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = set(err, DMIG_ERR_FAILED, code, fmt, ap);
	va_end(ap);
	return r;
}

int dmig_error_set_class(struct dmig_error **err, enum dmig_error_class class, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = set(err, class, code, fmt, ap);
	va_end(ap);
	return r;
}

int dmig_error_wrap(struct dmig_error **err, const char *fmt, ...)
{
	if (!err || !*err)
		return -EIO;
	struct dmig_error *e = *err;
	char *context = NULL, *joined = NULL;
	va_list ap;
	va_start(ap, fmt);
	int r = vasprintf(&context, fmt, ap);
	va_end(ap);
	if (r >= 0 && asprintf(&joined, "%s: %s", context, e->message ? e->message : strerror(e->code)) >= 0) {
		free(e->message);
		e->message = joined;
	}
	if (r >= 0)
		free(context);
	return -e->code;
}

void dmig_error_side(struct dmig_error *err, enum dmig_side side)
{
	if (err && err->side == DMIG_SIDE_LOCAL)
		err->side = side;
}

void dmig_error_free(struct dmig_error *err)
{
	if (!err)
		return;
	free(err->message);
	free(err);
}

const char *dmig_side_name(enum dmig_side side)
{
	switch (side) {
	case DMIG_SIDE_SOURCE:
		return "source";
	case DMIG_SIDE_DESTINATION:
		return "destination";
	default:
		return "local";
	}
}
