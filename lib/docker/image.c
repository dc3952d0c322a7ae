/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

struct search {
	struct dmig_docker *d;
	const json_t *config, *layers; /* wanted */
	char *id;
	size_t have;
};

/* Look at one image; unknown ones are no mistake: they may vanish while we look. */
static int look_at(struct search *s, const char *ref, struct dmig_error **err)
{
	cleanup_json json_t *inspect = NULL;
	cleanup_error struct dmig_error *e = NULL;
	cleanup_free char *path = dmig_docker__escape(ref);
	if (!path)
		return dmig_docker__oom(err);
	int r = dmig_docker__get(s->d, &inspect, &e, "/images/%s/json", path);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return dmig_error_set(err, -r, "image %.71s: %s", ref, e && e->message ? e->message : "");
	json_t *layers = json_object_get(json_object_get(inspect, "RootFS"), "Layers");
	size_t common = dmig_docker__layers_common(s->layers, layers);
	const char *id = dmig_docker__text(inspect, "Id");
	if (common > s->have)
		s->have = common;
	if (!dmig_docker__is_digest(id) ||
		!dmig_docker__image_equal(s->config, s->layers, json_object_get(inspect, "Config"), layers))
		return 0;
	s->id = strdup(id);
	return s->id ? 0 : dmig_docker__oom(err);
}

/* The likely ones first: the same id (same store at both hosts), the same names. */
static int look_at_names(struct search *s, const struct dmig_spec *spec, struct dmig_error **err)
{
	json_t *v;
	size_t i;
	int r = look_at(s, dmig_docker__text(spec->image, "id"), err);
	json_array_foreach(json_object_get(spec->image, "names"), i, v)
	{
		if (r < 0 || s->id)
			return r;
		r = look_at(s, json_string_value(v), err);
	}
	return r;
}

static int look_at_all(struct search *s, struct dmig_error **err)
{
	cleanup_json json_t *list = NULL;
	json_t *v;
	size_t i;
	/* all: also those below a name that the old builder made, whose layers count as well. */
	int r = dmig_docker__get(s->d, &list, err, "/images/json?all=1");
	if (r < 0)
		return dmig_error_wrap(err, "list of images");
	json_array_foreach(list, i, v)
	{
		const char *id = dmig_docker__text(v, "Id");
		if (r < 0 || s->id || i >= MAX_LIST)
			return r;
		if (dmig_docker__is_digest(id))
			r = look_at(s, id, err);
	}
	return r;
}

int dmig_docker_image_find(struct dmig_docker *d, const struct dmig_spec *s, char **ret_id, size_t *ret_have,
	struct dmig_error **err)
{
	struct search search = {.d = d,
		.config = json_object_get(s->image, "config"),
		.layers = json_object_get(s->image, "diff_ids")};
	int r = look_at_names(&search, s, err);
	if (r == 0 && !search.id)
		r = look_at_all(&search, err);
	if (r < 0)
		return r;
	*ret_id = search.id;
	/* The containerd store needs every blob: without them the image could never be saved or pushed again.
	 */
	*ret_have = d->containerd_store ? 0 : search.have;
	return 0;
}

int dmig_docker_image_tag(
	struct dmig_docker *d, const char *image_id, const char *name, struct dmig_error **err)
{
	if (!dmig_docker__is_digest(image_id) || !dmig_docker__is_image_name(name) || strchr(name, '@'))
		return dmig_error_set(err, EINVAL, "not an image id and a name for it");
	/* The colon that begins a tag stands behind the last slash; another one belongs to a registry's port.
	 */
	const char *slash = strrchr(name, '/'), *colon = strchr(slash ? slash : name, ':');
	int n = colon ? (int)(colon - name) : (int)strlen(name);
	int r = dmig_docker__post(d, NULL, 0, NULL, err, "/images/%s/tag?repo=%.*s&tag=%s", image_id, n, name,
		colon ? colon + 1 : "latest");
	return r < 0 ? dmig_error_wrap(err, "tag image %.19s as %s", image_id, name) : 0;
}

int dmig_docker_image_remove(struct dmig_docker *d, const char *image, struct dmig_error **err)
{
	if (!dmig_docker__is_digest(image) && !dmig_docker__is_image_name(image))
		return dmig_error_set(err, EINVAL, "not an image id or name");
	int r = dmig_docker__delete(d, err, "/images/%s", image);
	return r < 0 ? dmig_error_wrap(err, "remove image %s", image) : 0;
}
