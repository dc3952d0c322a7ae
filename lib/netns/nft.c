/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "netns/nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "util/cleanup.h"

/* Bytes; a rule is below 300, and a host has some hundreds of links. The kernel's send buffer ends soon
 * after. */
#define MAX_BATCH (1u << 20)
/* Bytes of an answer: an error quotes the message. */
#define ANSWER_BYTES (8u << 10)

/* Room for len bytes, zeroed. NULL after an error: everything behind it then does nothing. */
static void *put(struct netns_nft *b, size_t len)
{
	size_t need = b->len + NLMSG_ALIGN(len);
	if (b->error)
		return NULL;
	if (need > MAX_BATCH) {
		b->error = -E2BIG;
		return NULL;
	}
	if (need > b->size) {
		size_t size = need * 2;
		uint8_t *bigger = realloc(b->bytes, size);
		if (!bigger) {
			b->error = -ENOMEM;
			return NULL;
		}
		b->bytes = bigger;
		b->size = size;
	}
	uint8_t *at = b->bytes + b->len;
	memset(at, 0, NLMSG_ALIGN(len));
	b->len = need;
	return at;
}

/* Offset of the message, for end_message(). */
static size_t begin_message(struct netns_nft *b, uint16_t type, uint16_t flags, uint8_t family, uint16_t id)
{
	size_t start = b->len;
	struct nlmsghdr *h = put(b, sizeof(*h));
	if (h)
		*h = (struct nlmsghdr){
			.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags, .nlmsg_seq = b->seq++};
	struct nfgenmsg *g = put(b, sizeof(*g));
	if (g)
		*g = (struct nfgenmsg){.nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(id)};
	return start;
}

static void end_message(struct netns_nft *b, size_t start)
{
	if (!b->error)
		((struct nlmsghdr *)(void *)(b->bytes + start))->nlmsg_len = (uint32_t)(b->len - start);
}

static size_t begin_nft(struct netns_nft *b, uint16_t type, uint16_t flags)
{
	return begin_message(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, NFPROTO_BRIDGE, 0);
}

