/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

/* How a container is attached to a network: the part of the request that carries its addresses. */

#define SHORT_ID 12 /* digits of the id that Docker shows, and adds as an alias by itself */

static bool no_network(const char *mode)
{
	return !strcmp(mode, "none") || !strcmp(mode, "host") || !strncmp(mode, "container:", 10);
}

const struct dmig_network *dmig_docker__primary(const struct dmig_container *c)
{
	const char *mode = c->network_mode;
	if (no_network(mode))
		return NULL;
	if (!*mode || !strcmp(mode, "default"))
		mode = "bridge";
	for (size_t i = 0; i < c->n_networks; i++)
		if (!strcmp(c->networks[i].name, mode))
			return &c->networks[i];
	for (size_t i = 0; i < c->n_networks; i++) /* --network ID */
		if (c->networks[i].id[0] && !strncmp(c->networks[i].id, mode, strlen(mode)))
			return &c->networks[i];
	/* Disconnected from where it began: any that it has now. */
	return c->n_networks ? &c->networks[0] : NULL;
}

static json_t *settings_of(const struct dmig_spec *s, const char *name)
{
	json_t *networks = json_object_get(json_object_get(s->inspect, "NetworkSettings"), "Networks");
	return json_object_get(networks, name);
}

bool dmig_docker__keeps_address(
	const struct dmig_spec *s, const struct dmig_network *n, const json_t *network, bool tcp_close)
{
	if (dmig_docker__network_builtin(n->name) || (!n->ipv4[0] && !n->ipv6[0]))
		return false;
	if (!tcp_close)
		return true;
	/* A new address is fine, but one that a person chose is kept where that is possible. */
	json_t *chosen = json_object_get(settings_of(s, n->name), "IPAMConfig");
	if (!*dmig_docker__text(chosen, "IPv4Address") && !*dmig_docker__text(chosen, "IPv6Address"))
		return false;
	return !network || ((!n->ipv4[0] || dmig_docker__network_holds(network, n->ipv4) == HOLDS_IT) &&
				   (!n->ipv6[0] || dmig_docker__network_holds(network, n->ipv6) == HOLDS_IT));
}

const char *dmig_docker__wanted_mac(const struct dmig_network *n, int api_minor, bool keep)
{
	bool chosen = !strcmp(n->driver, "bridge") || !strcmp(n->driver, "macvlan");
	if (!keep || !n->mac[0] || !chosen)
		return NULL;
	/* Up to Docker 27 it follows from the address; from 28 on it is random. */
	if (api_minor < API_GW_PRIORITY && dmig_docker__mac_is_derived(n->mac, n->ipv4))
		return NULL;
	return n->mac;
}

static bool docker_added(const struct dmig_container *c, const char *alias)
{
	return strlen(alias) == SHORT_ID && !strncmp(alias, c->id, SHORT_ID);
}

/* Docker 20.10 also adds the host name, which by default is the id that the container had when it was first
 * made. */
static bool old_id(const struct dmig_spec *s, const char *alias)
{
	return strlen(alias) == SHORT_ID && strspn(alias, "0123456789abcdef") == SHORT_ID &&
	       !strcmp(alias, dmig_docker__text(s->config, "Hostname"));
}

static json_t *aliases(const struct dmig_spec *s, const json_t *settings)
{
	struct dmig_docker__writer w = {0};
	json_t *out = json_array(), *v;
	size_t i;
	json_array_foreach(json_object_get(settings, "Aliases"), i, v)
	{
		const char *alias = json_is_string(v) ? json_string_value(v) : "";
		if (*alias && !docker_added(s->container, alias) && !old_id(s, alias))
			dmig_docker__add(&w, out, json_incref(v));
	}
	if (!w.failed)
		return out;
	json_decref(out);
	return NULL;
}

static json_t *ipam(const struct dmig_network *n, const json_t *settings, bool keep)
{
	struct dmig_docker__writer w = {0};
	json_t *out = json_object();
	json_t *link_local = json_object_get(json_object_get(settings, "IPAMConfig"), "LinkLocalIPs");
	if (keep && n->ipv4[0])
		dmig_docker__put(&w, out, "IPv4Address", json_string(n->ipv4));
	if (keep && n->ipv6[0])
		dmig_docker__put(&w, out, "IPv6Address", json_string(n->ipv6));
	if (json_array_size(link_local))
		dmig_docker__put(&w, out, "LinkLocalIPs", json_incref(link_local));
	if (!w.failed)
		return out;
	json_decref(out);
	return NULL;
}

/* The MAC address that a person gave the container, which then is its primary network's. */
static const char *chosen_mac(const struct dmig_spec *s, const struct dmig_network *n)
{
	const char *mac = dmig_docker__text(s->config, "MacAddress");
	return *mac && n == dmig_docker__primary(s->container) ? mac : NULL;
}

const char *dmig_docker__endpoint_mac(
	const struct dmig_spec *s, const struct dmig_network *n, int api_minor, bool keep)
{
	const char *mac = dmig_docker__wanted_mac(n, api_minor, keep);
	return mac || keep ? mac : chosen_mac(s, n);
}

static void put_settings(struct dmig_docker__writer *w, const json_t *settings, int api_minor, json_t *out)
{
	json_t *v = json_object_get(settings, "Links");
	if (json_array_size(v))
		dmig_docker__put(w, out, "Links", json_incref(v));
	v = json_object_get(settings, "DriverOpts");
	if (json_object_size(v))
		dmig_docker__put(w, out, "DriverOpts", json_incref(v));
	v = json_object_get(settings, "GwPriority");
	if (api_minor >= API_GW_PRIORITY && json_integer_value(v))
		dmig_docker__put(w, out, "GwPriority", json_incref(v));
}

json_t *dmig_docker__endpoint(
	const struct dmig_spec *s, const struct dmig_network *n, int api_minor, bool keep)
{
	struct dmig_docker__writer w = {0};
	json_t *settings = settings_of(s, n->name), *out = json_object(), *v = ipam(n, settings, keep);
	const char *mac = dmig_docker__endpoint_mac(s, n, api_minor, keep);
	if (!v || json_object_size(v))
		dmig_docker__put(&w, out, "IPAMConfig", v);
	else
		json_decref(v);
	if (mac && api_minor >= API_ENDPOINTS)
		dmig_docker__put(&w, out, "MacAddress", json_string(mac));
	v = dmig_docker__network_builtin(n->name) ? json_array() : aliases(s, settings); /* those take none */
	if (!v || json_array_size(v))
		dmig_docker__put(&w, out, "Aliases", v);
	else
		json_decref(v);
	put_settings(&w, settings, api_minor, out);
	if (!w.failed)
		return out;
	json_decref(out);
	return NULL;
}
