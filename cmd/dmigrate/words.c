/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Takes ownership of word; NULL means that copying it failed. */
static void append(struct dmig_words *w, char *word)
{
	char **bigger = word ? realloc(w->v, (w->n + 2) * sizeof(*w->v)) : NULL;
	if (!bigger) {
		free(word);
		w->failed = true;
		return;
	}
	w->v = bigger;
	w->v[w->n++] = word;
	w->v[w->n] = NULL;
}

static void append_list(struct dmig_words *w, va_list ap)
{
	const char *word;
	while ((word = va_arg(ap, const char *)))
		append(w, strdup(word));
}

void dmig_words_add(struct dmig_words *w, ...)
{
	va_list ap;
	va_start(ap, w);
	append_list(w, ap);
	va_end(ap);
}

void dmig_words_split(struct dmig_words *w, const char *text)
{
	static const char blanks[] = " \t\n";
	for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
		size_t n = strcspn(text, blanks);
		append(w, strndup(text, n));
		text += n;
	}
}

char **dmig_words_take(struct dmig_words *w)
{
	char **v = w->v;
	if (w->failed) {
		dmig_words_free(v);
		v = NULL;
	}
	*w = (struct dmig_words){0};
	return v;
}

char **dmig_words_insert(char *const *argv, size_t tail, ...)
{
	struct dmig_words w = {0};
	size_t n = 0, i = 0;
	va_list ap;

	while (argv[n])
		n++;
	for (; i + tail < n; i++)
		append(&w, strdup(argv[i]));
	va_start(ap, tail);
	append_list(&w, ap);
	va_end(ap);
	for (; i < n; i++)
		append(&w, strdup(argv[i]));
	return dmig_words_take(&w);
}

void dmig_words_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}
