/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_FORMAT_H
#define DMIG_COMMAND_FORMAT_H

#include <jansson.h>

/* Numbers for people. Each writes into a buffer of this size and returns it. */
#define DMIG_FORMAT_MAX 32
char *dmig_format_bytes(double bytes, char *buf); /* 512 B, 1.5 MB, 3.0 GB */
char *dmig_format_time(double ms, char *buf);     /* 0.4 ms, 84 ms, 3.2 s, 2 min 5 s */

/* Members that may be missing, null or of another type. Strings come cleaned of control characters; caller
 * frees. */
double dmig_json_number(const json_t *obj, const char *name, double otherwise);
char *dmig_json_text(const json_t *obj, const char *name);

#endif