static void attr(struct netns_nft *b, uint16_t type, const void *data, size_t len)
{
	struct nlattr *a = put(b, NLA_HDRLEN + len);
	if (!a)
		return;
	*a = (struct nlattr){.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
	memcpy((uint8_t *)a + NLA_HDRLEN, data, len);
}

static void attr_text(struct netns_nft *b, uint16_t type, const char *text)
{
	attr(b, type, text, strlen(text) + 1);
}

static void attr_be32(struct netns_nft *b, uint16_t type, uint32_t value)
{
	value = htonl(value);
	attr(b, type, &value, sizeof(value));
}

static size_t begin_nest(struct netns_nft *b, uint16_t type)
{
	size_t start = b->len;
	attr(b, type | NLA_F_NESTED, "", 0);
	return start;
}

static void end_nest(struct netns_nft *b, size_t start)
{
	if (!b->error)
		((struct nlattr *)(void *)(b->bytes + start))->nla_len = (uint16_t)(b->len - start);
}

void netns__nft_begin(struct netns_nft *b)
{
	*b = (struct netns_nft){0};
	end_message(b, begin_message(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
}

static void table_message(struct netns_nft *b, uint16_t type, uint16_t flags, const char *table)
{
	size_t m = begin_nft(b, type, flags);
	attr_text(b, NFTA_TABLE_NAME, table);
	end_message(b, m);
}

/* Adding first makes the deletion of a missing table fine. */
void netns__nft_delete_table(struct netns_nft *b, const char *table)
{
	table_message(b, NFT_MSG_NEWTABLE, NLM_F_CREATE, table);
	table_message(b, NFT_MSG_DELTABLE, NLM_F_ACK, table);
}

void netns__nft_new_table(struct netns_nft *b, const char *table)
{
	netns__nft_delete_table(b, table);
	table_message(b, NFT_MSG_NEWTABLE, NLM_F_CREATE, table);
	b->table = table;
}

static size_t begin_chain(struct netns_nft *b, const char *chain)
{
	size_t m = begin_nft(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	attr_text(b, NFTA_CHAIN_TABLE, b->table);
	attr_text(b, NFTA_CHAIN_NAME, chain);
	return m;
}

void netns__nft_hook(struct netns_nft *b, const char *chain, uint32_t hook, int32_t priority)
{
	size_t m = begin_chain(b, chain);
	size_t h = begin_nest(b, NFTA_CHAIN_HOOK);
	attr_be32(b, NFTA_HOOK_HOOKNUM, hook);
	attr_be32(b, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	end_nest(b, h);
	attr_text(b, NFTA_CHAIN_TYPE, "filter");
	end_message(b, m);
}

void netns__nft_chain(struct netns_nft *b, const char *chain)
{
	end_message(b, begin_chain(b, chain));
}

struct expression {
	size_t element, data;
};

static struct expression begin_expression(struct netns_nft *b, const char *name)
{
	struct expression e = {.element = begin_nest(b, NFTA_LIST_ELEM)};
	attr_text(b, NFTA_EXPR_NAME, name);
	e.data = begin_nest(b, NFTA_EXPR_DATA);
	return e;
}

static void end_expression(struct netns_nft *b, struct expression e)
{
	end_nest(b, e.data);
	end_nest(b, e.element);
}

/* Register 1 = index of the link on which the frame comes or goes. */
static void load_link(struct netns_nft *b, bool out)
{
	struct expression e = begin_expression(b, "meta");
	attr_be32(b, NFTA_META_KEY, out ? NFT_META_OIF : NFT_META_IIF);
	attr_be32(b, NFTA_META_DREG, NFT_REG_1);
	end_expression(b, e);
}

/* Register 1 = bytes 6 to 11 of the Ethernet header. */
static void load_source_mac(struct netns_nft *b)
{
	struct expression e = begin_expression(b, "payload");
	attr_be32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	attr_be32(b, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_LL_HEADER);
	attr_be32(b, NFTA_PAYLOAD_OFFSET, 6);
	attr_be32(b, NFTA_PAYLOAD_LEN, 6);
	end_expression(b, e);
}

/* Go on with the rule only if register 1 holds these bytes. */
static void compare(struct netns_nft *b, const void *value, size_t len)
{
	struct expression e = begin_expression(b, "cmp");
	attr_be32(b, NFTA_CMP_SREG, NFT_REG_1);
	attr_be32(b, NFTA_CMP_OP, NFT_CMP_EQ);
	size_t d = begin_nest(b, NFTA_CMP_DATA);
	attr(b, NFTA_DATA_VALUE, value, len);
	end_nest(b, d);
	end_expression(b, e);
}

static void match(struct netns_nft *b, const struct netns_match *m)
{
	if (m->kind == NETNS_SOURCE_MAC) {
		load_source_mac(b);
		compare(b, m->mac, sizeof(m->mac));
	} else {
		load_link(b, m->kind == NETNS_OUT_LINK);
		compare(b, &m->link, sizeof(m->link)); /* host byte order, as the register */
	}
}

static void decide(struct netns_nft *b, enum netns_verdict verdict, const char *to)
{
	static const int codes[] = {
		[NETNS_DROP] = NF_DROP, [NETNS_RETURN] = NFT_RETURN, [NETNS_JUMP] = NFT_JUMP};
	struct expression e = begin_expression(b, "immediate");
	attr_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	size_t d = begin_nest(b, NFTA_IMMEDIATE_DATA);
	size_t v = begin_nest(b, NFTA_DATA_VERDICT);
	attr_be32(b, NFTA_VERDICT_CODE, (uint32_t)codes[verdict]);
	if (to)
		attr_text(b, NFTA_VERDICT_CHAIN, to);
	end_nest(b, v);
	end_nest(b, d);
	end_expression(b, e);
}

void netns__nft_rule(struct netns_nft *b, const char *chain, const struct netns_match *m, size_t n,
	enum netns_verdict verdict, const char *to)
{
	size_t start = begin_nft(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	attr_text(b, NFTA_RULE_TABLE, b->table);
	attr_text(b, NFTA_RULE_CHAIN, chain);
	size_t list = begin_nest(b, NFTA_RULE_EXPRESSIONS);
	for (size_t i = 0; i < n; i++)
		match(b, &m[i]);
	decide(b, verdict, to);
	end_nest(b, list);
	end_message(b, start);
}

int netns__nft_socket(void)
{
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	return sock < 0 ? -errno : sock;
}

/*
 * The kernel works while it is sent to, so every answer is there at once. A refused transaction may have one
 * answer or many, so they are not counted: what is queued is all. 0 or the first error.
 */
static int read_acks(int sock)
{
	cleanup_free char *buf = malloc(ANSWER_BYTES);
	int result = -EPROTO; /* nothing was acknowledged */
	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = recv(sock, buf, ANSWER_BYTES, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno != EAGAIN ? -errno : result;
		const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)buf;
		const struct nlmsgerr *e = NLMSG_DATA(h);
		if (!NLMSG_OK(h, (int)n) || h->nlmsg_type != NLMSG_ERROR ||
			h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
			continue;
		if (result == -EPROTO || result == 0)
			result = e->error;
	}
}

static int transact(int sock, const void *messages, size_t len)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	ssize_t sent;
	do
		sent = sendto(sock, messages, len, MSG_NOSIGNAL, (struct sockaddr *)&kernel, sizeof(kernel));
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : read_acks(sock);
}

int netns__nft_commit(struct netns_nft *b, int sock)
{
	end_message(b, begin_message(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
	int r = b->error ? b->error : transact(sock, b->bytes, b->len);
	netns__nft_cancel(b);
	return r;
}

void netns__nft_cancel(struct netns_nft *b)
{
	free(b->bytes);
	*b = (struct netns_nft){.error = -EINVAL};
}
