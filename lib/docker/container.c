/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

/* Reads the Engine's inspect answer; the same reader serves the local daemon, a peer's description and the
 * fuzzer. */

#define PID_LIMIT (1 << 22) /* the kernel's PID_MAX_LIMIT */

static void clear_mount(struct dmig_mount *m)
{
	free(m->name);
	free(m->source);
	free(m->destination);
	free(m->driver);
}

static void clear_network(struct dmig_network *n)
{
	free(n->name);
	free(n->id);
	free(n->driver);
	free(n->ipv4);
	free(n->ipv6);
	free(n->mac);
	free(n->gateway);
}

void dmig_container_free(struct dmig_container *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_mounts; i++)
		clear_mount(&c->mounts[i]);
	for (size_t i = 0; i < c->n_networks; i++)
		clear_network(&c->networks[i]);
	if (c->json)
		explicit_bzero(c->json, strlen(c->json)); /* holds the environment */
	char *strings[] = {c->id, c->name, c->image_id, c->image_name, c->runtime, c->network_mode,
		c->pid_mode, c->ipc_mode, c->userns_mode, c->uts_mode, c->log_driver, c->log_path,
		c->sandbox_key, c->restart_policy, c->json};
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
		free(strings[i]);
	free(c->mounts);
	free(c->networks);
	dmig_docker__strv_free(c->volumes_from);
	dmig_docker__strv_free(c->exec_ids);
	free(c);
}

static void read_identity(struct dmig_docker__reader *r, const json_t *root, struct dmig_container *c)
{
	const char *name = dmig_docker__str(r, root, "Name");
	c->id = dmig_docker__strdup(r, root, "Id");
	c->name = strdup(name[0] == '/' ? name + 1 : name);
	c->image_id = dmig_docker__strdup(r, root, "Image");
	c->log_path = dmig_docker__strdup(r, root, "LogPath");
	c->exec_ids = dmig_docker__strv(r, root, "ExecIDs");
	if (!c->name)
		dmig_docker__fail(r, ENOMEM, "out of memory");
	if (r->failed)
		return;
	if (!dmig_docker__is_id(c->id))
		dmig_docker__fail(r, EINVAL, "Id is not an id");
	if (!dmig_docker__is_name(c->name))
		dmig_docker__fail(r, EINVAL, "Name is not a name");
	if (!dmig_docker__is_digest(c->image_id))
		dmig_docker__fail(r, EINVAL, "Image is not an id");
	if (c->log_path[0] && !dmig_docker__is_path(c->log_path))
		dmig_docker__fail(r, EINVAL, "LogPath is not a path");
}

static void read_state(struct dmig_docker__reader *r, const json_t *root, struct dmig_container *c)
{
	json_t *state = dmig_docker__obj(r, root, "State");
	if (!state)
		dmig_docker__fail(r, EINVAL, "it has no State");
	c->running = dmig_docker__bool(r, state, "Running");
	c->paused = dmig_docker__bool(r, state, "Paused");
	c->restarting = dmig_docker__bool(r, state, "Restarting");
	c->pid = (pid_t)dmig_docker__int(r, state, "Pid", 0, PID_LIMIT);
}

static void read_config(struct dmig_docker__reader *r, const json_t *root, struct dmig_container *c)
{
	json_t *config = dmig_docker__obj(r, root, "Config");
	if (!config)
		dmig_docker__fail(r, EINVAL, "it has no Config");
	c->image_name = dmig_docker__strdup(r, config, "Image");
	c->tty = dmig_docker__bool(r, config, "Tty");
	c->open_stdin = dmig_docker__bool(r, config, "OpenStdin");
	c->swarm_task =
		json_object_get(dmig_docker__obj(r, config, "Labels"), "com.docker.swarm.task.id") != NULL;
}

