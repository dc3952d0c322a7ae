/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"
#include "wrapper.h"

/* Six bytes hold "\u0000"; the text is ours and short. */
static char *json_escape(const char *text)
{
	char *out = malloc(strlen(text) * 6 + 1), *p = out;
	for (; out && *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			p += sprintf(p, "\\%c", c);
		else if (c < 0x20)
			p += sprintf(p, "\\u%04x", c);
		else
			*p++ = *text;
	}
	if (out)
		*p = '\0';
	return out;
}

/* The last line with level "error" is what Docker shows its user. */
static void log_line(const char *log, const char *text)
{
	char now[40];
	time_t t = time(NULL);
	struct tm tm;
	strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	cleanup_free char *escaped = json_escape(text);
	cleanup_free char *line =
		escaped ? dmig_asprintf(
				  "{\"level\":\"error\",\"msg\":\"%s\",\"time\":\"%s\"}\n", escaped, now)
			: NULL;
	cleanup_fd int fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0 && line)
		dmig_write_full(fd, line, strlen(line));
}

int fail(const struct wrapper *w, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	int r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0) {
		text = NULL;
		return EXIT_FAILURE;
	}
	if (w->args.log)
		log_line(w->args.log, text);
	dprintf(STDERR_FILENO, "%s\n", text);
	return EXIT_FAILURE;
}
