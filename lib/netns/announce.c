/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <netinet/ip6.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "netns/netlink.h"
#include "netns/netns.h"
#include "util/cleanup.h"
#include "util/io.h"

/* Addresses of one container; more are not announced. */
#define MAX_FRAMES 128
#define MAX_FRAME_BYTES 96

/* Packets are built beforehand: at resume they only have to be sent. */
struct packet {
	struct sockaddr_ll to;
	uint8_t bytes[MAX_FRAME_BYTES];
	size_t len;
};

struct dmig_announcer {
	int sock;    /* AF_PACKET inside the container's namespace */
	int query;   /* rtnetlink there */
	int changes; /* rtnetlink there, told of every change of a link */
	struct packet packets[MAX_FRAMES];
	size_t n;
	struct netns_link links[64];
	size_t n_links;
};

static int note_link(const struct netns_link *link, void *opaque)
{
	struct dmig_announcer *a = opaque;
	if (!link->is_loopback && link->has_mac && a->n_links < sizeof(a->links) / sizeof(a->links[0]))
		a->links[a->n_links++] = *link;
	return 0;
}

static const struct netns_link *link_of(const struct dmig_announcer *a, int index)
{
	for (size_t i = 0; i < a->n_links; i++)
		if (a->links[i].index == index)
			return &a->links[i];
	return NULL;
}

static void address_packet(
	struct packet *p, const struct netns_link *link, uint16_t protocol, const uint8_t to[6])
{
	p->to = (struct sockaddr_ll){.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = link->index,
		.sll_halen = 6};
	memcpy(p->to.sll_addr, to, 6);
}

/* RFC 5227 section 3: an ARP request for the own address tells every neighbour and switch where it is now. */
static void build_arp(struct packet *p, const struct netns_link *link, const uint8_t ip[4])
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct ether_arp arp = {.arp_hrd = htons(ARPHRD_ETHER),
		.arp_pro = htons(ETH_P_IP),
		.arp_hln = 6,
		.arp_pln = 4,
		.arp_op = htons(ARPOP_REQUEST)};
	memcpy(arp.arp_sha, link->mac, 6);
	memcpy(arp.arp_spa, ip, 4);
	memcpy(arp.arp_tpa, ip, 4);
	address_packet(p, link, ETH_P_ARP, broadcast);
	memcpy(p->bytes, &arp, sizeof(arp));
	p->len = sizeof(arp);
}

/* RFC 1071. */
static uint32_t add_words(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *b = data;
	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)(b[i] << 8 | b[i + 1]);
	return sum;
}

struct advertisement {
	struct nd_neighbor_advert na;
	uint8_t option_type, option_len, mac[6];
} __attribute__((packed));

