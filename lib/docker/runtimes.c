/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

/* The runtimes that the engine knows, and who uses one of them. */

bool dmig_docker_has_runtime(const struct dmig_docker *d, const char *name)
{
	return json_object_get(d->runtimes, name) != NULL;
}

const char *dmig_docker_runtime_path(const struct dmig_docker *d, const char *name)
{
	json_t *runtime = json_object_get(d->runtimes, name);
	return runtime ? dmig_docker__text(runtime, "path") : NULL;
}

const char *dmig_docker_socket(const struct dmig_docker *d)
{
	return d->socket;
}

/* 1: it uses it, *ret_name is its name (caller frees). */
static int uses(struct dmig_docker *d, const char *id, const char *runtime, char **ret_name, struct dmig_error **err)
{
	cleanup_json json_t *inspect = NULL;
	cleanup_error struct dmig_error *e = NULL;
	if (!dmig_docker__is_id(id))
		return dmig_error_set(err, EPROTO, "Docker lists a container without an id");
	int r = dmig_docker__get(d, &inspect, &e, "/containers/%s/json", id);
	if (r == -ENOENT)
		return 0; /* removed meanwhile */
	if (r < 0) {
		if (err && !*err)
			*err = steal_ptr(&e);
		return r;
	}
	if (strcmp(dmig_docker__text(json_object_get(inspect, "HostConfig"), "Runtime"), runtime))
		return 0;
	const char *name = dmig_docker__text(inspect, "Name");
	*ret_name = strdup(*name == '/' ? name + 1 : name);
	return *ret_name ? 1 : dmig_docker__oom(err);
}

int dmig_docker_runtime_users(struct dmig_docker *d, const char *runtime, char ***ret_names, struct dmig_error **err)
{
	cleanup_json json_t *list = NULL;
	int r = dmig_docker__get(d, &list, err, "/containers/json?all=1");
	if (r < 0)
		return r;
	cleanup_strv char **names = calloc(json_array_size(list) + 1, sizeof(*names));
	if (!names)
		return dmig_docker__oom(err);
	for (size_t i = 0, n = 0; i < json_array_size(list); i++) {
		r = uses(d, dmig_docker__text(json_array_get(list, i), "Id"), runtime, &names[n], err);
		if (r < 0)
			return r;
		n += (size_t)r;
	}
	*ret_names = steal_ptr(&names);
	return 0;
}
