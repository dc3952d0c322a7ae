/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

/* A description that came from the other host: every byte may be hostile until dmig_spec_parse() has returned
 * 0. */

static void check_image(struct dmig_docker__reader *r, const json_t *image)
{
	json_t *list, *v;
	size_t i;
	if (!image)
		dmig_docker__fail(r, EINVAL, "it has no image");
	if (!dmig_docker__is_digest(dmig_docker__str(r, image, "id")))
		dmig_docker__fail(r, EINVAL, "the id of the image is not one");
	if (!dmig_docker__obj(r, image, "config"))
		dmig_docker__fail(r, EINVAL, "the image has no configuration");
	list = dmig_docker__arr(r, image, "diff_ids");
	json_array_foreach(
		list, i, v) if (!json_is_string(v) || !dmig_docker__is_digest(json_string_value(v)))
		dmig_docker__fail(r, EINVAL, "a layer of the image is not a digest");
	list = dmig_docker__arr(r, image, "names");
	json_array_foreach(
		list, i, v) if (!json_is_string(v) || !dmig_docker__is_image_name(json_string_value(v)))
		dmig_docker__fail(r, EINVAL, "a name of the image is not one");
}

static int check_lists(struct dmig_docker__reader *r, const struct dmig_spec *s)
{
	json_t *v;
	size_t i;
	json_array_foreach(s->networks, i, v) if (!r->failed && dmig_docker__network_check(v, r->err) < 0)
		r->failed = -EINVAL;
	json_array_foreach(s->volumes, i, v) if (!r->failed && dmig_docker__volume_check(v, r->err) < 0)
		r->failed = -EINVAL;
	return r->failed;
}

static json_t *named(const json_t *list, const char *name)
{
	json_t *v;
	size_t i;
	json_array_foreach(list, i, v) if (!strcmp(dmig_docker__text(v, "Name"), name)) return v;
	return NULL;
}

json_t *dmig_docker__spec_network(const struct dmig_spec *s, const char *name)
{
	return named(s->networks, name);
}

json_t *dmig_docker__spec_volume(const struct dmig_spec *s, const char *name)
{
	return named(s->volumes, name);
}

/* What the container uses must be described, or it could not be made. */
static void check_complete(struct dmig_docker__reader *r, const struct dmig_spec *s)
{
	const struct dmig_container *c = s->container;
	for (size_t i = 0; i < c->n_networks; i++)
		if (!dmig_docker__network_builtin(c->networks[i].name) &&
			!dmig_docker__spec_network(s, c->networks[i].name))
			dmig_docker__fail(r, EINVAL, "a network of the container is not described");
	for (size_t i = 0; i < c->n_mounts; i++)
		if (c->mounts[i].type == DMIG_MOUNT_VOLUME && !dmig_docker__spec_volume(s, c->mounts[i].name))
			dmig_docker__fail(r, EINVAL, "a volume of the container is not described");
}

/* Container facts that only the descriptions of networks and volumes hold. */
static void complete_container(struct dmig_docker__reader *r, struct dmig_spec *s)
{
	struct dmig_container *c = s->container;
	for (size_t i = 0; i < c->n_networks && !r->failed; i++) {
		free(c->networks[i].driver);
		c->networks[i].driver =
			dmig_docker__strdup(r, dmig_docker__spec_network(s, c->networks[i].name), "Driver");
	}
	for (size_t i = 0; i < c->n_mounts; i++) {
		struct dmig_mount *m = &c->mounts[i];
		json_t *v = m->type == DMIG_MOUNT_VOLUME ? dmig_docker__spec_volume(s, m->name) : NULL;
		if (v)
			m->shared = dmig_docker__volume_kind(dmig_docker__text(v, "Driver"),
					    json_object_get(v, "Options")) == VOLUME_SHARED;
	}
}

static int read_container(struct dmig_docker__reader *r, struct dmig_spec *s)
{
	char *text = json_dumps(s->inspect, JSON_COMPACT);
	if (!text)
		return dmig_docker__fail(r, ENOMEM, "out of memory");
	int failed = dmig_container_parse(text, strlen(text), &s->container, r->err);
	explicit_bzero(text, strlen(text));
	free(text);
	if (failed < 0)
		return r->failed = failed;
	s->config = dmig_docker__obj(r, s->inspect, "Config");
	s->host_config = dmig_docker__obj(r, s->inspect, "HostConfig");
	if (!r->failed)
		r->failed = dmig_docker__check_fields(s->config, s->host_config, r->err);
	return r->failed;
}

static int read_spec(struct dmig_spec *s, struct dmig_error **err)
{
	struct dmig_docker__reader r = {.what = "description", .err = err};
	if (!json_is_object(s->root))
		return dmig_docker__fail(&r, EINVAL, "not an object");
	if (dmig_docker__int(&r, s->root, "version", 0, 1000) != SPEC_VERSION)
		return dmig_docker__fail(&r, EPROTO, "its version is not %d", SPEC_VERSION);
	s->inspect = dmig_docker__obj(&r, s->root, "inspect");
	s->image = dmig_docker__obj(&r, s->root, "image");
	s->networks = dmig_docker__arr(&r, s->root, "networks");
	s->volumes = dmig_docker__arr(&r, s->root, "volumes");
	check_image(&r, s->image);
	if (!s->inspect)
		dmig_docker__fail(&r, EINVAL, "it has no container");
	if (r.failed || read_container(&r, s) < 0 || check_lists(&r, s) < 0)
		return r.failed;
	check_complete(&r, s);
	complete_container(&r, s);
	return r.failed;
}

int dmig_spec_parse(const char *json, size_t len, struct dmig_spec **ret, struct dmig_error **err)
{
	struct dmig_spec *s = calloc(1, sizeof(*s));
	if (!s)
		return dmig_docker__oom(err);
	int r = dmig_docker__json("description", json, len, MAX_SPEC, &s->root, err);
	if (r == 0)
		r = read_spec(s, err);
	if (r < 0) {
		dmig_spec_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void dmig_spec_free(struct dmig_spec *s)
{
	if (!s)
		return;
	dmig_container_free(s->container);
	json_decref(s->root);
	free(s);
}

const struct dmig_container *dmig_spec_container(const struct dmig_spec *s)
{
	return s->container;
}

size_t dmig_spec_layers(const struct dmig_spec *s)
{
	return json_array_size(json_object_get(s->image, "diff_ids"));
}

int dmig_spec_rename(struct dmig_spec *s, const char *name, struct dmig_error **err)
{
	if (!dmig_docker__is_name(name))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
			"not a container name: letters, digits, '_', '.' and '-' only");
	char *copy = strdup(name);
	if (!copy)
		return dmig_docker__oom(err);
	free(s->container->name);
	s->container->name = copy;
	return 0;
}
