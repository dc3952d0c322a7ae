/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/check.h"

/* Can this container leave? */

int dmig_docker__check_engine(struct dmig_docker__check *k)
{
	const struct dmig_docker *d = k->d;
	if (strcmp(d->driver, "overlay2") && !(d->containerd_store && !strcmp(d->driver, "overlayfs")))
		blocker(k, "storage driver %s: its writable layer is no overlay: use overlay2 or overlayfs",
			d->driver);
	if (d->userns_remap)
		blocker(k, "userns-remap: containers run with shifted user ids here, which is not supported: "
			   "run dockerd "
			   "without it");
	if (d->rootless)
		blocker(k, "rootless Docker: not supported: use a dockerd that runs as root");
	return 0;
}

static int check_state(struct dmig_docker__check *k)
{
	const struct dmig_container *c = k->c;
	if (c->restarting)
		blocker(k, "container %s: it is being restarted by its policy: wait until it stays up",
			c->name);
	else if (c->paused)
		blocker(k, "container %s: it is paused: run docker unpause %s", c->name, c->name);
	else if (!c->running || c->pid <= 0)
		blocker(k, "container %s: it is not running, so there is nothing live to move: start it",
			c->name);
	return 0;
}

static int check_swarm(struct dmig_docker__check *k)
{
	if (k->c->swarm_task)
		blocker(k,
			"container %s: it is a swarm task and the swarm would start another: drain the node "
			"instead",
			k->c->name);
	return 0;
}

static int check_runtime(struct dmig_docker__check *k)
{
	static const char *const known[] = {"", "runc", "dmigrate", "io.containerd.runc.v2"};
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(k->c->runtime, known[i]))
			return 0;
	blocker(k,
		"runtime %s: only containers of runc can be checkpointed: create it again with --runtime "
		"runc",
		k->c->runtime);
	return 0;
}

/* Namespaces that the container shares with somebody who stays. */
static int check_namespaces(struct dmig_docker__check *k)
{
	const struct {
		const char *option, *mode;
	} shared[] = {{"--pid", k->c->pid_mode}, {"--ipc", k->c->ipc_mode}, {"--uts", k->c->uts_mode},
		{"--network", k->c->network_mode}};
	for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
		if (!strcmp(shared[i].mode, "host") || !strncmp(shared[i].mode, "container:", 10))
			blocker(k, "%s %.24s: shared with what stays here: create the container without it",
				shared[i].option, shared[i].mode);
	return 0;
}

static int check_networks(struct dmig_docker__check *k)
{
	const struct dmig_container *c = k->c;
	for (size_t i = 0; i < c->n_networks; i++) {
		const struct dmig_network *n = &c->networks[i];
		json_t *network = dmig_docker__network_named(k->networks, n->name);
		json_t *from = json_object_get(json_object_get(network, "ConfigFrom"), "Network");
		if (!strcmp(dmig_docker__text(network, "Scope"), "swarm"))
			blocker(k,
				"network %s: it belongs to a swarm: connect the container to a local network",
				n->name);
		else if (json_string_length(from))
			blocker(k,
				"network %s: its settings come from another network (config-from): not "
				"supported",
				n->name);
		else if (!strcmp(n->name, "bridge") && n->ipv4[0] && !k->opts->tcp_close)
			blocker(k, "network bridge: the default bridge gives no chosen address, so its "
				   "connections "
				   "would break: use a user-defined network, or --tcp close");
	}
	return 0;
}

static bool decided(const struct dmig_check_opts *opts, const char *source)
{
	for (size_t i = 0; opts->bind_share && opts->bind_share[i]; i++) {
		cleanup_free char *path = dmig_docker__clean_path(opts->bind_share[i]);
		if (path && !strcmp(path, source))
			return true;
	}
	return false;
}

static bool engine_socket(const struct dmig_docker *d, const char *path)
{
	const char *slash = strrchr(path, '/');
	return !strcmp(path, d->socket) || !strcmp(slash, "/docker.sock") ||
	       !strcmp(slash, "/containerd.sock");
}

static void check_bind(struct dmig_docker__check *k, const struct dmig_mount *m)
{
	cleanup_free char *source = dmig_docker__clean_path(m->source);
	bool ok = source && decided(k->opts, source);
	if (!ok && engine_socket(k->d, m->source))
		blocker(k,
			"bind mount %s: it controls the Docker of this host: run without it, or use --bind "
			"%s=share to "
			"get the other host's",
			m->source, m->source);
	else if (!ok)
		blocker(k,
			"bind mount %s: it is a path of this host: say --bind %s=copy, or =share if the "
			"other host "
			"has the same",
			m->source, m->source);
	else if (engine_socket(k->d, m->source))
		warning(k, "bind mount %s: after the move it controls the Docker of the other host",
			m->source);
}

