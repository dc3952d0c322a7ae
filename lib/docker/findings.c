/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

#define MAX_LINE 600     /* bytes; names come from a description that a peer sent */
#define MAX_FINDINGS 200 /* lines; whoever has that many will not read the next one */

/* One line, whatever the names in it hold; a cut never leaves half a UTF-8 character. */
static void tidy(char *s)
{
	size_t n = strlen(s);
	if (n == MAX_LINE - 1) {
		while (n && ((unsigned char)s[n - 1] & 0xc0) == 0x80)
			n--;
		s[n ? n - 1 : 0] = '\0';
	}
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			*s = '?';
}

void dmig_findings_add(char ***list, const char *fmt, ...)
{
	char line[MAX_LINE];
	size_t n = 0;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	tidy(line);
	for (; *list && (*list)[n]; n++)
		if (!strcmp((*list)[n], line)) /* once is enough, say for a volume that is mounted twice */
			return;
	if (n == MAX_FINDINGS)
		return;
	char *copy = strdup(line);
	char **longer = copy ? realloc(*list, (n + 2) * sizeof(*longer)) : NULL;
	if (!longer) {
		free(copy);
		return;
	}
	longer[n] = copy;
	longer[n + 1] = NULL;
	*list = longer;
}

void dmig_findings_clear(struct dmig_findings *f)
{
	dmig_docker__strv_free(f->blockers);
	dmig_docker__strv_free(f->warnings);
	*f = (struct dmig_findings){0};
}
