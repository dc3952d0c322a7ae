/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "docker/internal.h"

/*
 * Image ids differ between Docker's two stores (hash of the configuration, or of the manifest), and what
 * inspect shows of a configuration differs between versions: empty members come and go, and older ones add
 * members that belong to containers. So two images are compared by what starting a container from them would
 * use.
 */

/* Not part of an image: filled by old engines with defaults, or with traces of the build. */
static bool ignored(const char *key)
{
	static const char *const keys[] = {"Hostname", "Domainname", "AttachStdin", "AttachStdout",
		"AttachStderr", "Tty", "OpenStdin", "StdinOnce", "Image", "NetworkDisabled", "MacAddress",
		"StopTimeout", "ArgsEscaped"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}

static bool is_empty(const json_t *v)
{
	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_NULL:
	case JSON_FALSE:
		return true;
	case JSON_STRING:
		return json_string_length(v) == 0;
	case JSON_INTEGER:
		return json_integer_value(v) == 0;
	case JSON_ARRAY:
		return json_array_size(v) == 0;
	case JSON_OBJECT:
		return json_object_size(v) == 0;
	default:
		return false;
	}
}

/*
 * Every member of a that says something says the same in b. Only Healthcheck is looked into: its empty
 * members mean nothing, while an empty value of a label or a volume does.
 */
static bool covered(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *v;
	json_object_foreach((json_t *)a, key, v)
	{
		json_t *other = json_object_get(b, key);
		if (ignored(key) || (is_empty(v) && is_empty(other)) || json_equal(v, other))
			continue;
		bool look = !strcmp(key, "Healthcheck") && json_is_object(v) && json_is_object(other);
		if (!look || !covered(v, other) || !covered(other, v))
			return false;
	}
	return true;
}

size_t dmig_docker__layers_common(const json_t *layers_a, const json_t *layers_b)
{
	size_t n = 0, max = json_array_size(layers_a);
	while (n < max && json_is_string(json_array_get(layers_a, n)) &&
		json_equal(json_array_get(layers_a, n), json_array_get(layers_b, n)))
		n++;
	return n;
}

bool dmig_docker__image_equal(
	const json_t *config_a, const json_t *layers_a, const json_t *config_b, const json_t *layers_b)
{
	size_t n = json_array_size(layers_a);
	return n == json_array_size(layers_b) && dmig_docker__layers_common(layers_a, layers_b) == n &&
	       covered(config_a, config_b) && covered(config_b, config_a);
}
