/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "criu/dump.h"
#include "criu/internal.h"
#include "util/cleanup.h"
#include "util/io.h"

/* What matters stands at the end; a verbose log of a large container has many MiB. */
#define TAIL_BYTES (256u << 10)
#define MAX_ERRORS 4
#define MAX_LINE 300

/* Appends the line without its time stamp, unprintable bytes replaced: it holds paths that the container
 * chose. */
static void append(char **all, const char *line, size_t len)
{
	if (len > MAX_LINE)
		len = MAX_LINE;
	char *more = dmig_asprintf("%s%s%.*s", *all ? *all : "", *all ? "; " : "", (int)len, line);
	if (!more)
		return;
	for (char *p = more; *p; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
	free(*all);
	*all = more;
}

/* CRIU ends with this after every failure; it tells nothing. */
static bool is_summary(const char *line, size_t len)
{
	return memmem(line, len, "Dumping FAILED", 14) || memmem(line, len, "Restoring FAILED", 16);
}

char *dmig_criu__errors_in(const char *text, size_t len)
{
	const char *starts[MAX_ERRORS];
	size_t lens[MAX_ERRORS], n = 0;
	const char *end = text + len;
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t line = (size_t)((nl ? nl : end) - text);
		const char *error = memmem(text, line, "Error (", 7);
		if (error && !is_summary(text, line)) {
			starts[n % MAX_ERRORS] = error;
			lens[n++ % MAX_ERRORS] = line - (size_t)(error - text);
		}
		text += line + (nl != NULL);
	}
	char *all = NULL;
	for (size_t i = n > MAX_ERRORS ? n - MAX_ERRORS : 0; i < n; i++)
		append(&all, starts[i % MAX_ERRORS], lens[i % MAX_ERRORS]);
	return all;
}

char *dmig_criu_log_errors(const char *log_path)
{
	cleanup_fd int fd = open(log_path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	size_t len = st.st_size > (off_t)TAIL_BYTES ? TAIL_BYTES : (size_t)st.st_size;
	cleanup_free char *buf = malloc(len + 1);
	if (!buf || lseek(fd, -(off_t)len, SEEK_END) < 0)
		return NULL;
	ssize_t n = read(fd, buf, len);
	return n > 0 ? dmig_criu__errors_in(buf, (size_t)n) : NULL;
}
