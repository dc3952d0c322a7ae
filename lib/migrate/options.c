/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/options.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "util/cleanup.h"
#include "util/io.h"
#include "wire/proto.h"

static const char *const source_words[] = {"remove", "keep", NULL};
static const char *const tcp_words[] = {"established", "close", NULL};
static const char *const exec_words[] = {"wait", "drop", "refuse", NULL};
static const char *const volumes_words[] = {"all", "none", NULL};
static const char *const bind_words[] = {"refuse", "share", "copy", NULL};

/* More than this of anything in a request is a mistake. */
#define MAX_LIST 256

int dmig_options_init(struct dmig_options *o, struct dmig_error **err)
{
	unsigned char raw[DMIG_WIRE_ID_LEN / 2];
	*o = (struct dmig_options){.exec_wait_ms = DMIG_OPTIONS_EXEC_WAIT_MS};
	if (getrandom(raw, sizeof(raw), 0) != sizeof(raw))
		return dmig_error_set(err, errno, "no random numbers: %m");
	o->id = calloc(1, DMIG_WIRE_ID_LEN + 1);
	if (!o->id)
		return dmig_error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < sizeof(raw); i++)
		sprintf(o->id + 2 * i, "%02x", raw[i]);
	return 0;
}

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

void dmig_options_clear(struct dmig_options *o)
{
	free(o->id);
	free(o->container);
	free(o->name);
	free(o->destination);
	free(o->host);
	free_list(o->tunnel);
	if (o->key)
		explicit_bzero(o->key, strlen(o->key));
	free(o->key);
	for (size_t i = 0; i < o->n_binds; i++)
		free(o->binds[i].path);
	free(o->binds);
	memset(o, 0, sizeof(*o));
}

static void put_string(json_t *obj, const char *name, const char *value)
{
	if (value)
		json_object_set_new(obj, name, json_string(value));
}

static json_t *binds_to_json(const struct dmig_options *o)
{
	json_t *list = json_array();
	for (size_t i = 0; i < o->n_binds; i++)
		json_array_append_new(list, json_pack("{s:s,s:s}", "path", o->binds[i].path, "mode",
					    bind_words[o->binds[i].mode]));
	return list;
}

char *dmig_options_to_json(const struct dmig_options *o)
{
	json_t *obj = json_pack("{s:i,s:s,s:s,s:s,s:s,s:i,s:b,s:i,s:b}", "port", o->port, "source",
		source_words[o->source_after], "tcp", tcp_words[o->tcp], "exec", exec_words[o->exec], "volumes",
		volumes_words[o->volumes], "exec_wait_ms", o->exec_wait_ms, "dry_run", o->dry_run, "timeout_ms",
		o->timeout_ms, "verbose", o->verbose);
	if (!obj)
		return NULL;
	put_string(obj, "id", o->id);
	put_string(obj, "container", o->container);
	put_string(obj, "name", o->name);
	put_string(obj, "destination", o->destination);
	put_string(obj, "host", o->host);
	put_string(obj, "key", o->key);
	if (o->tunnel) {
		json_t *list = json_array();
		for (size_t i = 0; o->tunnel[i]; i++)
			json_array_append_new(list, json_string(o->tunnel[i]));
		json_object_set_new(obj, "tunnel", list);
	}
	json_object_set_new(obj, "binds", binds_to_json(o));
	char *text = json_dumps(obj, JSON_COMPACT);
	json_decref(obj);
	return text;
}

static int get_word(json_t *obj, const char *name, const char *const *words, struct dmig_error **err)
{
	const char *value = json_string_value(json_object_get(obj, name));
	for (int i = 0; value && words[i]; i++)
		if (!strcmp(words[i], value))
			return i;
	return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "request: \"%s\" is missing or not a known word", name);
}

static int get_string(json_t *obj, const char *name, bool required, char **ret, struct dmig_error **err)
{
	json_t *v = json_object_get(obj, name);
	if (!v && !required)
		return 0;
	if (!json_is_string(v))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "request: \"%s\" is not a string", name);
	*ret = strdup(json_string_value(v));
	return *ret ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

static int get_number(json_t *obj, const char *name, json_int_t max, json_int_t *ret, struct dmig_error **err)
{
	json_t *v = json_object_get(obj, name);
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > max)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "request: \"%s\" is not a number up to %lld", name,
			(long long)max);
	*ret = json_integer_value(v);
	return 0;
}

