/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

/* The description that travels to the destination; spec.c reads it there. */

static void describe_image(
	struct dmig_docker__writer *w, const struct dmig_container *c, const json_t *inspect, json_t *out)
{
	json_t *names = json_array(), *v;
	size_t i;
	json_array_foreach(json_object_get(inspect, "RepoTags"), i, v)
	{
		const char *name = json_is_string(v) ? json_string_value(v) : "";
		if (dmig_docker__is_image_name(name)) /* "<none>:<none>" is none */
			dmig_docker__add(w, names, json_string(name));
	}
	dmig_docker__put(w, out, "names", names);
	dmig_docker__put(w, out, "id", json_string(c->image_id));
	v = json_object_get(inspect, "Config");
	dmig_docker__put(w, out, "config", json_is_object(v) ? json_incref(v) : json_object());
	v = json_object_get(json_object_get(inspect, "RootFS"), "Layers");
	dmig_docker__put(w, out, "diff_ids", json_is_array(v) ? json_incref(v) : json_array());
	dmig_docker__put(w, out, "os", json_string(dmig_docker__text(inspect, "Os")));
	dmig_docker__put(w, out, "architecture", json_string(dmig_docker__text(inspect, "Architecture")));
}

static int add_image(
	struct dmig_docker *d, const struct dmig_container *c, json_t *root, struct dmig_error **err)
{
	struct dmig_docker__writer w = {0};
	cleanup_json json_t *inspect = NULL;
	json_t *out = json_object();
	dmig_docker__put(&w, root, "image", out);
	int r = dmig_docker__get(d, &inspect, err, "/images/%s/json", c->image_id);
	if (r < 0)
		return dmig_error_wrap(err, "image of container %s", c->name);
	describe_image(&w, c, inspect, out);
	return w.failed ? dmig_docker__oom(err) : 0;
}

static int add_networks(
	struct dmig_docker *d, const struct dmig_container *c, json_t *root, struct dmig_error **err)
{
	struct dmig_docker__writer w = {0};
	cleanup_json json_t *list = NULL;
	json_t *out = json_array();
	dmig_docker__put(&w, root, "networks", out);
	int r = dmig_docker__networks(d, &list, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->n_networks; i++) {
		json_t *network = dmig_docker__network_named(list, c->networks[i].name);
		if (!network) /* disconnected and removed just now; the reader there refuses a description
				 with a hole */
			continue;
		json_object_del(network, "Containers"); /* other containers are nobody's business there */
		dmig_docker__add(&w, out, json_incref(network));
	}
	return w.failed ? dmig_docker__oom(err) : 0;
}

static int add_volumes(
	struct dmig_docker *d, const struct dmig_container *c, json_t *root, struct dmig_error **err)
{
	struct dmig_docker__writer w = {0};
	json_t *out = json_array();
	dmig_docker__put(&w, root, "volumes", out);
	for (size_t i = 0; i < c->n_mounts; i++) {
		const struct dmig_mount *m = &c->mounts[i];
		json_t *volume = NULL;
		if (!dmig_docker__is_volume_first(c, i))
			continue;
		int r = dmig_docker__volume_get(d, m->name, &volume, err);
		if (r < 0)
			return r;
		if (volume)
			dmig_docker__add(&w, out, volume);
	}
	return w.failed ? dmig_docker__oom(err) : 0;
}

/* What the application printed in its health checks stays here: large, and of no use there. */
static int add_inspect(const struct dmig_container *c, json_t *root, struct dmig_error **err)
{
	struct dmig_docker__writer w = {0};
	json_t *inspect = NULL;
	int r = dmig_docker__json("container", c->json, strlen(c->json), MAX_INSPECT, &inspect, err);
	if (r < 0)
		return r;
	dmig_docker__put(&w, root, "inspect", inspect);
	json_object_del(json_object_get(json_object_get(inspect, "State"), "Health"), "Log");
	return w.failed ? dmig_docker__oom(err) : 0;
}

int dmig_docker_describe(
	struct dmig_docker *d, const struct dmig_container *c, char **ret_json, struct dmig_error **err)
{
	struct dmig_docker__writer w = {0};
	cleanup_json json_t *root = json_object();
	dmig_docker__put(&w, root, "version", json_integer(SPEC_VERSION));
	if (w.failed)
		return dmig_docker__oom(err);
	int r = add_inspect(c, root, err);
	if (r == 0)
		r = add_image(d, c, root, err);
	if (r == 0)
		r = add_networks(d, c, root, err);
	if (r == 0)
		r = add_volumes(d, c, root, err);
	if (r < 0)
		return r;
	char *text = json_dumps(root, JSON_COMPACT);
	if (!text)
		return dmig_docker__oom(err);
	if (strlen(text) > MAX_SPEC) {
		explicit_bzero(text, strlen(text));
		free(text);
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EFBIG,
			"the description of container %s is larger than %u bytes: shorten its labels or "
			"environment",
			c->name, MAX_SPEC);
	}
	*ret_json = text;
	return 0;
}
