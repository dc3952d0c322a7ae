/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_NETNS_NETNS_H
#define DMIG_NETNS_NETNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * The container's own network. Source: its host-side interfaces are cut at POST-FREEZE, whole again by undo.
 * Destination: nothing of the container may reach the network before the commit (Docker 28 announces the
 * address by itself): the gate drops frames from its MAC addresses until the host-side interfaces are there
 * and cut; at resume they are whole again and the address is announced (gratuitous ARP, unsolicited NA).
 * netlink only, nothing is spawned and the nft command is not needed. Used by one thread at a time.
 */
struct dmig_links; /* the host-side veths of one container */
/* Finds, for each veth inside the network namespace of ns_fd, its peer in our namespace. 0 links is fine
 * (none, host). */
int dmig_links_find(int ns_fd, struct dmig_links **ret, struct dmig_error **err);
size_t dmig_links_count(const struct dmig_links *l);
/* "IFINDEX:NAME,..." for the journal and back; names are checked against the index, so that a reused name is
 * not touched. */
char *dmig_links_format(const struct dmig_links *l);
int dmig_links_parse(const char *text, struct dmig_links **ret, struct dmig_error **err);
/* Interfaces of the container that are up and have no peer here (macvlan, hardware, ...), so that down() does
 * not cut them: "eth1 (macvlan), ..."; "" if all is covered. Lent. */
const char *dmig_links_uncovered(const struct dmig_links *l);
/*
 * Nothing goes in or out any more. A port of a bridge is cut by nftables rules (table bridge
 * dmigrate_link_IFINDEX) in below 0.1 ms both ways and keeps its carrier; other links are set down, and up
 * again, which takes 1-20 ms.
 */
int dmig_links_down(struct dmig_links *l, struct dmig_error **err);
/* Works at once when it returns. A link that has gone is -ENODEV; its rules are gone then as well, so call it
 * at the end of a migration, too. */
int dmig_links_up(struct dmig_links *l, struct dmig_error **err);
void dmig_links_free(struct dmig_links *l);

/* Announcer: sockets are opened beforehand inside the namespace (setns in a helper thread), so sending costs
 * microseconds. */
struct dmig_announcer;
int dmig_announcer_new(int ns_fd, struct dmig_announcer **ret, struct dmig_error **err);
/*
 * Wait until the container's own ends of its links send: after the host's ends went up the kernel activates
 * them from a work queue, and what the container sends before that is lost (its TCP then waits a second).
 * -ETIMEDOUT.
 */
int dmig_announcer_wait_ready(struct dmig_announcer *a, int timeout_ms, struct dmig_error **err);
int dmig_announcer_send(struct dmig_announcer *a, struct dmig_error **err);
void dmig_announcer_free(struct dmig_announcer *a);

/*
 * The gate before the links exist: table "dmigrate_ID" (family bridge) that drops frames from these MACs
 * where they come from a port that did not exist yet. DMIG_ERR_REFUSED if the kernel cannot.
 */
int dmig_gate_close(const char *id, const char *const *macs, size_t n_macs, struct dmig_error **err);
int dmig_gate_open(const char *id, struct dmig_error **err); /* missing is fine */

/*
 * TCP connections in a namespace. Those that came through a published port (the host's connection tracker
 * sends them to another address than they were addressed to) end at the host's address and cannot move with
 * the container. Nor can those that end at the host itself: docker-proxy's, and those of programs of the
 * host.
 */
struct dmig_tcp_counts {
	unsigned established, listening;
	unsigned outside;   /* peer is not an address of this namespace */
	unsigned published; /* of these: through a published port */
	unsigned from_host; /* of these: peer is an address of the host */
	char example[128];  /* one that is published, "CLIENT:PORT -> CONTAINER:PORT"; "" if there is none */
};
int dmig_netns_tcp_counts(pid_t pid, struct dmig_tcp_counts *ret, struct dmig_error **err);

#endif
