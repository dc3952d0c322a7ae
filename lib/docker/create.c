/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"
#include "util/log.h"

/* Networks, volumes, container: made at the destination, each told to the caller as soon as it exists. */

struct making {
	struct dmig_docker *d;
	const struct dmig_spec *s;
	const struct dmig_target_opts *o;
	json_t *networks; /* list of the networks here, the new ones included */
	struct dmig_error **err;
};

static int made(const struct making *m, const char *kind, const char *id)
{
	int r = m->o->made ? m->o->made(kind, id, m->o->opaque) : 0;
	return r < 0 ? dmig_error_set(
			       m->err, -r, "cannot note that %s %s was made: %s", kind, id, strerror(-r))
		     : 0;
}

static int make_network(struct making *m, const struct dmig_network *n)
{
	cleanup_free char *id = NULL;
	json_t *described = dmig_docker__spec_network(m->s, n->name);
	if (dmig_docker__network_builtin(n->name) || dmig_docker__network_named(m->networks, n->name))
		return 0;
	int r = dmig_docker__network_create(m->d, described, &id, m->err);
	if (r == 0)
		r = made(m, "network", id);
	if (r == 0 && json_array_append(m->networks, described) < 0)
		r = dmig_docker__oom(m->err);
	return r;
}

static int make_networks(struct making *m)
{
	const struct dmig_container *c = m->s->container;
	int r = dmig_docker__networks(m->d, &m->networks, m->err);
	for (size_t i = 0; r == 0 && i < c->n_networks; i++)
		r = make_network(m, &c->networks[i]);
	return r;
}

static int make_volume(struct making *m, const struct dmig_mount *mount)
{
	cleanup_json json_t *here = NULL;
	const char *state_dir = m->o->state_dir;
	int r = dmig_docker__volume_get(m->d, mount->name, &here, m->err);
	if (r == 0 && here && state_dir && dmig_docker__is_stale(state_dir, here))
		r = dmig_docker__stale_take(state_dir, here, m->err);
	if (r < 0 || here)
		return r;
	r = dmig_docker__volume_create(m->d, dmig_docker__spec_volume(m->s, mount->name), m->err);
	return r < 0 ? r : made(m, "volume", mount->name);
}

static int make_volumes(struct making *m)
{
	const struct dmig_container *c = m->s->container;
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->n_mounts; i++)
		if (dmig_docker__is_volume_first(c, i) && !dmig_docker__is_unnamed(m->s, &c->mounts[i]))
			r = make_volume(m, &c->mounts[i]);
	return r;
}

/* Give the image the name that it had at the source, when that name is free here. */
static int take_name(const struct making *m, const char *name, const char **ret)
{
	/* A name with a digest comes from a registry alone, and an id, or the beginning of one, is no name.
	 */
	const char *id = dmig_docker__text(m->s->image, "id") + strlen("sha256:");
	if (strchr(name, '@') || dmig_docker__is_digest(name) || !strncmp(id, name, strlen(name)))
		return 0;
	int r = dmig_docker_image_tag(m->d, m->o->image_id, name, m->err);
	if (r == 0)
		r = made(m, "image", name);
	if (r == 0)
		*ret = name;
	return r;
}

/* The name that the container was made with, as long as it means the same image here; else the id. */
static int image_reference(const struct making *m, const char **ret)
{
	cleanup_json json_t *inspect = NULL;
	cleanup_error struct dmig_error *e = NULL;
	const char *name = m->s->container->image_name;
	*ret = m->o->image_id;
	if (!dmig_docker__is_image_name(name))
		return 0;
	int r = dmig_docker__get(m->d, &inspect, &e, "/images/%s/json", name);
	if (r == -ENOENT)
		return take_name(m, name, ret);
	if (r < 0)
		return dmig_error_set(m->err, -r, "image %s: %s", name, e ? e->message : "");
	if (!strcmp(dmig_docker__text(inspect, "Id"), m->o->image_id))
		*ret = name;
	return 0;
}

/* Docker's message may repeat a variable of the environment, and those hold secrets. */
static bool repeats_environment(const json_t *config, const char *message)
{
	json_t *v;
	size_t i;
	json_array_foreach(json_object_get(config, "Env"), i, v)
	{
		const char *equals = json_is_string(v) ? strchr(json_string_value(v), '=') : NULL;
		if (equals && strlen(equals) > 3 && strstr(message, equals + 1))
			return true;
	}
	return false;
}

