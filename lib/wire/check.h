/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_WIRE_CHECK_H
#define DMIG_WIRE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* What a peer's text must look like; the same functions guard what we send. */

/* Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF, no NUL. */
bool dmig_wire_utf8_ok(const char *s, size_t len);
/* UTF-8 without control characters: fit for a terminal and one line of a log. */
bool dmig_wire_text_ok(const char *s, size_t len);
/* Make any text pass dmig_wire_text_ok(): what does not fit becomes '?', control characters a space. size
 * includes the NUL. */
void dmig_wire_text_clean(const char *from, char *to, size_t size);
/* Relative path below a tree's root: 1 to DMIG_WIRE_MAX_PATH bytes, components not empty, "." or "..". */
bool dmig_wire_path_ok(const char *path);
/* The same with one leading slash. */
bool dmig_wire_absolute_path_ok(const char *path);
/* DMIG_WIRE_ID_LEN lower-case hexadecimal digits, nothing behind them. */
bool dmig_wire_id_ok(const char *id);

#endif
