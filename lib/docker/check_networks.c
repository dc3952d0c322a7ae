/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "docker/check.h"

/* Can the container have its networks and addresses here? */

/* Drivers that every engine has; others are plugins. */
static bool has_driver(const struct dmig_docker *d, const char *driver)
{
	json_t *v;
	size_t i;
	json_array_foreach(json_object_get(d->plugins, "Network"), i,
		v) if (json_is_string(v) && !strcmp(json_string_value(v), driver)) return true;
	return !json_object_get(d->plugins, "Network");
}

/* macvlan and ipvlan stand on an interface of the host; "eth0.7" is made from eth0. */
static void check_parent(struct dmig_docker__check *k, const json_t *network)
{
	char name[IF_NAMESIZE];
	const char *parent = dmig_docker__text(json_object_get(network, "Options"), "parent");
	size_t n = strcspn(parent, ".");
	if (!*parent || n >= sizeof(name))
		return;
	memcpy(name, parent, n);
	name[n] = '\0';
	if (!if_nametoindex(name))
		blocker(k,
			"network %s: its parent interface %s does not exist here: create the network here by "
			"hand",
			dmig_docker__text(network, "Name"), parent);
}

static void check_new(struct dmig_docker__check *k, const struct dmig_network *n, const json_t *described)
{
	json_t *other;
	size_t i;
	if (!has_driver(k->d, n->driver))
		blocker(k, "network %s: its driver %s is not installed here: install the plugin", n->name,
			n->driver);
	check_parent(k, described);
	json_array_foreach(k->networks, i, other)
	{
		const char *subnet = dmig_docker__network_overlap(described, other);
		if (subnet)
			blocker(k,
				"network %s: its subnet %s overlaps network %s of this host: remove or "
				"renumber one",
				n->name, subnet, dmig_docker__text(other, "Name"));
	}
	if (n->gateway[0])
		warning(k,
			"network %s: will be created here with the same gateway %s: where both hosts share "
			"one layer "
			"2, create it here beforehand with another --gateway",
			n->name, n->gateway);
}

/* Who has the address now: only the network itself tells. */
static int check_in_use(struct dmig_docker__check *k, const struct dmig_network *n, const char *address)
{
	cleanup_json json_t *network = NULL;
	cleanup_free char *path = dmig_docker__escape(n->name);
	struct dmig_docker__addr wanted, used;
	const char *id;
	json_t *v;
	if (!path || dmig_docker__addr_parse(address, &wanted) < 0)
		return dmig_docker__oom(k->err);
	int r = dmig_docker__get(k->d, &network, k->err, "/networks/%s", path);
	if (r < 0)
		return dmig_error_wrap(k->err, "network %s", n->name);
	json_object_foreach(json_object_get(network, "Containers"), id, v)
	{
		const char *key = wanted.family == AF_INET ? "IPv4Address" : "IPv6Address";
		if (dmig_docker__addr_parse(dmig_docker__text(v, key), &used) == 0 &&
			used.family == wanted.family && !memcmp(used.bytes, wanted.bytes, sizeof(used.bytes)))
			blocker(k, "network %s: address %s belongs to %s here: free it, or use --tcp close",
				n->name, address, dmig_docker__text(v, "Name"));
	}
	return 0;
}

static int check_address(
	struct dmig_docker__check *k, const struct dmig_network *n, const json_t *here, const char *address)
{
	if (!*address)
		return 0;
	switch (dmig_docker__network_holds(here, address)) {
	case HOLDS_NOT:
		blocker(k,
			"network %s: the one here has no subnet with %s: create it here with the right "
			"--subnet, or use "
			"--tcp close",
			n->name, address);
		return 0;
	case HOLDS_TAKEN:
		blocker(k,
			"network %s: %s is its gateway or reserved here: create it here with another "
			"--gateway, or use "
			"--tcp close",
			n->name, address);
		return 0;
	default:
		return check_in_use(k, n, address);
	}
}

/* Up to 29.0 the Engine refuses a chosen address where it chose the subnet. It tells so only when asked to
 * connect. */
static void check_automatic(struct dmig_docker__check *k, const struct dmig_network *n, const json_t *here)
{
	if (dmig_docker__network_looks_automatic(here))
		warning(k,
			"network %s: its subnet looks chosen by Docker, and then it takes no chosen address: "
			"if so, "
			"create it here with --subnet",
			n->name);
}

static int check_existing(struct dmig_docker__check *k, const struct dmig_network *n, const json_t *here)
{
	json_t *described = dmig_docker__spec_network(k->s, n->name);
	const char *driver = dmig_docker__text(here, "Driver");
	if (!strcmp(dmig_docker__text(here, "Scope"), "swarm"))
		blocker(k, "network %s: the one here belongs to a swarm: rename it or connect to another",
			n->name);
	if (strcmp(driver, n->driver))
		warning(k, "network %s: its driver is %s here and %s there", n->name, driver, n->driver);
	if (json_is_true(json_object_get(here, "Internal")) !=
		json_is_true(json_object_get(described, "Internal")))
		warning(k, "network %s: only one of the two hosts has it as internal", n->name);
	if (!dmig_docker__keeps_address(k->s, n, here, k->opts->tcp_close))
		return 0;
	check_automatic(k, n, here);
	int r = check_address(k, n, here, n->ipv4);
	return r < 0 ? r : check_address(k, n, here, n->ipv6);
}

/* Before API 1.44 only the primary network takes a MAC address. */
static void check_mac(struct dmig_docker__check *k, const struct dmig_network *n, const json_t *here)
{
	bool keep = dmig_docker__keeps_address(k->s, n, here, k->opts->tcp_close);
	if (k->d->api_minor < API_ENDPOINTS && n != dmig_docker__primary(k->c) &&
		dmig_docker__wanted_mac(n, k->d->api_minor, keep))
		warning(k, "network %s: Docker %s gives it another MAC address than %s", n->name,
			k->d->version, n->mac);
}

int dmig_docker__check_networks(struct dmig_docker__check *k)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < k->c->n_networks; i++) {
		const struct dmig_network *n = &k->c->networks[i];
		json_t *here = dmig_docker__network_named(k->networks, n->name);
		if (dmig_docker__network_builtin(n->name))
			continue;
		if (here)
			r = check_existing(k, n, here);
		else
			check_new(k, n, dmig_docker__spec_network(k->s, n->name));
		check_mac(k, n, here);
	}
	return r;
}
