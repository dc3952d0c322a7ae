/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A longer line is cut: one line is one write, so that lines of threads and processes never mix. */
#define LINE_MAX_BYTES 2048

static int log_fd = -1;
static enum dmig_log_level log_max = DMIG_LOG_INFO;
static char log_tag[32];
static dmig_log_fn *log_fn;
static void *log_opaque;

void dmig_log_to_fd(int fd, enum dmig_log_level max, const char *tag)
{
	log_fd = fd;
	log_max = max;
	snprintf(log_tag, sizeof(log_tag), "%s", tag ? tag : "");
}

void dmig_log_to_callback(dmig_log_fn *fn, void *opaque)
{
	log_fn = fn;
	log_opaque = opaque;
}

static size_t prefix(char *line, size_t size, enum dmig_log_level level)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	size_t n = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &tm);
	return n + (size_t)snprintf(line + n, size - n, ".%06ldZ %s %s[%d]: ", ts.tv_nsec / 1000, names[level],
				    log_tag, (int)getpid());
}

void dmig_log(enum dmig_log_level level, const char *fmt, ...)
{
	if (level > log_max || (log_fd < 0 && !log_fn))
		return;
	int saved = errno;
	char line[LINE_MAX_BYTES];
	size_t n = prefix(line, sizeof(line), level), start = n;
	va_list ap;
	va_start(ap, fmt);
	int r = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (r > 0)
		n += (size_t)r < sizeof(line) - n - 1 ? (size_t)r : sizeof(line) - n - 2;
	if (log_fn)
		log_fn(level, line + start, log_opaque);
	line[n++] = '\n';
	if (log_fd >= 0 && write(log_fd, line, n) < 0)
		log_fd = -1; /* the disk is full or the pipe is gone: logging must not stop a migration */
	errno = saved;
}
