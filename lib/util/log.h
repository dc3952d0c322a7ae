/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_UTIL_LOG_H
#define DMIG_UTIL_LOG_H

#include <stdarg.h>

/*
 * The log of a side: a file, the journal or nothing. Errors travel as struct
 * dmig_error and are printed once at the top; the log is for what an engineer
 * needs afterwards. Thread-safe; one write(2) per line.
 */
enum dmig_log_level { DMIG_LOG_ERROR, DMIG_LOG_WARN, DMIG_LOG_INFO, DMIG_LOG_DEBUG };

typedef void dmig_log_fn(enum dmig_log_level level, const char *line, void *opaque);

/* Lines go to fd as "TIME LEVEL TAG: text". fd is borrowed, -1 turns it off. Call before threads start. */
void dmig_log_to_fd(int fd, enum dmig_log_level max, const char *tag);
/* Also give each line to fn (NULL: no more). Call before threads start. */
void dmig_log_to_callback(dmig_log_fn *fn, void *opaque);
void dmig_log(enum dmig_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) dmig_log(DMIG_LOG_ERROR, __VA_ARGS__)
#define log_warn(...) dmig_log(DMIG_LOG_WARN, __VA_ARGS__)
#define log_info(...) dmig_log(DMIG_LOG_INFO, __VA_ARGS__)
#define log_debug(...) dmig_log(DMIG_LOG_DEBUG, __VA_ARGS__)

#endif
