/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_WORDS_H
#define DMIG_COMMAND_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* A growing argument vector. A failed allocation is remembered and reported by take. */
struct dmig_words {
	char **v;
	size_t n;
	bool failed;
};
void dmig_words_add(struct dmig_words *w, ...) __attribute__((sentinel)); /* strings, NULL */
void dmig_words_split(struct dmig_words *w, const char *text);            /* at blanks; no quoting */
char **dmig_words_take(struct dmig_words *w);                             /* NULL-terminated, or NULL */
/* Copy of argv with more words before its last `tail` ones, or NULL. */
char **dmig_words_insert(char *const *argv, size_t tail, ...) __attribute__((sentinel));
void dmig_words_free(char **argv);

#endif
