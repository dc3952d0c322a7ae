/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"
#include "util/io.h"

/* Questions about containers. */

static int inspect_text(
	struct dmig_docker *d, const char *ref, struct dmig_docker__answer *ret, struct dmig_error **err)
{
	cleanup_free char *path = NULL;
	if (!dmig_docker__is_name(ref))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "not a container name or id");
	path = dmig_asprintf("/containers/%s/json", ref);
	if (!path)
		return dmig_docker__oom(err);
	struct dmig_docker__request rq = {.method = "GET", .path = path, .max = MAX_INSPECT};
	return dmig_docker__http(d, &rq, ret, err);
}

/* The driver of each network, and which volumes are shared, are only told by those objects themselves. */
static int add_network_drivers(struct dmig_docker *d, struct dmig_container *c, struct dmig_error **err)
{
	cleanup_json json_t *list = NULL;
	int r = c->n_networks ? dmig_docker__networks(d, &list, err) : 0;
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->n_networks; i++) {
		struct dmig_network *n = &c->networks[i];
		char *driver = strdup(dmig_docker__text(dmig_docker__network_named(list, n->name), "Driver"));
		if (!driver)
			return dmig_docker__oom(err);
		free(n->driver);
		n->driver = driver;
	}
	return 0;
}

static int add_volume_facts(struct dmig_docker *d, struct dmig_container *c, struct dmig_error **err)
{
	for (size_t i = 0; i < c->n_mounts; i++) {
		struct dmig_mount *m = &c->mounts[i];
		cleanup_json json_t *volume = NULL;
		int r = m->type == DMIG_MOUNT_VOLUME ? dmig_docker__volume_get(d, m->name, &volume, err) : 0;
		if (r < 0)
			return r;
		if (volume)
			m->shared = dmig_docker__volume_kind(dmig_docker__text(volume, "Driver"),
					    json_object_get(volume, "Options")) == VOLUME_SHARED;
	}
	return 0;
}

int dmig_docker_inspect(
	struct dmig_docker *d, const char *ref, struct dmig_container **ret, struct dmig_error **err)
{
	cleanup_answer struct dmig_docker__answer a = {0};
	struct dmig_container *c = NULL;
	int r = inspect_text(d, ref, &a, err);
	if (r == 0)
		r = dmig_container_parse(a.text, a.len, &c, err);
	if (r == 0)
		r = add_network_drivers(d, c, err);
	if (r == 0)
		r = add_volume_facts(d, c, err);
	if (r < 0) {
		dmig_container_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

static bool mounts_volume(const json_t *entry, const char *volume)
{
	json_t *m;
	size_t i;
	json_array_foreach(json_object_get(entry, "Mounts"), i,
		m) if (!strcmp(dmig_docker__text(m, "Name"), volume)) return true;
	return false;
}

static int append_name(char **names, const json_t *entry)
{
	const char *name = json_string_value(json_array_get(json_object_get(entry, "Names"), 0));
	if (!name)
		name = dmig_docker__text(entry, "Id");
	if (*name == '/')
		name++;
	char *longer = *names ? dmig_asprintf("%s, %s", *names, name) : strdup(name);
	if (!longer)
		return -ENOMEM;
	free(*names);
	*names = longer;
	return 0;
}

int dmig_docker_volume_users(
	struct dmig_docker *d, const char *volume, const char *except_id, char **ret, struct dmig_error **err)
{
	cleanup_json json_t *list = NULL;
	cleanup_free char *names = NULL;
	json_t *v;
	size_t i;
	/* Without "all" the list holds what runs, paused and restarting containers included. */
	int r = dmig_docker__get(d, &list, err, "/containers/json");
	if (r < 0)
		return r;
	json_array_foreach(list, i, v)
	{
		if (!strcmp(dmig_docker__text(v, "Id"), except_id ? except_id : "") ||
			!mounts_volume(v, volume))
			continue;
		if (append_name(&names, v) < 0)
			return dmig_docker__oom(err);
	}
	*ret = steal_ptr(&names);
	return 0;
}
