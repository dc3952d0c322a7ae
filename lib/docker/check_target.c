/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "docker/check.h"

/* Can the container come here? */

static int check_runtime(struct dmig_docker__check *k)
{
	if (!dmig_docker_has_runtime(k->d, "dmigrate"))
		blocker(k, "runtime dmigrate: Docker does not know it here: run dmigrate setup on this host");
	return 0;
}

/* Names are unique, stopped containers included. */
static int check_name(struct dmig_docker__check *k)
{
	cleanup_json json_t *inspect = NULL;
	cleanup_error struct dmig_error *e = NULL;
	const char *name = k->c->name;
	int r = dmig_docker__get(k->d, &inspect, &e, "/containers/%s/json", name);
	if (r < 0 && r != -ENOENT)
		return dmig_error_set(k->err, -r, "container %s: %s", name, e ? e->message : "");
	const char *other = dmig_docker__text(inspect, "Name");
	/* Docker also finds by the beginning of an id; that is no conflict. */
	if (r == 0 && !strcmp(*other == '/' ? other + 1 : other, name))
		blocker(k, "name %s: container %.12s has it here: remove that one or use --name", name,
			dmig_docker__text(inspect, "Id"));
	return 0;
}

/* What an older engine here would silently forget. */
static int check_features(struct dmig_docker__check *k)
{
	static const struct {
		const char *field;
		int api;
		const char *since;
	} newer[] = {{"Annotations", API_ANNOTATIONS, "24"}};
	for (size_t i = 0; i < sizeof(newer) / sizeof(*newer); i++)
		if (k->d->api_minor < newer[i].api &&
			json_object_size(json_object_get(k->host_config, newer[i].field)))
			warning(k,
				"HostConfig.%s: Docker %s here does not know it and drops it: it needs "
				"Docker %s",
				newer[i].field, k->d->version, newer[i].since);
	return 0;
}

static bool asks_for(const json_t *v)
{
	return json_is_true(v) || json_integer_value(v) > 0 || json_string_length(v) > 0;
}

/* Docker drops limits for which this host has no cgroup controller, and says so only in an aside. */
static int check_limits(struct dmig_docker__check *k)
{
	static const char *const limits[][2] = {/* member of HostConfig, what /info calls it */
		{"Memory", "MemoryLimit"}, {"MemorySwap", "SwapLimit"}, {"CpuShares", "CPUShares"},
		{"CpuPeriod", "CpuCfsPeriod"}, {"CpuQuota", "CpuCfsQuota"}, {"NanoCpus", "CpuCfsQuota"},
		{"CpusetCpus", "CPUSet"}, {"PidsLimit", "PidsLimit"}, {"OomKillDisable", "OomKillDisable"}};
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (asks_for(json_object_get(k->host_config, limits[i][0])) &&
			json_is_false(json_object_get(k->d->info, limits[i][1])))
			warning(k,
				"limit %s: this host's cgroups cannot enforce it: the container runs here "
				"without it",
				limits[i][0]);
	return 0;
}

/* A volume that is here already would lose what it holds. */
static void check_contents(struct dmig_docker__check *k, const char *name, const json_t *here)
{
	const char *state_dir = k->opts->state_dir;
	if (!dmig_docker__volume_holds_data(here) || (state_dir && dmig_docker__is_stale(state_dir, here)))
		return;
	if (state_dir)
		blocker(k,
			"volume %s: it exists here and holds data that no move left: remove it or rename it",
			name);
	else
		warning(k, "volume %s: it exists here and its contents will be replaced", name);
}

static int check_existing_volume(struct dmig_docker__check *k, const json_t *described, const json_t *here)
{
	cleanup_free char *users = NULL;
	const char *name = dmig_docker__text(here, "Name");
	json_t *a = json_object_get(described, "Options"), *b = json_object_get(here, "Options");
	bool same = (json_object_size(a) == 0 && json_object_size(b) == 0) || json_equal(a, b);
	if (strcmp(dmig_docker__text(described, "Driver"), dmig_docker__text(here, "Driver")) || !same)
		blocker(k, "volume %s: it exists here with another driver or other options: remove it", name);
	if (dmig_docker__volume_kind(dmig_docker__text(here, "Driver"), b) == VOLUME_SHARED)
		return 0;
	check_contents(k, name, here);
	int r = dmig_docker_volume_users(k->d, name, NULL, &users, k->err);
	if (r == 0 && users)
		blocker(k, "volume %s: running containers use it here: %s: stop them first", name, users);
	return r;
}

