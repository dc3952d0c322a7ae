/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <linux/netfilter_bridge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "netns/netlink.h"
#include "netns/netns.h"
#include "netns/nft.h"
#include "util/cleanup.h"
#include "util/io.h"

/* One per network of the container; Docker itself gets slow long before. */
#define LINKS_MAX 64
/* What one error or warning can name. */
#define UNCOVERED_MAX 256

struct host_link {
	int index;
	int inner; /* the container's end, 0: not known (from the journal) */
	char name[16];
};

struct dmig_links {
	int sock;   /* in our namespace */
	int nft;    /* the same, for rules; -1: this kernel has none */
	int inside; /* in the container's, -1: not known */
	struct host_link list[LINKS_MAX];
	size_t n;
	char uncovered[UNCOVERED_MAX];
};

static int new_links(struct dmig_links **ret, struct dmig_error **err)
{
	struct dmig_links *l = calloc(1, sizeof(*l));
	if (!l)
		return dmig_error_set(err, ENOMEM, "out of memory");
	l->inside = -1;
	l->nft = netns__nft_socket();
	l->sock = netns__socket(-1, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (l->sock < 0) {
		int r = dmig_error_set(err, -l->sock, "no netlink socket: %s", strerror(-l->sock));
		dmig_links_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

void dmig_links_free(struct dmig_links *l)
{
	if (!l)
		return;
	dmig_closep(&l->sock);
	dmig_closep(&l->nft);
	dmig_closep(&l->inside);
	free(l);
}

struct inside {
	struct netns_link list[LINKS_MAX];
	size_t n;
};

static int note_link(const struct netns_link *link, void *opaque)
{
	struct inside *in = opaque;
	if (link->is_loopback)
		return 0;
	if (in->n == LINKS_MAX)
		return -E2BIG;
	in->list[in->n++] = *link;
	return 0;
}

/*
 * The peer's number counts in the peer's namespace, which need not be ours: a container that runs containers
 * has veths of its own, and their numbers look like ours. So both ends must name each other, and ours must
 * name that namespace. 1: found and added.
 */
static int add_peer(struct dmig_links *l, const struct netns_link *inner, int nsid, struct dmig_error **err)
{
	struct netns_link host;
	cleanup_error struct dmig_error *missing = NULL;
	if (!inner->is_veth || inner->peer_index <= 0 || nsid < 0)
		return 0;
	int r = netns__get_link(l->sock, inner->peer_index, &host, &missing);
	if (r == -ENODEV ||
		(r == 0 && (!host.is_veth || host.peer_index != inner->index || host.peer_nsid != nsid)))
		return 0;
	if (r < 0) {
		if (err && !*err)
			*err = steal_ptr(&missing);
		return r;
	}
	l->list[l->n].index = host.index;
	l->list[l->n].inner = inner->index;
	memcpy(l->list[l->n++].name, host.name, sizeof(host.name));
	return 1;
}

/* A link that is down or a leg inside the container carries nothing to the host. */
static void note_uncovered(struct dmig_links *l, const struct netns_link *inner)
{
	if (!inner->is_up || inner->master || !strcmp(inner->kind, "bridge") || !strcmp(inner->kind, "dummy"))
		return;
	size_t len = strlen(l->uncovered);
	snprintf(l->uncovered + len, sizeof(l->uncovered) - len, "%s%s (%s)", len ? ", " : "", inner->name,
		inner->kind[0] ? inner->kind : "hardware");
}

static int match_peers(struct dmig_links *l, const struct inside *in, int nsid, struct dmig_error **err)
{
	for (size_t i = 0; i < in->n; i++) {
		int r = add_peer(l, &in->list[i], nsid, err);
		if (r < 0)
			return r;
		if (r == 0)
			note_uncovered(l, &in->list[i]);
	}
	return 0;
}

int dmig_links_find(int ns_fd, struct dmig_links **ret, struct dmig_error **err)
{
	struct dmig_links *l = NULL;
	int nsid;
	cleanup_free struct inside *in = calloc(1, sizeof(*in));
	int r = in ? new_links(&l, err) : dmig_error_set(err, ENOMEM, "out of memory");
	if (r < 0)
		return r;
	l->inside = netns__socket(ns_fd, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	r = l->inside < 0 ? l->inside : netns__nsid(l->sock, ns_fd, &nsid);
	if (r < 0)
		dmig_error_set(err, -r, "cannot enter the container's network: %s", strerror(-r));
	if (r == 0)
		r = netns__each_link(l->inside, note_link, in, err);
	if (r == 0)
		r = match_peers(l, in, nsid, err);
	if (r < 0) {
		dmig_links_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

size_t dmig_links_count(const struct dmig_links *l)
{
	return l ? l->n : 0;
}

const char *dmig_links_uncovered(const struct dmig_links *l)
{
	return l->uncovered;
}

char *dmig_links_format(const struct dmig_links *l)
{
	char *text = strdup("");
	for (size_t i = 0; text && i < l->n; i++) {
		char *longer =
			dmig_asprintf("%s%s%d:%s", text, i ? "," : "", l->list[i].index, l->list[i].name);
		free(text);
		text = longer;
	}
	return text;
}

/* "12:veth0a" at *p; moves behind it and its comma. */
static int parse_one(const char **p, struct host_link *ret)
{
	char *end;
	errno = 0;
	long index = strtol(*p, &end, 10);
	size_t len = *end == ':' ? strcspn(end + 1, ",") : 0;
	if (errno || index <= 0 || index > INT32_MAX || len == 0 || len >= sizeof(ret->name) ||
		memchr(end + 1, '/', len))
		return -EINVAL;
	*ret = (struct host_link){.index = (int)index};
	memcpy(ret->name, end + 1, len);
	*p = end + 1 + len;
	if (**p == ',')
		(*p)++;
	return 0;
}

int dmig_links_parse(const char *text, struct dmig_links **ret, struct dmig_error **err)
{
	struct dmig_links *l = NULL;
	int r = new_links(&l, err);
	if (r < 0)
		return r;
	for (const char *p = text; *p;) {
		if (l->n == LINKS_MAX || parse_one(&p, &l->list[l->n]) < 0) {
			dmig_links_free(l);
			return dmig_error_set(err, EINVAL, "not a list of network links: %s", text);
		}
		l->n++;
	}
	*ret = l;
	return 0;
}

/* A number can be used again for another link: the name must still be the one we know. */
static int look(
	struct dmig_links *l, const struct host_link *h, struct netns_link *ret, struct dmig_error **err)
{
	int r = netns__get_link(l->sock, h->index, ret, err);
	if (r < 0)
		return r;
	if (strcmp(ret->name, h->name))
		return dmig_error_set(
			err, ENODEV, "network link %d is %s now, not %s", h->index, ret->name, h->name);
	return 0;
}

#define TABLE_NAME_BYTES 32
static void table_name(char name[TABLE_NAME_BYTES], const struct host_link *h)
{
	snprintf(name, TABLE_NAME_BYTES, "dmigrate_link_%d", h->index);
}

/*
 * A port of a bridge is cut by two rules: the earliest hook for what comes from the container (before the
 * bridge learns its address), the last for what goes to it. Neither end loses its carrier, so that both work
 * at once when the rules go: taking a link down and up flushes ARP, and the first packets after it are lost
 * until the stack has noticed the carrier; the first ARP request is then repeated a second later (measured).
 */
static int cut_port(struct dmig_links *l, const struct host_link *h)
{
	struct netns_nft b;
	char table[TABLE_NAME_BYTES];
	struct netns_match in = {.kind = NETNS_IN_LINK, .link = (uint32_t)h->index};
	struct netns_match out = {.kind = NETNS_OUT_LINK, .link = (uint32_t)h->index};
	table_name(table, h);
	netns__nft_begin(&b);
	netns__nft_new_table(&b, table);
	netns__nft_hook(&b, "from", NF_BR_PRE_ROUTING, NETNS_PRIORITY_FIRST);
	netns__nft_rule(&b, "from", &in, 1, NETNS_DROP, NULL);
	netns__nft_hook(&b, "to", NF_BR_POST_ROUTING, NETNS_PRIORITY_LAST);
	netns__nft_rule(&b, "to", &out, 1, NETNS_DROP, NULL);
	return netns__nft_commit(&b, l->nft);
}

static int down_one(struct dmig_links *l, const struct host_link *h, struct dmig_error **err)
{
	struct netns_link now;
	int r = look(l, h, &now, err);
	if (r < 0 || !now.is_up)
		return r;
	if (now.is_bridge_port && cut_port(l, h) == 0)
		return 0;
	return netns__set_up(l->sock, h->index, false, err);
}

/* ms until the stack has noticed a carrier: 0.2-21 here; up to a second where it limits the rate of such
 * events. */
#define RUNNING_MS 1500
#define RUNNING_POLL_US 200

static void wait_running(int sock, int index)
{
	int64_t deadline = dmig_now_ms() + RUNNING_MS;
	struct netns_link now;
	while (index > 0 && netns__get_link(sock, index, &now, NULL) == 0 && !now.is_running &&
		dmig_now_ms() < deadline) {
		struct timespec pause = {.tv_nsec = RUNNING_POLL_US * 1000};
		nanosleep(&pause, NULL);
	}
}

/* The rules go in any case: also when the link has gone with its container. */
static int up_one(struct dmig_links *l, const struct host_link *h, struct dmig_error **err)
{
	struct netns_nft b;
	struct netns_link now;
	char table[TABLE_NAME_BYTES];
	table_name(table, h);
	netns__nft_begin(&b);
	netns__nft_delete_table(&b, table);
	int opened = netns__nft_commit(&b, l->nft);
	int r = look(l, h, &now, err);
	if (r < 0)
		return r;
	if (!now.is_up) {
		r = netns__set_up(l->sock, h->index, true, err);
		if (r < 0)
			return r;
		wait_running(l->sock, h->index);
		if (l->inside >= 0)
			wait_running(l->inside, h->inner);
		return 0; /* it was down, so it was not held by rules */
	}
	if (opened < 0)
		return dmig_error_set(
			err, -opened, "cannot let network link %s go: %s", h->name, strerror(-opened));
	return 0;
}

int dmig_links_down(struct dmig_links *l, struct dmig_error **err)
{
	for (size_t i = 0; i < l->n; i++) {
		int r = down_one(l, &l->list[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

int dmig_links_up(struct dmig_links *l, struct dmig_error **err)
{
	int first = 0;
	for (size_t i = 0; i < l->n; i++) {
		int r = up_one(l, &l->list[i], first ? NULL : err);
		if (r < 0 && first == 0)
			first = r;
	}
	/* What was asked for while they were cut waits up to a second for its next try. */
	if (l->inside >= 0)
		netns__forget_unresolved(l->inside, NULL);
	return first;
}
