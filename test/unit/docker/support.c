/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

json_t *load_json(const char *name)
{
	json_error_t e;
	char *path = dmig_asprintf("%s/%s", DATA_DIR, name);
	json_t *root = json_load_file(path, 0, &e);
	if (!root)
		fail_msg("%s: %s", path, e.text);
	free(path);
	return root;
}

json_t *at(json_t *root, const char *path)
{
	char key[128];
	while (root && *path) {
		size_t n = strcspn(path, ".");
		/* Names of networks and ports have no dot here. */
		snprintf(key, sizeof(key), "%.*s", (int)n, path);
		root = json_is_array(root) ? json_array_get(root, strtoul(key, NULL, 10))
					   : json_object_get(root, key);
		path += n + (path[n] == '.');
	}
	return root;
}

const char *text_at(json_t *root, const char *path)
{
	const char *s = json_string_value(at(root, path));
	return s ? s : "(no text)";
}

static void edit(json_t *root, const char *path, const char *value)
{
	char *parent = strdup(path), *key = strrchr(parent, '.');
	json_error_t e;
	assert_non_null(parent);
	if (key)
		*key++ = '\0';
	json_t *o = key ? at(root, parent) : root;
	key = key ? key : parent;
	assert_non_null(o);
	if (!strcmp(value, "-")) {
		assert_int_equal(json_object_del(o, key), 0);
	} else {
		json_t *v = json_loads(value, JSON_DECODE_ANY, &e);
		if (!v)
			fail_msg("%s: %s", value, e.text);
		assert_int_equal(json_is_array(o) ? json_array_set_new(o, strtoul(key, NULL, 10), v)
						  : json_object_set_new(o, key, v),
			0);
	}
	free(parent);
}

json_t *edited(const char *name, ...)
{
	json_t *root = load_json(name);
	const char *path;
	va_list ap;
	va_start(ap, name);
	while ((path = va_arg(ap, const char *)))
		edit(root, path, va_arg(ap, const char *));
	va_end(ap);
	return root;
}

int parse_spec(json_t *root, struct dmig_spec **ret, struct dmig_error **err)
{
	char *text = json_dumps(root, 0);
	assert_non_null(text);
	json_decref(root);
	int r = dmig_spec_parse(text, strlen(text), ret, err);
	free(text);
	return r;
}

struct dmig_spec *spec_of(json_t *root)
{
	struct dmig_error *err = NULL;
	struct dmig_spec *s = NULL;
	assert_ok(parse_spec(root, &s, &err), err);
	return s;
}

struct dmig_container *container_of(json_t *root)
{
	struct dmig_error *err = NULL;
	struct dmig_container *c = NULL;
	char *text = json_dumps(json_object_get(root, "inspect"), 0);
	assert_non_null(text);
	json_decref(root);
	assert_ok(dmig_container_parse(text, strlen(text), &c, &err), err);
	free(text);
	return c;
}

void on_json(struct fake_docker *f, const char *path, json_t *value)
{
	char *text = json_dumps(value, 0);
	assert_non_null(text);
	fake_docker_on(f, "GET", path, 200, text);
	free(text);
	json_decref(value);
}

static json_t *image_inspect(json_t *root)
{
	return json_pack("{s:s, s:O, s:{s:O}, s:O, s:s, s:s}", "Id", text_at(root, "image.id"), "Config",
		at(root, "image.config"), "RootFS", "Layers", at(root, "image.diff_ids"), "RepoTags",
		at(root, "image.names"), "Os", "linux", "Architecture", "amd64");
}

static void fake_image(struct fake_docker *f, json_t *root)
{
	json_t *v;
	size_t i;
	char *path = dmig_asprintf("/images/%s/json", text_at(root, "image.id"));
	on_json(f, path, image_inspect(root));
	free(path);
	json_array_foreach(at(root, "image.names"), i, v)
	{
		path = dmig_asprintf("/images/%s/json", json_string_value(v));
		on_json(f, path, image_inspect(root));
		free(path);
	}
	path = dmig_asprintf("/images/%s/json", text_at(root, "inspect.Config.Image"));
	on_json(f, path, image_inspect(root));
	free(path);
}

void fake_source(struct fake_docker *f, json_t *root)
{
	json_t *v;
	size_t i;
	char *path;
	on_json(f, "/containers/rich/json", json_incref(at(root, "inspect")));
	on_json(f, "/networks", json_incref(at(root, "networks")));
	json_array_foreach(at(root, "volumes"), i, v)
	{
		path = dmig_asprintf("/volumes/%s", text_at(v, "Name"));
		on_json(f, path, json_incref(v));
		free(path);
	}
	fake_image(f, root);
	on_json(f, "/containers/json",
		json_pack("[{s:s, s:[s], s:[{s:s}]}]", "Id", text_at(root, "inspect.Id"), "Names", "/rich",
			"Mounts", "Name", "named"));
	json_decref(root);
}

void fake_destination(struct fake_docker *f, json_t *root)
{
	fake_image(f, root);
	fake_docker_on(f, "GET", "/networks", 200,
		"[{\"Name\":\"bridge\",\"Driver\":\"bridge\",\"IPAM\":{\"Config\":"
		"[{\"Subnet\":\"172.17.0.0/16\",\"Gateway\":\"172.17.0.1\"}]}}]");
	fake_docker_on(f, "GET", "/containers/json", 200, "[]");
	fake_docker_on(f, "POST", "/networks/create", 201, "{\"Id\":\"" ID_A "\"}");
	fake_docker_on(f, "POST", "/volumes/create", 201, "{}");
	fake_docker_on(f, "POST", "/containers/create", 201, "{\"Id\":\"" ID_B "\",\"Warnings\":[]}");
	fake_docker_on(f, "POST", "/networks/netx/connect", 200, NULL);
	fake_docker_on(f, "POST", "/networks/nety/connect", 200, NULL);
	json_decref(root);
}

bool has_line(char **lines, const char *text)
{
	for (; lines && *lines; lines++)
		if (strstr(*lines, text))
			return true;
	return false;
}

size_t count_lines(char **lines)
{
	size_t n = 0;
	while (lines && lines[n])
		n++;
	return n;
}