static void read_host_config(struct dmig_docker__reader *r, const json_t *root, struct dmig_container *c)
{
	json_t *host = dmig_docker__obj(r, root, "HostConfig");
	if (!host)
		dmig_docker__fail(r, EINVAL, "it has no HostConfig");
	json_t *policy = dmig_docker__obj(r, host, "RestartPolicy");
	c->auto_remove = dmig_docker__bool(r, host, "AutoRemove");
	c->privileged = dmig_docker__bool(r, host, "Privileged");
	c->runtime = dmig_docker__strdup(r, host, "Runtime");
	c->network_mode = dmig_docker__strdup(r, host, "NetworkMode");
	c->pid_mode = dmig_docker__strdup(r, host, "PidMode");
	c->ipc_mode = dmig_docker__strdup(r, host, "IpcMode");
	c->userns_mode = dmig_docker__strdup(r, host, "UsernsMode");
	c->uts_mode = dmig_docker__strdup(r, host, "UTSMode");
	c->log_driver = dmig_docker__strdup(r, dmig_docker__obj(r, host, "LogConfig"), "Type");
	c->volumes_from = dmig_docker__strv(r, host, "VolumesFrom");
	c->restart_max = (int)dmig_docker__int(r, policy, "MaximumRetryCount", 0, INT_MAX);
	const char *name = dmig_docker__str(r, policy, "Name");
	c->restart_policy = strdup(name[0] ? name : "no");
	if (!c->restart_policy)
		dmig_docker__fail(r, ENOMEM, "out of memory");
}

static enum dmig_mount_type mount_type(const char *type)
{
	if (!strcmp(type, "bind"))
		return DMIG_MOUNT_BIND;
	if (!strcmp(type, "volume"))
		return DMIG_MOUNT_VOLUME;
	if (!strcmp(type, "tmpfs"))
		return DMIG_MOUNT_TMPFS;
	return DMIG_MOUNT_OTHER;
}

static void check_mount(struct dmig_docker__reader *r, const struct dmig_mount *m)
{
	if (!dmig_docker__is_path(m->destination))
		dmig_docker__fail(r, EINVAL, "the destination of a mount is not a path");
	if (m->type == DMIG_MOUNT_BIND && !dmig_docker__is_path(m->source))
		dmig_docker__fail(r, EINVAL, "the source of a bind mount is not a path");
	if (m->type == DMIG_MOUNT_VOLUME && (!m->name || !dmig_docker__is_name(m->name)))
		dmig_docker__fail(r, EINVAL, "the name of a volume is not a name");
	if (m->type == DMIG_MOUNT_VOLUME && m->source[0] && !dmig_docker__is_path(m->source))
		dmig_docker__fail(r, EINVAL, "the mount point of a volume is not a path");
}

static void read_mount(struct dmig_docker__reader *r, const json_t *o, struct dmig_mount *m)
{
	if (!json_is_object(o))
		dmig_docker__fail(r, EINVAL, "a mount is not an object");
	m->type = mount_type(dmig_docker__str(r, o, "Type"));
	m->source = dmig_docker__strdup(r, o, "Source");
	m->destination = dmig_docker__strdup(r, o, "Destination");
	m->read_only = json_object_get(o, "RW") && !dmig_docker__bool(r, o, "RW");
	if (m->type == DMIG_MOUNT_VOLUME) {
		m->name = dmig_docker__strdup(r, o, "Name");
		m->driver = dmig_docker__strdup(r, o, "Driver");
	}
	if (r->failed)
		return;
	check_mount(r, m);
	/* Docker makes up such names; one that we moved here is given by name but is still nobody's own
	 * choice. */
	m->anonymous = m->type == DMIG_MOUNT_VOLUME && dmig_docker__is_id(m->name);
	m->shared =
		m->type == DMIG_MOUNT_VOLUME && dmig_docker__volume_kind(m->driver, NULL) == VOLUME_SHARED;
}

/* `--tmpfs` is not among Mounts. */
static void read_tmpfs(struct dmig_docker__reader *r, const char *destination, struct dmig_mount *m)
{
	m->type = DMIG_MOUNT_TMPFS;
	m->source = strdup("");
	m->destination = strdup(destination);
	if (!m->source || !m->destination)
		dmig_docker__fail(r, ENOMEM, "out of memory");
	else
		check_mount(r, m);
}

