/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

int dmig_docker__oom(struct dmig_error **err)
{
	return dmig_error_set(err, ENOMEM, "out of memory");
}

/* The parser recurses: count brackets outside strings before it sees the text. */
static bool too_deep(const char *text, size_t len)
{
	bool in_string = false;
	size_t depth = 0;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (in_string && c == '\\')
			i++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && (c == '{' || c == '['))
			depth++;
		else if (!in_string && (c == '}' || c == ']') && depth)
			depth--;
		if (depth > MAX_DEPTH)
			return true;
	}
	return false;
}

int dmig_docker__json(
	const char *what, const char *text, size_t len, size_t max, json_t **ret, struct dmig_error **err)
{
	json_error_t e;
	if (len > max)
		return dmig_error_set(err, EFBIG, "%s: more than %zu bytes", what, max);
	if (too_deep(text, len))
		return dmig_error_set(err, EINVAL, "%s: nested more than %d levels", what, MAX_DEPTH);
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	/* The parser's message quotes the text, which may be a secret: only the place. */
	if (!root)
		return dmig_error_set(
			err, EINVAL, "%s: not JSON (line %d, column %d)", what, e.line, e.column);
	*ret = root;
	return 0;
}

int dmig_docker__fail(struct dmig_docker__reader *r, int code, const char *fmt, ...)
{
	char text[200];
	va_list ap;
	if (r->failed)
		return r->failed;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->failed = dmig_error_set(r->err, code, "%s: %s", r->what, text);
	return r->failed;
}

static json_t *member(struct dmig_docker__reader *r, const json_t *o, const char *key)
{
	json_t *v = r->failed ? NULL : json_object_get(o, key);
	return json_is_null(v) ? NULL : v;
}

const char *dmig_docker__str(struct dmig_docker__reader *r, const json_t *o, const char *key)
{
	json_t *v = member(r, o, key);
	if (!v)
		return "";
	if (!json_is_string(v))
		dmig_docker__fail(r, EINVAL, "%s is not a string", key);
	else if (json_string_length(v) > MAX_STRING)
		dmig_docker__fail(r, EINVAL, "%s is longer than %d bytes", key, MAX_STRING);
	return r->failed ? "" : json_string_value(v);
}

char *dmig_docker__strdup(struct dmig_docker__reader *r, const json_t *o, const char *key)
{
	char *s = strdup(dmig_docker__str(r, o, key));
	if (!s)
		dmig_docker__fail(r, ENOMEM, "out of memory");
	return s;
}

bool dmig_docker__bool(struct dmig_docker__reader *r, const json_t *o, const char *key)
{
	json_t *v = member(r, o, key);
	if (v && !json_is_boolean(v))
		dmig_docker__fail(r, EINVAL, "%s is not true or false", key);
	return json_is_true(v);
}

json_int_t dmig_docker__int(
	struct dmig_docker__reader *r, const json_t *o, const char *key, json_int_t min, json_int_t max)
{
	json_t *v = member(r, o, key);
	if (!v)
		return min > 0 ? min : 0;
	json_int_t n = json_integer_value(v);
	if (!json_is_integer(v))
		dmig_docker__fail(r, EINVAL, "%s is not a number", key);
	else if (n < min || n > max)
		dmig_docker__fail(r, EINVAL, "%s is out of range", key);
	return r->failed ? 0 : n;
}

json_t *dmig_docker__obj(struct dmig_docker__reader *r, const json_t *o, const char *key)
{
	json_t *v = member(r, o, key);
	if (v && !json_is_object(v))
		dmig_docker__fail(r, EINVAL, "%s is not an object", key);
	else if (v && json_object_size(v) > MAX_LIST)
		dmig_docker__fail(r, EINVAL, "%s has more than %d members", key, MAX_LIST);
	return r->failed ? NULL : v;
}

json_t *dmig_docker__arr(struct dmig_docker__reader *r, const json_t *o, const char *key)
{
	json_t *v = member(r, o, key);
	if (v && !json_is_array(v))
		dmig_docker__fail(r, EINVAL, "%s is not a list", key);
	else if (v && json_array_size(v) > MAX_LIST)
		dmig_docker__fail(r, EINVAL, "%s has more than %d entries", key, MAX_LIST);
	return r->failed ? NULL : v;
}

char **dmig_docker__strv(struct dmig_docker__reader *r, const json_t *o, const char *key)
{
	json_t *list = dmig_docker__arr(r, o, key), *v;
	char **out = calloc(json_array_size(list) + 1, sizeof(*out));
	size_t i;
	if (!out) {
		dmig_docker__fail(r, ENOMEM, "out of memory");
		return NULL;
	}
	json_array_foreach(list, i, v)
	{
		if (!json_is_string(v) || json_string_length(v) > MAX_STRING) {
			dmig_docker__fail(r, EINVAL, "%s holds something else than short strings", key);
			break;
		}
		out[i] = strdup(json_string_value(v));
		if (!out[i]) {
			dmig_docker__fail(r, ENOMEM, "out of memory");
			break;
		}
	}
	return out;
}

void dmig_docker__strv_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

void dmig_docker__put(struct dmig_docker__writer *w, json_t *o, const char *key, json_t *value)
{
	if (json_object_set_new(o, key, value) < 0)
		w->failed = true;
}

void dmig_docker__add(struct dmig_docker__writer *w, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) < 0)
		w->failed = true;
}

json_t *dmig_docker__strmap(struct dmig_docker__reader *r, const json_t *o, const char *key)
{
	json_t *map = dmig_docker__obj(r, o, key), *v;
	const char *name;
	json_object_foreach(map, name, v) if (!json_is_string(v) || json_string_length(v) > MAX_STRING)
		dmig_docker__fail(r, EINVAL, "%s holds something else than short strings", key);
	return r->failed ? NULL : map;
}
