/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_NETNS_NETLINK_H
#define DMIG_NETNS_NETLINK_H

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* rtnetlink(7), as much of it as this module needs. Messages from the kernel are still checked for their
 * lengths. */

/* A socket that belongs to the network namespace of ns_fd (-1: ours). Made by a thread that enters it, so
 * that no other thread of this process ever leaves its own namespace. fd or -errno. */
int netns__socket(int ns_fd, int domain, int type, int protocol);

struct netns_link {
	int index, peer_index; /* peer_index: IFLA_LINK, 0 if there is none */
	int peer_nsid; /* IFLA_LINK_NETNSID: number of the peer's namespace as seen from the link's, -1: the
			  same */
	int master;    /* 0: none */
	bool is_veth, is_loopback, is_up;
	bool is_running;     /* has a carrier and sends: the kernel gets there some time after is_up */
	bool is_bridge_port; /* master is a Linux bridge */
	char kind[16];       /* "veth", "macvlan", ...; empty: hardware or loopback */
	char name[16];
	uint8_t mac[6];
	bool has_mac;
};
typedef int netns_link_fn(const struct netns_link *link, void *opaque);
/* Every link; stops at the first non-zero answer, which is returned. */
int netns__each_link(int sock, netns_link_fn *fn, void *opaque, struct dmig_error **err);
/* One by its index: -ENODEV if there is none. */
int netns__get_link(int sock, int index, struct netns_link *ret, struct dmig_error **err);
/* Number of another namespace as the socket's namespace sees it; *ret -1: it has none, so no link joins them.
 * 0 or -errno. */
int netns__nsid(int sock, int ns_fd, int *ret);
int netns__set_up(int sock, int index, bool up, struct dmig_error **err);

struct netns_address {
	int index, family; /* AF_INET, AF_INET6 */
	uint8_t bytes[16];
};
typedef int netns_address_fn(const struct netns_address *address, void *opaque);
int netns__each_address(int sock, netns_address_fn *fn, void *opaque, struct dmig_error **err);

/* Forget neighbours whose address is asked for or was not found: the next packet to them asks anew. */
int netns__forget_unresolved(int sock, struct dmig_error **err);

typedef int netns_message_fn(const struct nlmsghdr *h, size_t len, void *opaque);
/* Sends a finished request and gives each answer to fn, until the kernel is done. 0, fn's first non-zero
 * answer or -errno. */
int netns__ask(int sock, const void *request, size_t len, netns_message_fn *fn, void *opaque);

/* The parsers behind them, on one message; 1 = filled, 0 = not of this kind, -EPROTO. */
int netns__parse_link(const struct nlmsghdr *h, size_t len, struct netns_link *ret);
int netns__parse_address(const struct nlmsghdr *h, size_t len, struct netns_address *ret);

#endif
