/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "netns/netlink.h"
#include "netns/tcp_table.h"
#include "util/cleanup.h"

/* One direction of a tracked flow. */
struct tuple {
	uint8_t source[16], destination[16];
	uint16_t source_port, destination_port; /* network order */
	uint8_t protocol;
	bool has_addresses;
};

typedef void attr_fn(const struct rtattr *a, void *opaque);

/* nlattr and rtattr have one layout; the upper bits of the type are flags. */
static void each_attr(const void *data, size_t len, attr_fn *fn, void *opaque)
{
	int left = (int)len;
	for (const struct rtattr *a = data; RTA_OK(a, left); a = RTA_NEXT(a, left))
		fn(a, opaque);
}

static unsigned type_of(const struct rtattr *a)
{
	return a->rta_type & NLA_TYPE_MASK;
}

static void set_address(uint8_t to[16], const struct rtattr *a)
{
	size_t len = RTA_PAYLOAD(a);
	if (len == 4)
		to[10] = to[11] = 0xff;
	if (len == 4 || len == 16)
		memcpy(to + 16 - len, RTA_DATA(a), len);
}

static void ip_attr(const struct rtattr *a, void *opaque)
{
	struct tuple *t = opaque;
	unsigned type = type_of(a);
	if (type == CTA_IP_V4_SRC || type == CTA_IP_V6_SRC)
		set_address(t->source, a);
	if (type == CTA_IP_V4_DST || type == CTA_IP_V6_DST)
		set_address(t->destination, a);
	t->has_addresses = true;
}

static void proto_attr(const struct rtattr *a, void *opaque)
{
	struct tuple *t = opaque;
	if (type_of(a) == CTA_PROTO_NUM && RTA_PAYLOAD(a) >= 1)
		memcpy(&t->protocol, RTA_DATA(a), 1);
	if (type_of(a) == CTA_PROTO_SRC_PORT && RTA_PAYLOAD(a) == 2)
		memcpy(&t->source_port, RTA_DATA(a), 2);
	if (type_of(a) == CTA_PROTO_DST_PORT && RTA_PAYLOAD(a) == 2)
		memcpy(&t->destination_port, RTA_DATA(a), 2);
}

static void tuple_attr(const struct rtattr *a, void *opaque)
{
	if (type_of(a) == CTA_TUPLE_IP)
		each_attr(RTA_DATA(a), RTA_PAYLOAD(a), ip_attr, opaque);
	if (type_of(a) == CTA_TUPLE_PROTO)
		each_attr(RTA_DATA(a), RTA_PAYLOAD(a), proto_attr, opaque);
}

struct both {
	struct tuple original, reply;
};

static void flow_attr(const struct rtattr *a, void *opaque)
{
	struct both *b = opaque;
	if (type_of(a) == CTA_TUPLE_ORIG)
		each_attr(RTA_DATA(a), RTA_PAYLOAD(a), tuple_attr, &b->original);
	if (type_of(a) == CTA_TUPLE_REPLY)
		each_attr(RTA_DATA(a), RTA_PAYLOAD(a), tuple_attr, &b->reply);
}

int netns__parse_dnat(const void *message, size_t len, struct netns_flow *ret)
{
	const struct nlmsghdr *h = message;
	const size_t head = NLMSG_LENGTH(sizeof(struct nfgenmsg));
	struct both b = {0};
	if (len < sizeof(*h) || h->nlmsg_len > len ||
		h->nlmsg_type != (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW))
		return 0;
	if (h->nlmsg_len < head)
		return -EPROTO;
	each_attr((const char *)message + head, h->nlmsg_len - head, flow_attr, &b);
	if (b.reply.protocol != IPPROTO_TCP || !b.original.has_addresses || !b.reply.has_addresses)
		return 0;
	/* Answers come from somebody else than was addressed: the destination was changed on the way. */
	if (memcmp(b.original.destination, b.reply.source, 16) == 0 &&
		b.original.destination_port == b.reply.source_port)
		return 0;
	memcpy(ret->local, b.reply.source, 16);
	memcpy(ret->remote, b.reply.destination, 16);
	ret->local_port = ntohs(b.reply.source_port);
	ret->remote_port = ntohs(b.reply.destination_port);
	return 1;
}

struct search {
	const struct netns_flows *flows;
	struct dmig_tcp_counts *counts;
};

static int look_up(const struct nlmsghdr *h, size_t len, void *opaque)
{
	struct search *s = opaque;
	struct netns_flow flow = {0};
	int r = netns__parse_dnat(h, len, &flow);
	if (r <= 0 || !netns__has_flow(s->flows, &flow))
		return r < 0 ? r : 0;
	if (s->counts->published++ == 0) {
		cleanup_free char *text = netns__flow_text(&flow);
		snprintf(s->counts->example, sizeof(s->counts->example), "%s", text ? text : "");
	}
	return 0;
}

int netns__count_published(
	const struct netns_flows *flows, struct dmig_tcp_counts *counts, struct dmig_error **err)
{
	struct {
		struct nlmsghdr h;
		struct nfgenmsg g;
	} q = {.h = {.nlmsg_len = sizeof(q),
		       .nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.g = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0}};
	struct search s = {.flows = flows, .counts = counts};
	if (flows->n == 0)
		return 0;
	cleanup_fd int sock = netns__socket(-1, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	int r = sock < 0 ? sock : netns__ask(sock, &q, sizeof(q), look_up, &s);
	/* No tracker in this kernel: then nothing changes a destination either. */
	if (r == -EPROTONOSUPPORT || r == -EOPNOTSUPP || r == -EINVAL || r == -ENOENT)
		return 0;
	return r < 0 ? dmig_error_set(err, -r, "cannot read the connection tracker: %s", strerror(-r)) : 0;
}