static bool has_driver(const struct dmig_docker *d, const char *driver)
{
	json_t *v;
	size_t i;
	json_array_foreach(json_object_get(d->plugins, "Volume"), i,
		v) if (json_is_string(v) && !strcmp(json_string_value(v), driver)) return true;
	return !*driver || !strcmp(driver, "local");
}

static void check_new_volume(struct dmig_docker__check *k, const json_t *described)
{
	const char *name = dmig_docker__text(described, "Name"),
		   *driver = dmig_docker__text(described, "Driver");
	const char *device = dmig_docker__volume_device(described);
	if (!has_driver(k->d, driver))
		blocker(k, "volume %s: its driver %s is not installed here: install the plugin", name,
			driver);
	if (*device && access(device, F_OK) < 0)
		blocker(k, "volume %s: it is at %s, which does not exist here: create that", name, device);
}

static int check_volumes(struct dmig_docker__check *k)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < k->c->n_mounts; i++) {
		const struct dmig_mount *m = &k->c->mounts[i];
		cleanup_json json_t *here = NULL;
		if (!dmig_docker__is_volume_first(k->c, i))
			continue;
		json_t *described = dmig_docker__spec_volume(k->s, m->name);
		/* One that nobody named gets a new name here. */
		if (!dmig_docker__is_unnamed(k->s, m))
			r = dmig_docker__volume_get(k->d, m->name, &here, k->err);
		if (r == 0 && here)
			r = check_existing_volume(k, described, here);
		else if (r == 0)
			check_new_volume(k, described);
	}
	return r;
}

static int check_binds(struct dmig_docker__check *k)
{
	for (size_t i = 0; i < k->c->n_mounts; i++) {
		const struct dmig_mount *m = &k->c->mounts[i];
		if (m->type == DMIG_MOUNT_BIND && access(m->source, F_OK) < 0)
			warning(k,
				"bind mount %s: it does not exist here: unless it is copied, Docker makes an "
				"empty folder",
				m->source);
	}
	return 0;
}

static int check_links(struct dmig_docker__check *k)
{
	json_t *v, *container;
	size_t i, j;
	json_array_foreach(json_object_get(k->host_config, "Links"), i, v)
	{
		const char *text = json_is_string(v) ? json_string_value(v) : "";
		size_t n = strcspn(text, ":");
		bool found = false;
		json_array_foreach(k->containers, j, container)
		{
			const char *name =
				json_string_value(json_array_get(json_object_get(container, "Names"), 0));
			found |= name && strlen(name) == n && !strncmp(name, text, n);
		}
		if (!found)
			blocker(k, "--link %.*s: no container of that name runs here: start it here first",
				(int)n, text);
	}
	return 0;
}

static int check_log_driver(struct dmig_docker__check *k)
{
	json_t *list = json_object_get(k->d->plugins, "Log"), *v;
	const char *driver = k->c->log_driver;
	size_t i;
	json_array_foreach(
		list, i, v) if (json_is_string(v) && !strcmp(json_string_value(v), driver)) return 0;
	if (list && *driver && strcmp(driver, "none"))
		blocker(k, "log driver %s: Docker does not have it here: install the plugin", driver);
	return 0;
}

static int check_permission(struct dmig_docker__check *k)
{
	if (k->allow)
		dmig_docker__check_allow(k->s, k->allow, k->networks, k->f);
	return 0;
}

static dmig_docker__check_fn *const checks[] = {
	check_permission,
	check_runtime,
	dmig_docker__check_engine,
	check_name,
	check_features,
	check_limits,
	dmig_docker__check_networks,
	dmig_docker__check_ports,
	check_volumes,
	check_binds,
	check_links,
	check_log_driver,
};

int dmig_docker_check_target(struct dmig_docker *d, const struct dmig_spec *s,
	const struct dmig_check_opts *opts, const struct dmig_allow *allow, struct dmig_findings *f,
	struct dmig_error **err)
{
	struct dmig_docker__check k = {.d = d,
		.c = s->container,
		.opts = opts,
		.f = f,
		.err = err,
		.host_config = s->host_config,
		.s = s,
		.allow = allow};
	cleanup_json json_t *networks = NULL, *containers = NULL;
	int r = dmig_docker__networks(d, &networks, err);
	if (r == 0)
		r = dmig_docker__get(d, &containers, err, "/containers/json");
	k.networks = networks;
	k.containers = containers;
	for (size_t i = 0; r == 0 && i < sizeof(checks) / sizeof(*checks); i++)
		r = checks[i](&k);
	return r;
}
