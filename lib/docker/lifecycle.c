/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"
#include "util/io.h"

/* Orders to the Engine about a container and what belongs to it. */

static int check_ref(const char *ref, struct dmig_error **err)
{
	if (dmig_docker__is_name(ref))
		return 0;
	return dmig_error_set(err, EINVAL, "not a container name or id");
}

static int order(struct dmig_docker *d, const char *id, const char *verb, int timeout_ms, const json_t *body,
	struct dmig_error **err)
{
	int r = check_ref(id, err);
	if (r < 0)
		return r;
	r = dmig_docker__post(d, body, timeout_ms, NULL, err, "/containers/%s/%s", id, verb);
	return r < 0 ? dmig_error_wrap(err, "%.*s container %.12s", (int)strcspn(verb, "?"), verb, id) : 0;
}

int dmig_docker_start(struct dmig_docker *d, const char *id, struct dmig_error **err)
{
	return order(d, id, "start", TIMEOUT_START, NULL, err);
}

int dmig_docker_pause(struct dmig_docker *d, const char *id, bool pause, struct dmig_error **err)
{
	return order(d, id, pause ? "pause" : "unpause", 0, NULL, err);
}

int dmig_docker_set_restart_policy(
	struct dmig_docker *d, const char *id, const char *policy, int max, struct dmig_error **err)
{
	/* The Engine refuses a count with any other policy. */
	int count = !strcmp(policy, "on-failure") ? max : 0;
	cleanup_json json_t *body =
		json_pack("{s:{s:s, s:i}}", "RestartPolicy", "Name", policy, "MaximumRetryCount", count);
	if (!body)
		return dmig_docker__oom(err);
	return order(d, id, "update", 0, body, err);
}

int dmig_docker_kill(struct dmig_docker *d, const char *id, int signal, struct dmig_error **err)
{
	cleanup_free char *verb = dmig_asprintf("kill?signal=%d", signal);
	return verb ? order(d, id, verb, 0, NULL, err) : dmig_docker__oom(err);
}

int dmig_docker_wait_stopped(struct dmig_docker *d, const char *id, int timeout_ms, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL;
	int r = order(d, id, "wait?condition=not-running", timeout_ms, NULL, &e);
	if (r == 0 || r == -ENOENT) /* one that is removed when it ends is gone by now */
		return 0;
	return dmig_error_set(err, -r, "%s", e && e->message ? e->message : "");
}

/* Volumes with names that Docker made up: it keeps those that it was told by name, of an older move for
 * example. */
static int anonymous_volumes(struct dmig_docker *d, const char *id, char ***ret, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL;
	struct dmig_container *c = NULL;
	int r = dmig_docker_inspect(d, id, &c, &e);
	size_t n = 0, count = r == 0 ? c->n_mounts : 0; /* what cannot be read is removed all the same */
	cleanup_strv char **names = calloc(count + 1, sizeof(*names));
	r = names ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (!dmig_docker__is_volume_first(c, i) || !c->mounts[i].anonymous || c->mounts[i].shared)
			continue;
		names[n] = strdup(c->mounts[i].name);
		r = names[n++] ? 0 : -ENOMEM;
	}
	dmig_container_free(c);
	if (r < 0)
		return dmig_docker__oom(err);
	*ret = steal_ptr(&names);
	return 0;
}

/* Somebody else removes it already, for one Docker itself after --rm: wait for that. */
static int wait_removed(struct dmig_docker *d, const char *id, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL;
	int r = order(d, id, "wait?condition=removed", 0, NULL, &e);
	if (r == 0 || r == -ENOENT)
		return 0;
	return dmig_error_set(err, -r, "%s", e && e->message ? e->message : "");
}

int dmig_docker_remove_container(
	struct dmig_docker *d, const char *id, bool force, bool volumes, struct dmig_error **err)
{
	cleanup_strv char **names = NULL;
	int r = check_ref(id, err);
	if (r == 0 && volumes)
		r = anonymous_volumes(d, id, &names, err);
	if (r < 0)
		return r;
	cleanup_error struct dmig_error *e = NULL;
	r = dmig_docker__delete(d, &e, "/containers/%s?force=%d&v=%d", id, force, volumes);
	/* Docker itself after --rm: it takes longer on a busy machine. */
	bool going = r == -EBUSY && e && e->message && strstr(e->message, "already in progress");
	if (going || (r == -EBUSY && force))
		r = wait_removed(d, id, err);
	else if (r < 0)
		r = dmig_error_set(err, -r, "remove container %.12s: %s", id, e ? e->message : "");
	if (r < 0)
		return r;
	/* In use by another container: not ours to remove. */
	for (size_t i = 0; names && names[i]; i++) {
		r = dmig_docker_remove_volume(d, names[i], NULL);
		if (r < 0 && r != -EBUSY)
			return dmig_error_set(err, -r, "remove volume %s: %s", names[i], strerror(-r));
	}
	return 0;
}

int dmig_docker_remove_network(struct dmig_docker *d, const char *id, struct dmig_error **err)
{
	cleanup_free char *name = dmig_docker__escape(id);
	if (!name || !*name)
		return dmig_error_set(err, EINVAL, "not a network id");
	int r = dmig_docker__delete(d, err, "/networks/%s", name);
	return r < 0 ? dmig_error_wrap(err, "remove network %.64s", id) : 0;
}

int dmig_docker_remove_volume(struct dmig_docker *d, const char *name, struct dmig_error **err)
{
	if (!dmig_docker__is_name(name))
		return dmig_error_set(err, EINVAL, "not a volume name");
	int r = dmig_docker__delete(d, err, "/volumes/%s", name);
	return r < 0 ? dmig_error_wrap(err, "remove volume %s", name) : 0;
}
