/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/bigint.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

#define MARK "dmigrate:bigint:"
#define MARK_LEN (sizeof(MARK) - 1)
/* Up to 18 digits fit into 63 bits whatever they are. */
#define SAFE_DIGITS 18

/* Length of the string literal that begins at s[0] == '"'; up to the end of the text if it is not closed. */
static size_t string_length(const char *s, size_t left)
{
	size_t i = 1;
	while (i < left && s[i] != '"')
		i += s[i] == '\\' && i + 1 < left ? 2 : 1;
	return i < left ? i + 1 : left;
}

/* Length of the integer at s, 0 if what stands there has a fraction or an exponent. */
static size_t integer_length(const char *s, size_t left)
{
	size_t i = s[0] == '-';
	while (i < left && isdigit((unsigned char)s[i]))
		i++;
	return i < left && (s[i] == '.' || s[i] == 'e' || s[i] == 'E') ? 0 : i;
}

static size_t number_length(const char *s, size_t left)
{
	size_t i = 1;
	while (i < left && (isalnum((unsigned char)s[i]) || strchr("+-.", s[i])))
		i++;
	return i;
}

struct text {
	char *buf;
	size_t len, cap;
};

static int append(struct text *t, const char *data, size_t len)
{
	if (t->cap - t->len <= len) {
		size_t cap = (t->cap + len + 1) * 2;
		char *bigger = realloc(t->buf, cap);
		if (!bigger)
			return -1;
		t->buf = bigger;
		t->cap = cap;
	}
	memcpy(t->buf + t->len, data, len);
	t->len += len;
	t->buf[t->len] = '\0';
	return 0;
}

/* One token that begins at s; returns its length, 0 without memory. */
static size_t wrap_token(struct text *out, const char *s, size_t left)
{
	size_t len = 1;
	bool wrap = false;
	if (*s == '"')
		len = string_length(s, left);
	else if (isdigit((unsigned char)*s) || *s == '-') {
		size_t digits = integer_length(s, left);
		wrap = digits > SAFE_DIGITS;
		len = wrap ? digits : number_length(s, left);
	}
	if (wrap && append(out, "\"" MARK, MARK_LEN + 1) < 0)
		return 0;
	if (append(out, s, len) < 0 || (wrap && append(out, "\"", 1) < 0))
		return 0;
	return len;
}

char *dmig_bigint_wrap(const char *json, size_t len)
{
	struct text out = {0};
	if (memmem(json, len, MARK, MARK_LEN)) {
		errno = EINVAL;
		return NULL;
	}
	int r = append(&out, "", 0);
	for (size_t i = 0; r == 0 && i < len;) {
		size_t n = wrap_token(&out, json + i, len - i);
		r = n ? 0 : -1;
		i += n;
	}
	if (r == 0)
		return out.buf;
	free(out.buf);
	errno = ENOMEM;
	return NULL;
}

char *dmig_bigint_unwrap(const char *json)
{
	struct text out = {0};
	const char *p = json, *hit;
	int r = append(&out, "", 0);
	while (r == 0 && (hit = strstr(p, "\"" MARK))) {
		const char *number = hit + 1 + MARK_LEN;
		const char *end = strchr(number, '"');
		if (!end)
			break;
		r = append(&out, p, (size_t)(hit - p));
		if (r == 0)
			r = append(&out, number, (size_t)(end - number));
		p = end + 1;
	}
	if (r == 0)
		r = append(&out, p, strlen(p));
	if (r == 0)
		return out.buf;
	free(out.buf);
	errno = ENOMEM;
	return NULL;
}
