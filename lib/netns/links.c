/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "netns/netlink.h"
#include "netns/netns.h"
#include "util/cleanup.h"
#include "util/io.h"

/* One per network of the container; Docker itself gets slow long before. */
#define LINKS_MAX 64

struct host_link {
	int index;
	char name[16];
};

struct dmig_links {
	int sock; /* in our namespace */
	struct host_link list[LINKS_MAX];
	size_t n;
};

static int new_links(struct dmig_links **ret, struct dmig_error **err)
{
	struct dmig_links *l = calloc(1, sizeof(*l));
	if (!l)
		return dmig_error_set(err, ENOMEM, "out of memory");
	l->sock = netns__socket(-1, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (l->sock < 0) {
		int r = dmig_error_set(err, -l->sock, "no netlink socket: %s", strerror(-l->sock));
		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

void dmig_links_free(struct dmig_links *l)
{
	if (!l)
		return;
	close(l->sock);
	free(l);
}

struct inside {
	int index[LINKS_MAX], peer[LINKS_MAX];
	size_t n;
};

static int note_veth(const struct netns_link *link, void *opaque)
{
	struct inside *in = opaque;
	if (!link->is_veth || link->peer_index <= 0)
		return 0;
	if (in->n == LINKS_MAX)
		return -E2BIG;
	in->index[in->n] = link->index;
	in->peer[in->n++] = link->peer_index;
	return 0;
}

/* The number of the peer counts in the peer's namespace, which need not be ours: both ends must name each other. */
static int add_peer(struct dmig_links *l, int index, int peer, struct dmig_error **err)
{
	struct netns_link link;
	cleanup_error struct dmig_error *missing = NULL;
	int r = netns__get_link(l->sock, peer, &link, &missing);
	if (r == -ENODEV || (r == 0 && (!link.is_veth || link.peer_index != index)))
		return 0;
	if (r < 0) {
		if (err && !*err)
			*err = steal_ptr(&missing);
		return r;
	}
	l->list[l->n].index = peer;
	memcpy(l->list[l->n++].name, link.name, sizeof(link.name));
	return 0;
}

int dmig_links_find(int ns_fd, struct dmig_links **ret, struct dmig_error **err)
{
	struct inside in = {0};
	struct dmig_links *l = NULL;
	cleanup_fd int sock = netns__socket(ns_fd, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (sock < 0)
		return dmig_error_set(err, -sock, "cannot enter the container's network: %s", strerror(-sock));
	int r = netns__each_link(sock, note_veth, &in, err);
	if (r == 0)
		r = new_links(&l, err);
	for (size_t i = 0; r == 0 && i < in.n; i++)
		r = add_peer(l, in.index[i], in.peer[i], err);
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

char *dmig_links_format(const struct dmig_links *l)
{
	char *text = strdup("");
	for (size_t i = 0; text && i < l->n; i++) {
		char *longer = dmig_asprintf("%s%s%d:%s", text, i ? "," : "", l->list[i].index, l->list[i].name);
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
	ret->index = (int)index;
	memset(ret->name, 0, sizeof(ret->name));
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
static int set_one(struct dmig_links *l, const struct host_link *h, bool up, struct dmig_error **err)
{
	struct netns_link now;
	int r = netns__get_link(l->sock, h->index, &now, err);
	if (r < 0)
		return r;
	if (strcmp(now.name, h->name))
		return dmig_error_set(err, ENODEV, "network link %d is %s now, not %s", h->index, now.name, h->name);
	return now.is_up == up ? 0 : netns__set_up(l->sock, h->index, up, err);
}

static int set_all(struct dmig_links *l, bool up, struct dmig_error **err)
{
	int first = 0;
	for (size_t i = 0; i < l->n; i++) {
		int r = set_one(l, &l->list[i], up, err);
		if (r < 0 && first == 0)
			first = r;
		if (r < 0 && !up)
			break;
	}
	return first;
}

int dmig_links_down(struct dmig_links *l, struct dmig_error **err)
{
	return set_all(l, false, err);
}

int dmig_links_up(struct dmig_links *l, struct dmig_error **err)
{
	return set_all(l, true, err);
}