static uint16_t icmp6_checksum(const struct ip6_hdr *ip, const void *body, size_t len)
{
	uint32_t sum = add_words(0, &ip->ip6_src, 32); /* source and destination stand together */
	sum += (uint32_t)len + IPPROTO_ICMPV6;
	sum = add_words(sum, body, len);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* RFC 4861 section 7.2.6: unsolicited neighbour advertisement with override. */
static void build_na(struct packet *p, const struct netns_link *link, const uint8_t address[16])
{
	static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	struct advertisement adv = {.option_type = ND_OPT_TARGET_LINKADDR, .option_len = 1};
	struct ip6_hdr ip = {.ip6_flow = htonl(6u << 28),
		.ip6_plen = htons(sizeof(adv)),
		.ip6_nxt = IPPROTO_ICMPV6,
		.ip6_hlim = 255}; /* receivers drop anything else */
	adv.na.nd_na_type = ND_NEIGHBOR_ADVERT;
	adv.na.nd_na_flags_reserved = ND_NA_FLAG_OVERRIDE;
	memcpy(&adv.na.nd_na_target, address, 16);
	memcpy(adv.mac, link->mac, 6);
	memcpy(&ip.ip6_src, address, 16);
	inet_pton(AF_INET6, "ff02::1", &ip.ip6_dst);
	adv.na.nd_na_cksum = icmp6_checksum(&ip, &adv, sizeof(adv));
	address_packet(p, link, ETH_P_IPV6, all_nodes_mac);
	memcpy(p->bytes, &ip, sizeof(ip));
	memcpy(p->bytes + sizeof(ip), &adv, sizeof(adv));
	p->len = sizeof(ip) + sizeof(adv);
}

static int note_address(const struct netns_address *address, void *opaque)
{
	struct dmig_announcer *a = opaque;
	const struct netns_link *link = link_of(a, address->index);
	if (!link || a->n == MAX_FRAMES)
		return 0;
	struct packet *p = &a->packets[a->n++];
	if (address->family == AF_INET)
		build_arp(p, link, address->bytes);
	else
		build_na(p, link, address->bytes);
	return 0;
}

int dmig_announcer_new(int ns_fd, struct dmig_announcer **ret, struct dmig_error **err)
{
	struct dmig_announcer *a = calloc(1, sizeof(*a));
	if (!a)
		return dmig_error_set(err, ENOMEM, "out of memory");
	struct sockaddr_nl links = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	a->query = netns__socket(ns_fd, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	a->changes = netns__socket(ns_fd, AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
	a->sock = netns__socket(ns_fd, AF_PACKET, SOCK_DGRAM, 0); /* protocol 0: sends only */
	int r = a->query < 0 ? a->query : a->changes < 0 ? a->changes : a->sock < 0 ? a->sock : 0;
	if (r == 0 && bind(a->changes, (struct sockaddr *)&links, sizeof(links)) < 0)
		r = -errno;
	if (r < 0)
		dmig_error_set(err, -r, "cannot open sockets in the container's network: %s", strerror(-r));
	if (r == 0)
		r = netns__each_link(a->query, note_link, a, err);
	if (r == 0)
		r = netns__each_address(a->query, note_address, a, err);
	if (r < 0) {
		dmig_announcer_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

static bool all_running(struct dmig_announcer *a)
{
	for (size_t i = 0; i < a->n_links; i++) {
		struct netns_link now;
		if (netns__get_link(a->query, a->links[i].index, &now, NULL) == 0 && now.is_up &&
			!now.is_running)
			return false;
	}
	return true;
}

int dmig_announcer_wait_ready(struct dmig_announcer *a, int timeout_ms, struct dmig_error **err)
{
	char buf[8192];
	int64_t deadline = dmig_now_ms() + timeout_ms;
	while (!all_running(a)) {
		int64_t left = deadline - dmig_now_ms();
		int r = left > 0 ? dmig_poll_one(a->changes, POLLIN, (int)left) : 0;
		if (r <= 0)
			return dmig_error_set(
				err, r ? -r : ETIMEDOUT, "the container's network does not come up");
		while (recv(a->changes, buf, sizeof(buf), 0) > 0)
			;
	}
	/* What the restored sockets asked for while the link was down waits a second for its next try: start
	 * anew. */
	return netns__forget_unresolved(a->query, err);
}

int dmig_announcer_send(struct dmig_announcer *a, struct dmig_error **err)
{
	int first = 0;
	for (size_t i = 0; i < a->n; i++) {
		const struct packet *p = &a->packets[i];
		if (sendto(a->sock, p->bytes, p->len, MSG_NOSIGNAL, (const struct sockaddr *)&p->to,
			    sizeof(p->to)) < 0 &&
			first == 0)
			first = dmig_error_set(err, errno, "cannot announce the container's address: %m");
	}
	return first;
}

void dmig_announcer_free(struct dmig_announcer *a)
{
	if (!a)
		return;
	if (a->sock >= 0)
		close(a->sock);
	if (a->query >= 0)
		close(a->query);
	if (a->changes >= 0)
		close(a->changes);
	free(a);
}