/* Up to 29.0 Docker takes a chosen address only where the subnet was chosen by a person as well. */
static const char *advice(const char *message)
{
	return strstr(message, "user configured subnets")
		       ? " (Docker itself chose the subnet of that network here: create it with docker "
			 "network create "
			 "--subnet, or use --tcp close)"
		       : "";
}

static int create_error(const struct making *m, int r, const struct dmig_error *e)
{
	const char *text = e && e->message ? e->message : "";
	if (repeats_environment(m->s->config, text))
		text = "Docker refuses it (its message repeats the environment and is withheld)";
	return dmig_error_set(
		m->err, -r, "create container %s: %s%s", m->s->container->name, text, advice(text));
}

/* What Docker changed in silence. */
static void log_asides(const struct making *m, const json_t *answer)
{
	json_t *v;
	size_t i;
	json_array_foreach(json_object_get(answer, "Warnings"), i,
		v) if (json_is_string(v) && !repeats_environment(m->s->config, json_string_value(v)))
		log_warn("container %s: Docker says: %.300s", m->s->container->name, json_string_value(v));
}

static int make_container(struct making *m, char **ret_id)
{
	cleanup_json json_t *body = NULL, *answer = NULL;
	cleanup_error struct dmig_error *e = NULL;
	struct dmig_docker__body_opts o = {.runtime = m->o->runtime,
		.api_minor = m->d->api_minor,
		.tcp_close = m->o->tcp_close,
		.networks = m->networks};
	int r = image_reference(m, &o.image);
	if (r == 0)
		r = dmig_docker__body(m->s, &o, &body, m->err);
	if (r < 0)
		return r;
	r = dmig_docker__post(
		m->d, body, TIMEOUT_CREATE, &answer, &e, "/containers/create?name=%s", m->s->container->name);
	if (r < 0)
		return create_error(m, r, e);
	log_asides(m, answer);
	const char *id = dmig_docker__text(answer, "Id");
	if (!dmig_docker__is_id(id))
		return dmig_error_set(m->err, EPROTO, "Docker gave no id for the container it created");
	*ret_id = strdup(id);
	return *ret_id ? made(m, "container", id) : dmig_docker__oom(m->err);
}

/*
 * Before API 1.44: attach the networks beside the primary one, and that one as well. Docker looks at a chosen
 * address only when a network is connected, not at create; a second time to the same network changes nothing,
 * and tells now what would else fail at the start.
 */
static int connect_network(const struct making *m, const char *id, const struct dmig_network *n)
{
	json_t *here = dmig_docker__network_named(m->networks, n->name);
	bool keep = dmig_docker__keeps_address(m->s, n, here, m->o->tcp_close);
	cleanup_free char *name = dmig_docker__escape(n->name);
	cleanup_json json_t *body = json_pack("{s:s, s:o*}", "Container", id, "EndpointConfig",
		dmig_docker__endpoint(m->s, n, m->d->api_minor, keep));
	if (!name || !json_object_get(body, "EndpointConfig"))
		return dmig_docker__oom(m->err);
	cleanup_error struct dmig_error *e = NULL;
	int r = dmig_docker__post(m->d, body, 0, NULL, &e, "/networks/%s/connect", name);
	if (r == 0)
		return 0;
	const char *text = e && e->message ? e->message : "";
	return dmig_error_set(m->err, -r, "connect to network %s: %s%s", n->name, text, advice(text));
}

static int connect_networks(const struct making *m, const char *id)
{
	const struct dmig_container *c = m->s->container;
	int r = 0;
	if (m->d->api_minor >= API_ENDPOINTS || !dmig_docker__primary(c))
		return 0;
	for (size_t i = 0; r == 0 && i < c->n_networks; i++)
		if (!dmig_docker__network_builtin(c->networks[i].name))
			r = connect_network(m, id, &c->networks[i]);
	return r;
}

static int make(struct making *m, char **ret_id)
{
	int r = make_networks(m);
	if (r == 0)
		r = make_volumes(m);
	if (r == 0)
		r = make_container(m, ret_id);
	return r < 0 ? r : connect_networks(m, *ret_id);
}

int dmig_docker_create_target(struct dmig_docker *d, const struct dmig_spec *s,
	const struct dmig_target_opts *opts, char **ret_container_id, struct dmig_error **err)
{
	cleanup_free char *id = NULL;
	struct making m = {.d = d, .s = s, .o = opts, .err = err};
	int r = make(&m, &id);
	json_decref(m.networks);
	if (r == 0)
		*ret_container_id = steal_ptr(&id);
	return r;
}