static int get_strings(json_t *list, char ***ret, struct dmig_error **err)
{
	size_t n = json_array_size(list);
	if (!list)
		return 0;
	if (!json_is_array(list) || n == 0 || n > MAX_LIST)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "request: bad list");
	char **out = calloc(n + 1, sizeof(*out));
	if (!out)
		return dmig_error_set(err, ENOMEM, "out of memory");
	*ret = out;
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(list, i));
		if (!s || !(out[i] = strdup(s)))
			return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "request: bad list");
	}
	return 0;
}

static int get_binds(json_t *list, struct dmig_options *o, struct dmig_error **err)
{
	size_t n = json_array_size(list);
	if (n > MAX_LIST)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "request: more than %d bind choices", MAX_LIST);
	o->binds = calloc(n + 1, sizeof(*o->binds));
	if (!o->binds)
		return dmig_error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		json_t *b = json_array_get(list, i);
		int mode = get_word(b, "mode", bind_words, err);
		if (mode < 0)
			return mode;
		int r = get_string(b, "path", true, &o->binds[i].path, err);
		o->n_binds = i + 1;
		if (r < 0)
			return r;
		o->binds[i].mode = (enum dmig_bind_mode)mode;
	}
	return 0;
}

static int get_words(json_t *obj, struct dmig_options *o, struct dmig_error **err)
{
	int r;
	if ((r = get_word(obj, "source", source_words, err)) < 0)
		return r;
	o->source_after = (enum dmig_source_after)r;
	if ((r = get_word(obj, "tcp", tcp_words, err)) < 0)
		return r;
	o->tcp = (enum dmig_tcp_mode)r;
	if ((r = get_word(obj, "exec", exec_words, err)) < 0)
		return r;
	o->exec = (enum dmig_exec_mode)r;
	if ((r = get_word(obj, "volumes", volumes_words, err)) < 0)
		return r;
	o->volumes = (enum dmig_volumes_mode)r;
	return 0;
}

static bool is_id(const char *s)
{
	return strlen(s) == DMIG_WIRE_ID_LEN && strspn(s, "0123456789abcdef") == DMIG_WIRE_ID_LEN;
}

static int from_object(json_t *obj, struct dmig_options *o, struct dmig_error **err)
{
	json_int_t port, wait, timeout;
	int r = get_words(obj, o, err);
	if (r < 0 || (r = get_string(obj, "id", true, &o->id, err)) < 0 ||
		(r = get_string(obj, "container", true, &o->container, err)) < 0 ||
		(r = get_string(obj, "name", false, &o->name, err)) < 0 ||
		(r = get_string(obj, "destination", true, &o->destination, err)) < 0 ||
		(r = get_string(obj, "host", true, &o->host, err)) < 0 ||
		(r = get_string(obj, "key", true, &o->key, err)) < 0 ||
		(r = get_strings(json_object_get(obj, "tunnel"), &o->tunnel, err)) < 0 ||
		(r = get_binds(json_object_get(obj, "binds"), o, err)) < 0 ||
		(r = get_number(obj, "port", 65535, &port, err)) < 0 ||
		(r = get_number(obj, "exec_wait_ms", 3600 * 1000, &wait, err)) < 0 ||
		(r = get_number(obj, "timeout_ms", 7 * 24 * 3600 * 1000LL, &timeout, err)) < 0)
		return r;
	if (!is_id(o->id))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "request: bad id");
	o->port = (uint16_t)port;
	o->exec_wait_ms = (int)wait;
	o->timeout_ms = (int)timeout;
	o->dry_run = json_is_true(json_object_get(obj, "dry_run"));
	o->verbose = json_is_true(json_object_get(obj, "verbose"));
	return 0;
}

int dmig_options_from_json(const char *json, size_t len, struct dmig_options *ret, struct dmig_error **err)
{
	json_error_t je;
	memset(ret, 0, sizeof(*ret));
	json_t *obj = json_loadb(json, len, JSON_REJECT_DUPLICATES, &je);
	if (!json_is_object(obj)) {
		json_decref(obj);
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "request: %s", obj ? "not an object" : je.text);
	}
	int r = from_object(obj, ret, err);
	json_decref(obj);
	if (r < 0)
		dmig_options_clear(ret);
	return r;
}
