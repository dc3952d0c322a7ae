/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_NETNS_TCP_TABLE_H
#define DMIG_NETNS_TCP_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "netns/netns.h"

/* include/net/tcp_states.h */
#define NETNS_TCP_ESTABLISHED 1
#define NETNS_TCP_LISTEN 10

/* One end's view of a connection; addresses as IPv6, v4 mapped into it (RFC 4291). */
struct netns_flow {
	uint8_t local[16], remote[16];
	uint16_t local_port, remote_port; /* host order */
};

/* Connections that stand, sorted for netns__has_flow(). Zero-initialise; _clear() frees. */
struct netns_flows {
	struct netns_flow *list;
	size_t n;
};
void netns__flows_clear(struct netns_flows *f);
void netns__flows_sort(struct netns_flows *f);
bool netns__has_flow(const struct netns_flows *f, const struct netns_flow *flow);

/* "10.88.0.200:40960 -> 10.88.0.50:80", remote first. Caller frees. */
char *netns__flow_text(const struct netns_flow *f);

/* Text of /proc/PID/net/tcp or tcp6 (proc(5)); table is changed. Adds to counts and to flows. 0, -EPROTO,
 * -ENOMEM. */
int netns__read_tcp(char *table, struct dmig_tcp_counts *counts, struct netns_flows *flows);

/* One flow of the connection tracker as it is at the host. 1: filled, 0: no TCP flow with a changed
 * destination, -EPROTO. */
int netns__parse_dnat(const void *message, size_t len, struct netns_flow *ret);
/* Those of the flows that our namespace's connection tracker sends to another address than they were
 * addressed to. */
int netns__count_published(
	const struct netns_flows *flows, struct dmig_tcp_counts *counts, struct dmig_error **err);

#endif
