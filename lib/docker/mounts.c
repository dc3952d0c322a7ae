/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"
#include "util/io.h"

/*
 * A volume that nobody named stays one: Docker makes it together with the container, under a name of its own, and
 * removes it with the container (rm -v, --rm). Every other volume is mounted by the name that it has: in the entry
 * that asks for it, or in a new one.
 */

static bool same_path(const char *a, const char *clean)
{
	cleanup_free char *path = dmig_docker__clean_path(a);
	return path && !strcmp(path, clean);
}

/* The entry of HostConfig.Mounts for this place, or NULL. Lent. */
static json_t *mount_for(json_t *mounts, const char *destination)
{
	json_t *v;
	size_t i;
	json_array_foreach(mounts, i, v) if (!strcmp(dmig_docker__text(v, "Type"), "volume") &&
					     same_path(dmig_docker__text(v, "Target"), destination)) return v;
	return NULL;
}

/* "/place" or "NAME:/place[:options]" in HostConfig.Binds: index, or -1. *ret_named: it has a name. */
static ssize_t bind_for(json_t *binds, const char *destination, bool *ret_named)
{
	json_t *v;
	size_t i;
	json_array_foreach(binds, i, v)
	{
		const char *text = json_string_value(v);
		const char *colon = text ? strchr(text, ':') : NULL;
		const char *place = colon ? colon + 1 : text;
		if (!text || (colon && *text == '/')) /* a host path is no volume */
			continue;
		cleanup_free char *only = strndup(place, strcspn(place, ":"));
		*ret_named = colon != NULL;
		if (only && same_path(only, destination))
			return (ssize_t)i;
	}
	return -1;
}

/* A place with a colon in it does not fit the short form. */
static json_t *long_form(const struct dmig_mount *m)
{
	return json_pack("{s:s, s:s, s:s, s:b}", "Type", "volume", "Source", m->name, "Target",
		m->destination, "ReadOnly", (int)m->read_only);
}

static json_t *list_of(struct dmig_docker__writer *w, json_t *host, const char *key)
{
	if (!json_is_array(json_object_get(host, key)))
		dmig_docker__put(w, host, key, json_array());
	return json_object_get(host, key);
}

bool dmig_docker__is_unnamed(const struct dmig_spec *s, const struct dmig_mount *m)
{
	bool named = false;
	json_t *entry = mount_for(json_object_get(s->host_config, "Mounts"), m->destination), *v;
	const char *place;
	if (!m->anonymous)
		return false;
	if (entry)
		return !*dmig_docker__text(entry, "Source");
	if (bind_for(json_object_get(s->host_config, "Binds"), m->destination, &named) >= 0)
		return !named;
	json_object_foreach(json_object_get(s->config, "Volumes"), place, v) if (same_path(place, m->destination))
		return true;
	return false;
}

static void mount_by_name(struct dmig_docker__writer *w, const struct dmig_mount *m, json_t *host)
{
	bool named = false;
	json_t *binds = json_object_get(host, "Binds"),
	       *entry = mount_for(json_object_get(host, "Mounts"), m->destination);
	ssize_t i = bind_for(binds, m->destination, &named);
	if (entry) {
		if (!*dmig_docker__text(entry, "Source"))
			dmig_docker__put(w, entry, "Source", json_string(m->name));
		return;
	}
	if (i >= 0 && named)
		return;
	if (strchr(m->destination, ':')) {
		dmig_docker__add(w, list_of(w, host, "Mounts"), long_form(m));
		return;
	}
	cleanup_free char *text =
		dmig_asprintf("%s:%s%s", m->name, m->destination, m->read_only ? ":ro" : "");
	json_t *value = text ? json_string(text) : NULL;
	if (i < 0)
		dmig_docker__add(w, list_of(w, host, "Binds"), value);
	else if (json_array_set_new(binds, (size_t)i, value) < 0)
		w->failed = true;
}

int dmig_docker__rewrite_mounts(const struct dmig_spec *s, json_t *host, struct dmig_error **err)
{
	struct dmig_docker__writer w = {0};
	const struct dmig_container *c = s->container;
	for (size_t i = 0; i < c->n_mounts; i++)
		if (c->mounts[i].type == DMIG_MOUNT_VOLUME && !dmig_docker__is_unnamed(s, &c->mounts[i]))
			mount_by_name(&w, &c->mounts[i], host);
	return w.failed ? dmig_docker__oom(err) : 0;
}
