/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

bool dmig_docker__network_builtin(const char *name)
{
	static const char *const names[] = {"bridge", "host", "none", "default"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

json_t *dmig_docker__network_named(const json_t *list, const char *name)
{
	json_t *v;
	size_t i;
	json_array_foreach(list, i, v) if (!strcmp(dmig_docker__text(v, "Name"), name)) return v;
	return NULL;
}

int dmig_docker__networks(struct dmig_docker *d, json_t **ret, struct dmig_error **err)
{
	int r = dmig_docker__get(d, ret, err, "/networks");
	return r < 0 ? dmig_error_wrap(err, "list of networks") : r;
}

static json_t *ipam_configs(const json_t *network)
{
	return json_object_get(json_object_get(network, "IPAM"), "Config");
}

/* Docker 20.10 shows the gateway of an IPv6 subnet that it chose itself with its prefix. */
static char *plain_address(const char *text)
{
	return strndup(text, strcspn(text, "/"));
}

static bool same_address(const char *a, const struct dmig_docker__addr *b)
{
	cleanup_free char *plain = plain_address(a);
	struct dmig_docker__addr x;
	return plain && dmig_docker__addr_parse(plain, &x) == 0 && x.family == b->family &&
	       !memcmp(x.bytes, b->bytes, sizeof(x.bytes));
}

static bool taken(const json_t *config, const struct dmig_docker__addr *a)
{
	const char *name;
	json_t *v;
	if (same_address(dmig_docker__text(config, "Gateway"), a))
		return true;
	json_object_foreach(json_object_get(config, "AuxiliaryAddresses"), name,
		v) if (json_is_string(v) && same_address(json_string_value(v), a)) return true;
	return false;
}

enum dmig_docker__holds dmig_docker__network_holds(const json_t *network, const char *address)
{
	struct dmig_docker__addr a, subnet;
	json_t *v;
	size_t i;
	if (dmig_docker__addr_parse(address, &a) < 0)
		return HOLDS_NOT;
	json_array_foreach(ipam_configs(network), i, v)
	{
		if (dmig_docker__addr_parse(dmig_docker__text(v, "Subnet"), &subnet) < 0)
			continue;
		if (dmig_docker__addr_in(&a, &subnet))
			return taken(v, &a) ? HOLDS_TAKEN : HOLDS_IT;
	}
	return HOLDS_NOT;
}

static bool overlaps_any(const struct dmig_docker__addr *a, const json_t *network)
{
	struct dmig_docker__addr b;
	json_t *v;
	size_t i;
	json_array_foreach(ipam_configs(network), i,
		v) if (dmig_docker__addr_parse(dmig_docker__text(v, "Subnet"), &b) == 0 &&
		       dmig_docker__addr_overlap(a, &b)) return true;
	return false;
}

const char *dmig_docker__network_overlap(const json_t *a, const json_t *b)
{
	struct dmig_docker__addr subnet;
	json_t *v;
	size_t i;
	json_array_foreach(ipam_configs(a), i, v)
	{
		const char *text = dmig_docker__text(v, "Subnet");
		if (dmig_docker__addr_parse(text, &subnet) == 0 && overlaps_any(&subnet, b))
			return text;
	}
	return NULL;
}

/* Docker's own pools: 172.17.0.0/16 to 172.31.0.0/16, 192.168.0.0/20 to 192.168.240.0/20, fd00::/8 by /64. */
static bool in_default_pool(const struct dmig_docker__addr *a)
{
	const unsigned char *b = a->bytes;
	if (a->family != AF_INET)
		return a->bits == 64 && b[0] == 0xfd;
	return (a->bits == 16 && b[0] == 172 && b[1] >= 17 && b[1] <= 31) ||
	       (a->bits == 20 && b[0] == 192 && b[1] == 168);
}

bool dmig_docker__network_looks_automatic(const json_t *network)
{
	struct dmig_docker__addr subnet;
	json_t *v;
	size_t i;
	json_array_foreach(ipam_configs(network), i, v)
	{
		/* A subnet that a person gave usually shows no gateway, or a range or auxiliary addresses. */
		bool plain = *dmig_docker__text(v, "Gateway") && !*dmig_docker__text(v, "IPRange") &&
			     json_object_size(json_object_get(v, "AuxiliaryAddresses")) == 0;
		if (plain && dmig_docker__addr_parse(dmig_docker__text(v, "Subnet"), &subnet) == 0 &&
			in_default_pool(&subnet))
			return true;
	}
	return false;
}

static void check_config(struct dmig_docker__reader *r, const json_t *config)
{
	static const char *const keys[] = {"Subnet", "IPRange", "Gateway"};
	struct dmig_docker__addr a;
	if (!json_is_object(config))
		dmig_docker__fail(r, EINVAL, "a subnet is not an object");
	for (size_t i = 0; i < 3; i++) {
		const char *text = dmig_docker__str(r, config, keys[i]);
		if (*text && dmig_docker__addr_parse(text, &a) < 0)
			dmig_docker__fail(r, EINVAL, "%s is not an address", keys[i]);
	}
	dmig_docker__strmap(r, config, "AuxiliaryAddresses");
}

int dmig_docker__network_check(const json_t *network, struct dmig_error **err)
{
	struct dmig_docker__reader r = {.what = "network", .err = err};
	json_t *v;
	size_t i;
	if (!json_is_object(network))
		return dmig_docker__fail(&r, EINVAL, "not an object");
	json_t *ipam = dmig_docker__obj(&r, network, "IPAM");
	const char *driver = dmig_docker__str(&r, network, "Driver");
	if (!dmig_docker__is_network_name(dmig_docker__str(&r, network, "Name")))
		dmig_docker__fail(&r, EINVAL, "Name is not a name");
	if (*driver && !dmig_docker__is_image_name(driver)) /* plugins are named like images */
		dmig_docker__fail(&r, EINVAL, "Driver is not a name");
	dmig_docker__str(&r, network, "Scope");
	dmig_docker__bool(&r, network, "Internal");
	dmig_docker__bool(&r, network, "Attachable");
	dmig_docker__bool(&r, network, "EnableIPv4");
	dmig_docker__bool(&r, network, "EnableIPv6");
	dmig_docker__strmap(&r, network, "Options");
	dmig_docker__strmap(&r, network, "Labels");
	dmig_docker__str(&r, ipam, "Driver");
	dmig_docker__strmap(&r, ipam, "Options");
	json_array_foreach(dmig_docker__arr(&r, ipam, "Config"), i, v) check_config(&r, v);
	return r.failed;
}

static json_t *subnet_body(const json_t *config)
{
	struct dmig_docker__writer w = {0};
	json_t *out = json_object(), *aux = json_object_get(config, "AuxiliaryAddresses");
	cleanup_free char *gateway = plain_address(dmig_docker__text(config, "Gateway"));
	dmig_docker__put(&w, out, "Subnet", json_string(dmig_docker__text(config, "Subnet")));
	if (*dmig_docker__text(config, "IPRange"))
		dmig_docker__put(&w, out, "IPRange", json_string(dmig_docker__text(config, "IPRange")));
	if (!gateway || *gateway)
		dmig_docker__put(&w, out, "Gateway", json_string(gateway));
	if (json_object_size(aux))
		dmig_docker__put(&w, out, "AuxiliaryAddresses", json_incref(aux));
	if (!w.failed)
		return out;
	json_decref(out);
	return NULL;
}

static json_t *ipam_body(const json_t *ipam)
{
	struct dmig_docker__writer w = {0};
	json_t *out = json_object(), *list = json_array(), *v;
	json_t *options = json_object_get(ipam, "Options");
	const char *driver = dmig_docker__text(ipam, "Driver");
	size_t i;
	dmig_docker__put(&w, out, "Driver", json_string(*driver ? driver : "default"));
	if (json_object_size(options))
		dmig_docker__put(&w, out, "Options", json_incref(options));
	json_array_foreach(json_object_get(ipam, "Config"), i, v) dmig_docker__add(&w, list, subnet_body(v));
	dmig_docker__put(&w, out, "Config", list);
	if (!w.failed)
		return out;
	json_decref(out);
	return NULL;
}

/* Only what we know: a description that a peer sent must not carry more into the request. */
static json_t *network_body(const json_t *network, int api_minor)
{
	static const char *const copied[] = {
		"Name", "Driver", "Internal", "Attachable", "EnableIPv6", "Options", "Labels"};
	struct dmig_docker__writer w = {0};
	json_t *out = json_object(), *v;
	for (size_t i = 0; i < sizeof(copied) / sizeof(*copied); i++)
		if ((v = json_object_get(network, copied[i])) && !json_is_null(v))
			dmig_docker__put(&w, out, copied[i], json_incref(v));
	if (api_minor >= API_GW_PRIORITY && json_is_false(json_object_get(network, "EnableIPv4")))
		dmig_docker__put(&w, out, "EnableIPv4", json_false());
	dmig_docker__put(&w, out, "CheckDuplicate", json_true());
	dmig_docker__put(&w, out, "IPAM", ipam_body(json_object_get(network, "IPAM")));
	if (!w.failed)
		return out;
	json_decref(out);
	return NULL;
}

int dmig_docker__network_create(
	struct dmig_docker *d, const json_t *network, char **ret_id, struct dmig_error **err)
{
	cleanup_json json_t *body = network_body(network, d->api_minor), *answer = NULL;
	if (!body)
		return dmig_docker__oom(err);
	int r = dmig_docker__post(d, body, 0, &answer, err, "/networks/create");
	if (r < 0)
		return dmig_error_wrap(err, "create network %s", dmig_docker__text(network, "Name"));
	const char *id = dmig_docker__text(answer, "Id");
	if (!dmig_docker__is_id(id))
		return dmig_error_set(err, EPROTO, "Docker gave no id for the network it created");
	*ret_id = strdup(id);
	return *ret_id ? 0 : dmig_docker__oom(err);
}
