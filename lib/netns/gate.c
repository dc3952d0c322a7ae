/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <linux/netfilter_bridge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "netns/netlink.h"
#include "netns/netns.h"
#include "netns/nft.h"
#include "util/cleanup.h"
#include "util/io.h"

/* NFT_TABLE_MAXNAMELEN is 256; our ids are short. */
#define MAX_ID 64

static char *table_name(const char *id)
{
	size_t n = strlen(id);
	for (const char *p = id; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return NULL;
	return n && n <= MAX_ID ? dmig_asprintf("dmigrate_%s", id) : NULL;
}

static int parse_mac(const char *text, uint8_t mac[6])
{
	char more;
	if (strlen(text) != 17 || sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &mac[0], &mac[1],
					  &mac[2], &mac[3], &mac[4], &mac[5], &more) != 6)
		return -EINVAL;
	return 0;
}

static int let_port_pass(const struct netns_link *link, void *opaque)
{
	struct netns_match m = {.kind = NETNS_IN_LINK, .link = (uint32_t)link->index};
	if (link->is_bridge_port)
		netns__nft_rule(opaque, "new", &m, 1, NETNS_RETURN, NULL);
	return 0;
}

/*
 * On a joined layer 2 the same MAC is at work at the source and comes in here through a port that exists
 * already; only the ports that appear from now on are the container's. Frames of other addresses see one
 * comparison for each MAC.
 */
static int add_rules(struct netns_nft *b, const char *const *macs, size_t n_macs, struct dmig_error **err)
{
	cleanup_fd int sock = netns__socket(-1, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (sock < 0)
		return dmig_error_set(err, -sock, "no netlink socket: %s", strerror(-sock));
	netns__nft_chain(b, "new");
	int r = netns__each_link(sock, let_port_pass, b, err);
	if (r < 0)
		return r;
	netns__nft_rule(b, "new", NULL, 0, NETNS_DROP, NULL);
	/* Hooked before the bridge learns addresses: it must not learn the MAC here while the source has it.
	 */
	netns__nft_hook(b, "hold", NF_BR_PRE_ROUTING, NETNS_PRIORITY_FIRST);
	for (size_t i = 0; i < n_macs; i++) {
		struct netns_match m = {.kind = NETNS_SOURCE_MAC};
		if (parse_mac(macs[i], m.mac) < 0)
			return dmig_error_set(err, EINVAL, "not a MAC address: %s", macs[i]);
		netns__nft_rule(b, "hold", &m, 1, NETNS_JUMP, "new");
	}
	return 0;
}

static int commit(struct netns_nft *b, struct dmig_error **err)
{
	cleanup_fd int sock = netns__nft_socket();
	if (sock < 0)
		netns__nft_cancel(b);
	int r = sock < 0 ? sock : netns__nft_commit(b, sock);
	if (r == -EOPNOTSUPP || r == -EAFNOSUPPORT || r == -EPROTONOSUPPORT)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, -r,
			"the kernel has no nftables for bridges, which hold the container's address back");
	return r < 0 ? dmig_error_set(err, -r, "nftables: %s", strerror(-r)) : 0;
}

int dmig_gate_close(const char *id, const char *const *macs, size_t n_macs, struct dmig_error **err)
{
	struct netns_nft b;
	cleanup_free char *table = table_name(id);
	if (!table || n_macs == 0)
		return dmig_error_set(err, EINVAL, "no name or address for the gate");
	netns__nft_begin(&b);
	netns__nft_new_table(&b, table);
	int r = add_rules(&b, macs, n_macs, err);
	if (r < 0) {
		netns__nft_cancel(&b);
		return r;
	}
	r = commit(&b, err);
	return r < 0 ? dmig_error_wrap(err, "cannot hold the container's address back") : 0;
}

int dmig_gate_open(const char *id, struct dmig_error **err)
{
	struct netns_nft b;
	cleanup_free char *table = table_name(id);
	if (!table)
		return dmig_error_set(err, EINVAL, "no name for the gate");
	netns__nft_begin(&b);
	netns__nft_delete_table(&b, table);
	return commit(&b, err);
}
