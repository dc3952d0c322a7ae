/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"
#include "util/io.h"

/* The request that makes the container again: everything as inspect showed it, but for what must differ. */

/*
 * No entry point although the image has one: it was asked for as [""], and must be again, or Docker takes the
 * image's.
 */
static void fix_entrypoint(struct dmig_docker__writer *w, const struct dmig_spec *s, json_t *config)
{
	json_t *image = json_object_get(json_object_get(s->image, "config"), "Entrypoint");
	json_t *own = json_object_get(config, "Entrypoint");
	if ((!own || json_is_null(own)) && json_array_size(image))
		dmig_docker__put(w, config, "Entrypoint", json_pack("[s]", ""));
}

/* Before API 1.44 there is one MAC address for the container, given to its primary network. */
static void fix_mac(struct dmig_docker__writer *w, const struct dmig_spec *s,
	const struct dmig_docker__body_opts *o, json_t *config)
{
	const struct dmig_network *n = dmig_docker__primary(s->container);
	json_t *here = n ? dmig_docker__network_named(o->networks, n->name) : NULL;
	bool keep = n && dmig_docker__keeps_address(s, n, here, o->tcp_close);
	const char *mac = n ? dmig_docker__endpoint_mac(s, n, o->api_minor, keep) : NULL;
	json_object_del(config, "MacAddress");
	if (mac && o->api_minor < API_ENDPOINTS)
		dmig_docker__put(w, config, "MacAddress", json_string(mac));
}

static json_t *config_body(const struct dmig_spec *s, const struct dmig_docker__body_opts *o)
{
	struct dmig_docker__writer w = {0};
	json_t *config = json_deep_copy(s->config);
	dmig_docker__put(&w, config, "Image", json_string(o->image));
	fix_entrypoint(&w, s, config);
	fix_mac(&w, s, o, config);
	if (!w.failed)
		return config;
	json_decref(config);
	return NULL;
}

/* Inspect shows "/other:/self/alias" for what was asked for as "other:alias". */
static char *plain_link(const char *text)
{
	const char *colon = strchr(text, ':');
	const char *alias = colon ? strrchr(colon, '/') : NULL;
	if (text[0] != '/' || !alias)
		return strdup(text);
	return dmig_asprintf("%.*s:%s", (int)(colon - text - 1), text + 1, alias + 1);
}

static void fix_links(struct dmig_docker__writer *w, json_t *host)
{
	json_t *out = json_array(), *v;
	size_t i;
	json_array_foreach(json_object_get(host, "Links"), i, v)
	{
		cleanup_free char *text = plain_link(json_is_string(v) ? json_string_value(v) : "");
		dmig_docker__add(w, out, text ? json_string(text) : NULL);
	}
	dmig_docker__put(w, host, "Links", out);
}

static void fix_network_mode(struct dmig_docker__writer *w, const struct dmig_spec *s, json_t *host)
{
	const struct dmig_container *c = s->container;
	const struct dmig_network *n = dmig_docker__primary(c);
	const char *mode = c->network_mode;
	bool is_default = !*mode || !strcmp(mode, "default");
	if (n && (!is_default || strcmp(n->name, "bridge")))
		dmig_docker__put(w, host, "NetworkMode", json_string(n->name));
	else if (!n && (is_default || !dmig_docker__network_builtin(mode)) && strncmp(mode, "container:", 10))
		dmig_docker__put(
			w, host, "NetworkMode", json_string("none")); /* it was taken off every network */
}

static json_t *host_body(
	const struct dmig_spec *s, const struct dmig_docker__body_opts *o, struct dmig_error **err)
{
	struct dmig_docker__writer w = {0};
	json_t *host = json_deep_copy(s->host_config);
	dmig_docker__put(&w, host, "Runtime", json_string(o->runtime));
	/* A policy would start a fresh copy as soon as the restore fails. */
	dmig_docker__put(
		&w, host, "RestartPolicy", json_pack("{s:s, s:i}", "Name", "no", "MaximumRetryCount", 0));
	fix_links(&w, host);
	fix_network_mode(&w, s, host);
	int r = w.failed ? dmig_docker__oom(err) : dmig_docker__rewrite_mounts(s, host, err);
	if (r == 0)
		return host;
	json_decref(host);
	return NULL;
}

/* All networks, or before API 1.44 the primary one only; create.c connects the others. */
static json_t *networking_body(const struct dmig_spec *s, const struct dmig_docker__body_opts *o)
{
	struct dmig_docker__writer w = {0};
	const struct dmig_container *c = s->container;
	const struct dmig_network *primary = dmig_docker__primary(c);
	json_t *endpoints = json_object(), *out = json_object();
	for (size_t i = 0; primary && i < c->n_networks; i++) {
		const struct dmig_network *n = &c->networks[i];
		json_t *here = dmig_docker__network_named(o->networks, n->name);
		bool keep = dmig_docker__keeps_address(s, n, here, o->tcp_close);
		if (o->api_minor >= API_ENDPOINTS || n == primary)
			dmig_docker__put(
				&w, endpoints, n->name, dmig_docker__endpoint(s, n, o->api_minor, keep));
	}
	dmig_docker__put(&w, out, "EndpointsConfig", endpoints);
	if (!w.failed)
		return out;
	json_decref(out);
	return NULL;
}

int dmig_docker__body(const struct dmig_spec *s, const struct dmig_docker__body_opts *o, json_t **ret,
	struct dmig_error **err)
{
	struct dmig_docker__writer w = {0};
	if (s->container->volumes_from[0])
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EOPNOTSUPP,
			"--volumes-from: the other container's volumes cannot be made here: move them as "
			"named volumes");
	json_t *body = config_body(s, o);
	if (!body)
		return dmig_docker__oom(err);
	json_t *host = host_body(s, o, err);
	dmig_docker__put(&w, body, "HostConfig", host);
	dmig_docker__put(&w, body, "NetworkingConfig", networking_body(s, o));
	if (w.failed) {
		json_decref(body);
		return dmig_docker__oom(err);
	}
	*ret = body;
	return 0;
}