static void read_mounts(struct dmig_docker__reader *r, const json_t *root, struct dmig_container *c)
{
	json_t *list = dmig_docker__arr(r, root, "Mounts"), *v;
	json_t *tmpfs = dmig_docker__obj(r, dmig_docker__obj(r, root, "HostConfig"), "Tmpfs");
	const char *destination;
	size_t i;
	c->mounts = calloc(json_array_size(list) + json_object_size(tmpfs) + 1, sizeof(*c->mounts));
	if (!c->mounts) {
		dmig_docker__fail(r, ENOMEM, "out of memory");
		return;
	}
	json_array_foreach(list, i, v) read_mount(r, v, &c->mounts[c->n_mounts++]);
	json_object_foreach(tmpfs, destination, v) read_tmpfs(r, destination, &c->mounts[c->n_mounts++]);
}

static void check_network(struct dmig_docker__reader *r, const struct dmig_network *n)
{
	struct dmig_docker__addr a;
	const char *const addresses[] = {n->ipv4, n->ipv6, n->gateway};
	if (!dmig_docker__is_network_name(n->name))
		dmig_docker__fail(r, EINVAL, "the name of a network is not a name");
	if (n->id[0] && !dmig_docker__is_id(n->id))
		dmig_docker__fail(r, EINVAL, "the id of a network is not an id");
	for (size_t i = 0; i < 3; i++)
		if (addresses[i][0] && dmig_docker__addr_parse(addresses[i], &a) < 0)
			dmig_docker__fail(r, EINVAL, "an address in a network is not an address");
	if (n->mac[0] && (strlen(n->mac) != 17 || strspn(n->mac, "0123456789abcdefABCDEF:") != 17))
		dmig_docker__fail(r, EINVAL, "a MAC address is not one");
}

static void read_network(
	struct dmig_docker__reader *r, const char *name, const json_t *o, struct dmig_network *n)
{
	if (!json_is_object(o))
		dmig_docker__fail(r, EINVAL, "a network is not an object");
	n->name = strdup(name);
	n->driver = strdup("");
	n->id = dmig_docker__strdup(r, o, "NetworkID");
	n->ipv4 = dmig_docker__strdup(r, o, "IPAddress");
	n->ipv6 = dmig_docker__strdup(r, o, "GlobalIPv6Address");
	n->mac = dmig_docker__strdup(r, o, "MacAddress");
	n->gateway = dmig_docker__strdup(r, o, "Gateway");
	if (!n->name || !n->driver)
		dmig_docker__fail(r, ENOMEM, "out of memory");
	if (!r->failed)
		check_network(r, n);
}

static void read_networks(struct dmig_docker__reader *r, const json_t *root, struct dmig_container *c)
{
	json_t *settings = dmig_docker__obj(r, root, "NetworkSettings");
	json_t *map = dmig_docker__obj(r, settings, "Networks"), *v;
	const char *name;
	c->sandbox_key = dmig_docker__strdup(r, settings, "SandboxKey");
	if (!r->failed && c->sandbox_key[0] && !dmig_docker__is_path(c->sandbox_key))
		dmig_docker__fail(r, EINVAL, "SandboxKey is not a path");
	c->networks = calloc(json_object_size(map) + 1, sizeof(*c->networks));
	if (!c->networks) {
		dmig_docker__fail(r, ENOMEM, "out of memory");
		return;
	}
	json_object_foreach(map, name, v) read_network(r, name, v, &c->networks[c->n_networks++]);
}

int dmig_container_parse(const char *json, size_t len, struct dmig_container **ret, struct dmig_error **err)
{
	cleanup_json json_t *root = NULL;
	int failed = dmig_docker__json("container", json, len, MAX_INSPECT, &root, err);
	if (failed < 0)
		return failed;
	struct dmig_docker__reader r = {.what = "container", .err = err};
	struct dmig_container *c = calloc(1, sizeof(*c));
	if (!c)
		return dmig_docker__oom(err);
	c->json = strndup(json, len);
	if (!c->json)
		dmig_docker__fail(&r, ENOMEM, "out of memory");
	read_identity(&r, root, c);
	read_state(&r, root, c);
	read_config(&r, root, c);
	read_host_config(&r, root, c);
	read_mounts(&r, root, c);
	read_networks(&r, root, c);
	if (r.failed) {
		dmig_container_free(c);
		return r.failed;
	}
	*ret = c;
	return 0;
}