static int check_mounts(struct dmig_docker__check *k)
{
	for (size_t i = 0; i < k->c->n_mounts; i++) {
		const struct dmig_mount *m = &k->c->mounts[i];
		if (m->type == DMIG_MOUNT_BIND)
			check_bind(k, m);
		else if (m->type == DMIG_MOUNT_OTHER)
			blocker(k, "mount %s: neither bind, volume nor tmpfs: not supported: run without it",
				m->destination);
	}
	if (k->c->volumes_from[0])
		blocker(k,
			"--volumes-from %s: the mounts belong to another container: mount its volumes by "
			"name",
			k->c->volumes_from[0]);
	return 0;
}

static int check_volume(struct dmig_docker__check *k, const struct dmig_mount *m)
{
	cleanup_json json_t *volume = NULL;
	cleanup_free char *users = NULL;
	int r = dmig_docker__volume_get(k->d, m->name, &volume, k->err);
	if (r < 0)
		return r;
	enum dmig_docker__volume_kind kind =
		dmig_docker__volume_kind(m->driver, json_object_get(volume, "Options"));
	if (kind == VOLUME_DEVICE)
		blocker(k, "volume %s: it is on %s, which stays here: move its contents to a plain volume",
			m->name, dmig_docker__volume_device(volume));
	if (kind == VOLUME_SHARED)
		return 0;
	r = dmig_docker_volume_users(k->d, m->name, k->c->id, &users, k->err);
	if (r == 0 && users)
		blocker(k, "volume %s: running containers use it as well: %s: stop them first", m->name,
			users);
	return r;
}

static int check_volumes(struct dmig_docker__check *k)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < k->c->n_mounts; i++)
		if (dmig_docker__is_volume_first(k->c, i))
			r = check_volume(k, &k->c->mounts[i]);
	return r;
}

static int check_devices(struct dmig_docker__check *k)
{
	json_t *v;
	size_t i;
	json_array_foreach(json_object_get(k->host_config, "Devices"), i, v)
		blocker(k, "device %s: what the container has open there stays here: run without --device",
			dmig_docker__text(v, "PathOnHost"));
	if (json_array_size(json_object_get(k->host_config, "DeviceRequests")))
		blocker(k, "--gpus: the state of a GPU cannot move: run without it");
	if (k->c->privileged)
		warning(k, "--privileged: the container can open every device of this host, and open ones "
			   "cannot move");
	return 0;
}

static int check_auto_remove(struct dmig_docker__check *k)
{
	if (k->c->auto_remove && k->opts->source_keep)
		blocker(k, "--rm: Docker removes the container when it ends here: use --source remove");
	return 0;
}

static int check_log(struct dmig_docker__check *k)
{
	const char *driver = k->c->log_driver;
	if (strcmp(driver, "json-file") && strcmp(driver, "none"))
		warning(k,
			"log driver %s: what was logged so far stays where it is: docker logs at the other "
			"host begins "
			"with the move",
			driver);
	return 0;
}

static int check_ports(struct dmig_docker__check *k)
{
	const char *port;
	json_t *list, *v;
	size_t i;
	json_object_foreach(json_object_get(k->host_config, "PortBindings"), port, list)
		json_array_foreach(list, i, v) if (!*dmig_docker__text(v, "HostPort")) warning(k,
			"port %s: Docker chose where to publish it, and will choose again: use -p "
			"HOST:%.*s",
			port, (int)strcspn(port, "/"), port);
	return 0;
}

static dmig_docker__check_fn *const checks[] = {
	check_state,
	dmig_docker__check_engine,
	check_swarm,
	check_runtime,
	check_namespaces,
	check_networks,
	check_mounts,
	check_volumes,
	check_devices,
	check_auto_remove,
	check_log,
	check_ports,
};

int dmig_docker_check_source(struct dmig_docker *d, const struct dmig_container *c,
	const struct dmig_check_opts *opts, struct dmig_findings *f, struct dmig_error **err)
{
	struct dmig_docker__check k = {.d = d, .c = c, .opts = opts, .f = f, .err = err};
	cleanup_json json_t *inspect = NULL, *networks = NULL;
	int r = dmig_docker__json("container", c->json, strlen(c->json), MAX_INSPECT, &inspect, err);
	if (r == 0)
		r = dmig_docker__networks(d, &networks, err);
	k.host_config = json_object_get(inspect, "HostConfig");
	k.networks = networks;
	for (size_t i = 0; r == 0 && i < sizeof(checks) / sizeof(*checks); i++)
		r = checks[i](&k);
	return r;
}
