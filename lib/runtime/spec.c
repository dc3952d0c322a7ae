/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/spec.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bigint.h"
#include "util/cleanup.h"
#include "util/io.h"

#define cleanup_json __attribute__((cleanup(json_decrefp))) /* jansson's own */

/* Hooks of creation: P has been through them, and a second run would attach the network a second time. */
static const char *const creation_hooks[] = {
	"prestart", "createRuntime", "createContainer", "startContainer"};

static int load(const char *json, size_t len, const char *what, json_t **ret, struct dmig_error **err)
{
	if (len > DMIG_SPEC_MAX_BYTES)
		return dmig_error_set(err, EFBIG, "%s is too large", what);
	cleanup_free char *text = dmig_bigint_wrap(json, len);
	if (!text)
		return dmig_error_set(err, errno, "%s cannot be read: %m", what);
	json_error_t e;
	json_t *root = json_loads(text, 0, &e);
	if (!root)
		return dmig_error_set(err, EINVAL, "%s: line %d: %s", what, e.line, e.text);
	if (!json_is_object(root)) {
		json_decref(root);
		return dmig_error_set(err, EINVAL, "%s is not an object", what);
	}
	*ret = root;
	return 0;
}

static int store(json_t *root, char **ret, struct dmig_error **err)
{
	cleanup_free char *text = json_dumps(root, JSON_COMPACT);
	*ret = text ? dmig_bigint_unwrap(text) : NULL;
	return *ret ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

static int set_string(json_t *object, const char *key, const char *value, struct dmig_error **err)
{
	return json_object_set_new(object, key, json_string(value)) < 0
		       ? dmig_error_set(err, EINVAL, "cannot set \"%s\" to \"%s\"", key, value)
		       : 0;
}

static int absolute_root(json_t *spec, const char *bundle, char **ret, struct dmig_error **err)
{
	const char *path = json_string_value(json_object_get(json_object_get(spec, "root"), "path"));
	if (!path || !*path)
		return dmig_error_set(err, EINVAL, "config.json has no root.path");
	*ret = *path == '/' ? strdup(path) : dmig_asprintf("%s/%s", bundle, path);
	return *ret ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

static int edit_root(json_t *spec, const char *bundle, struct dmig_error **err)
{
	cleanup_free char *path = NULL;
	int r = absolute_root(spec, bundle, &path, err);
	return r < 0 ? r : set_string(json_object_get(spec, "root"), "path", path, err);
}

static void drop_hooks(json_t *spec)
{
	json_t *hooks = json_object_get(spec, "hooks");
	for (size_t i = 0; i < sizeof(creation_hooks) / sizeof(creation_hooks[0]); i++)
		json_object_del(hooks, creation_hooks[i]);
}

static int edit_netns(json_t *spec, const char *path, struct dmig_error **err)
{
	json_t *list = json_object_get(json_object_get(spec, "linux"), "namespaces"), *ns;
	size_t i;
	json_array_foreach(list, i, ns)
	{
		const char *type = json_string_value(json_object_get(ns, "type"));
		if (type && !strcmp(type, "network"))
			return set_string(ns, "path", path, err);
	}
	return dmig_error_set(err, EINVAL, "config.json has no network namespace");
}

static bool has_option(json_t *mount, const char *option)
{
	json_t *value;
	size_t i;
	json_array_foreach(json_object_get(mount, "options"), i,
		value) if (json_is_string(value) && !strcmp(json_string_value(value), option)) return true;
	return false;
}

static bool is_bind(json_t *mount)
{
	const char *type = json_string_value(json_object_get(mount, "type"));
	return (type && !strcmp(type, "bind")) || has_option(mount, "bind") || has_option(mount, "rbind");
}

/* A relative source is relative to the bundle, as runc has it. */
static int edit_bind(json_t *mount, const struct dmig_spec_edit *edit, struct dmig_error **err)
{
	const char *source = json_string_value(json_object_get(mount, "source"));
	if (!source || !*source)
		return dmig_error_set(err, EINVAL, "config.json has a bind mount without a source");
	cleanup_free char *absolute =
		*source == '/' ? strdup(source) : dmig_asprintf("%s/%s", edit->bundle, source);
	cleanup_free char *real = absolute ? edit->resolve(absolute, edit->opaque) : NULL;
	if (!real)
		return dmig_error_set(
			err, errno, "cannot find %s, which is mounted into the container: %m", source);
	return set_string(mount, "source", real, err);
}

/* The devpts of P, where the terminal that Docker holds lives, instead of a new one. */
static int edit_devpts(json_t *mount, const char *devpts, struct dmig_error **err)
{
	json_t *options = json_pack("[s]", "bind");
	if (!options || json_object_set_new(mount, "options", options) < 0)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = set_string(mount, "type", "bind", err);
	return r < 0 ? r : set_string(mount, "source", devpts, err);
}

static int edit_mounts(json_t *spec, const struct dmig_spec_edit *edit, struct dmig_error **err)
{
	json_t *mount;
	size_t i;
	bool found = !edit->devpts;
	json_array_foreach(json_object_get(spec, "mounts"), i, mount)
	{
		const char *destination = json_string_value(json_object_get(mount, "destination"));
		int r = 0;
		if (edit->devpts && destination && !strcmp(destination, "/dev/pts")) {
			r = edit_devpts(mount, edit->devpts, err);
			found = true;
		} else if (is_bind(mount))
			r = edit_bind(mount, edit, err);
		if (r < 0)
			return r;
	}
	return found ? 0 : dmig_error_set(err, EINVAL, "config.json mounts nothing at /dev/pts");
}

int dmig_spec_for_restore(
	const char *json, size_t len, const struct dmig_spec_edit *edit, char **ret, struct dmig_error **err)
{
	cleanup_json json_t *spec = NULL;
	int r = load(json, len, "config.json", &spec, err);
	if (r == 0)
		r = edit_root(spec, edit->bundle, err);
	if (r == 0 && edit->netns_path)
		r = edit_netns(spec, edit->netns_path, err);
	if (r == 0)
		r = edit_mounts(spec, edit, err);
	if (r < 0)
		return r;
	drop_hooks(spec);
	if (edit->devpts && json_is_object(json_object_get(spec, "process")))
		json_object_set_new(json_object_get(spec, "process"), "terminal", json_false());
	return store(spec, ret, err);
}

int dmig_spec_root(const char *json, size_t len, const char *bundle, char **ret, struct dmig_error **err)
{
	cleanup_json json_t *spec = NULL;
	int r = load(json, len, "config.json", &spec, err);
	return r < 0 ? r : absolute_root(spec, bundle, ret, err);
}

int dmig_spec_state_bundle(
	const char *json, size_t len, const char *bundle, char **ret, struct dmig_error **err)
{
	static const char key[] = "bundle=";
	cleanup_json json_t *state = NULL;
	int r = load(json, len, "state.json", &state, err);
	if (r < 0)
		return r;
	json_t *labels = json_object_get(json_object_get(state, "config"), "labels"), *label;
	cleanup_free char *wanted = dmig_asprintf("%s%s", key, bundle);
	size_t i;
	if (!wanted)
		return dmig_error_set(err, ENOMEM, "out of memory");
	json_array_foreach(labels, i,
		label) if (json_is_string(label) &&
			   !strncmp(json_string_value(label), key,
				   strlen(key))) if (json_array_set_new(labels, i, json_string(wanted)) <
						     0) return dmig_error_set(err, EINVAL,
		"cannot set the bundle to %s", bundle);
	return store(state, ret, err);
}
