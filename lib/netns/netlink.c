/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "netns/netlink.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/net_namespace.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/cleanup.h"

/* The kernel's dumps come in pieces of at most 32 KiB (NLMSG_GOODSIZE of the dump buffer). */
#define BUFFER_BYTES (64 << 10)

struct make {
	int ns_fd, domain, type, protocol, result;
};

static void *make_socket(void *opaque)
{
	struct make *m = opaque;
	if (m->ns_fd >= 0 && setns(m->ns_fd, CLONE_NEWNET) < 0) {
		m->result = -errno;
		return NULL;
	}
	m->result = socket(m->domain, m->type | SOCK_CLOEXEC, m->protocol);
	if (m->result < 0)
		m->result = -errno;
	return NULL;
}

int netns__socket(int ns_fd, int domain, int type, int protocol)
{
	struct make m = {ns_fd, domain, type, protocol, -1};
	pthread_t thread;
	int r = pthread_create(&thread, NULL, make_socket, &m);
	if (r)
		return -r;
	pthread_join(thread, NULL);
	return m.result;
}

struct request {
	struct nlmsghdr h;
	union {
		struct ifinfomsg link;
		struct ifaddrmsg address;
		struct ndmsg neighbour;
		struct {
			struct rtgenmsg gen;
			struct rtattr attr __attribute__((aligned(RTA_ALIGNTO)));
			int fd;
		} nsid;
	};
	uint8_t attributes[32]; /* of a neighbour: NDA_DST */
};

static int send_bytes(int sock, const void *message, size_t len)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	ssize_t n;
	do
		n = sendto(sock, message, len, MSG_NOSIGNAL, (struct sockaddr *)&kernel, sizeof(kernel));
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int send_request(int sock, struct request *q, size_t body)
{
	q->h.nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	return send_bytes(sock, q, q->h.nlmsg_len);
}

/* Answers until the kernel says done (dump) or acknowledges. fn's non-zero answer is kept, the rest is read
 * and dropped. */
static int receive(int sock, netns_message_fn *fn, void *opaque)
{
	cleanup_free char *buf = malloc(BUFFER_BYTES);
	int result = 0;
	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = recv(sock, buf, BUFFER_BYTES, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		unsigned left = (unsigned)n;
		for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)buf; NLMSG_OK(h, left);
			h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return result;
			if (h->nlmsg_type == NLMSG_ERROR) {
				struct nlmsgerr *e = NLMSG_DATA(h);
				if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
					return -EPROTO;
				return e->error ? e->error : result;
			}
			if (fn && result == 0)
				result = fn(h, h->nlmsg_len, opaque);
		}
	}
}

int netns__ask(int sock, const void *request, size_t len, netns_message_fn *fn, void *opaque)
{
	int r = send_bytes(sock, request, len);
	return r < 0 ? r : receive(sock, fn, opaque);
}

/* Strings of the kernel end with a NUL inside their length, but need not. */
static void copy_string(char *to, size_t size, const struct rtattr *a)
{
	size_t len = RTA_PAYLOAD(a);
	if (len >= size)
		len = size - 1;
	memcpy(to, RTA_DATA(a), len);
	to[len] = '\0';
}

static void link_info(const struct rtattr *a, int left, struct netns_link *ret)
{
	char slave[16] = "";
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_INFO_KIND)
			copy_string(ret->kind, sizeof(ret->kind), a);
		else if (a->rta_type == IFLA_INFO_SLAVE_KIND)
			copy_string(slave, sizeof(slave), a);
	}
	ret->is_veth = strcmp(ret->kind, "veth") == 0;
	ret->is_bridge_port = strcmp(slave, "bridge") == 0;
}

static void link_attribute(const struct rtattr *a, struct netns_link *ret)
{
	size_t len = RTA_PAYLOAD(a);
	const void *data = RTA_DATA(a);
	switch (a->rta_type) {
	case IFLA_IFNAME:
		copy_string(ret->name, sizeof(ret->name), a);
		break;
	case IFLA_LINK:
		if (len == sizeof(int))
			memcpy(&ret->peer_index, data, sizeof(int));
		break;
	case IFLA_ADDRESS:
		ret->has_mac = len == sizeof(ret->mac);
		if (ret->has_mac)
			memcpy(ret->mac, data, sizeof(ret->mac));
		break;
	case IFLA_LINK_NETNSID:
		if (len == sizeof(int))
			memcpy(&ret->peer_nsid, data, sizeof(int));
		break;
	case IFLA_MASTER:
		if (len == sizeof(int))
			memcpy(&ret->master, data, sizeof(int));
		break;
	case IFLA_LINKINFO:
		link_info(data, (int)len, ret);
		break;
	}
}

int netns__parse_link(const struct nlmsghdr *h, size_t len, struct netns_link *ret)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	if (len < sizeof(*h) || h->nlmsg_len > len || h->nlmsg_type != RTM_NEWLINK)
		return 0;
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*info)))
		return -EPROTO;
	*ret = (struct netns_link){.index = info->ifi_index,
		.peer_nsid = -1,
		.is_up = info->ifi_flags & IFF_UP,
		.is_running = info->ifi_flags & IFF_RUNNING,
		.is_loopback = info->ifi_type == ARPHRD_LOOPBACK};
	int left = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*info)));
	for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left))
		link_attribute(a, ret);
	return 1;
}

int netns__parse_address(const struct nlmsghdr *h, size_t len, struct netns_address *ret)
{
	const struct ifaddrmsg *info = NLMSG_DATA(h);
	if (len < sizeof(*h) || h->nlmsg_len > len || h->nlmsg_type != RTM_NEWADDR)
		return 0;
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*info)))
		return -EPROTO;
	size_t size = info->ifa_family == AF_INET ? 4 : info->ifa_family == AF_INET6 ? 16 : 0;
	bool found = false;
	*ret = (struct netns_address){.index = (int)info->ifa_index, .family = info->ifa_family};
	int left = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*info)));
	for (const struct rtattr *a = IFA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		/* IFA_LOCAL is the interface's own address; on point-to-point links IFA_ADDRESS is the peer's
		 */
		if ((a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !found)) && size &&
			RTA_PAYLOAD(a) == size) {
			memcpy(ret->bytes, RTA_DATA(a), size);
			found = true;
		}
	}
	return found;
}

struct each {
	netns_link_fn *link;
	netns_address_fn *address;
	void *opaque;
};

static int one_link(const struct nlmsghdr *h, size_t len, void *opaque)
{
	struct each *e = opaque;
	struct netns_link link;
	int r = netns__parse_link(h, len, &link);
	return r == 1 ? e->link(&link, e->opaque) : r;
}

static int one_address(const struct nlmsghdr *h, size_t len, void *opaque)
{
	struct each *e = opaque;
	struct netns_address address;
	int r = netns__parse_address(h, len, &address);
	return r == 1 ? e->address(&address, e->opaque) : r;
}

int netns__each_link(int sock, netns_link_fn *fn, void *opaque, struct dmig_error **err)
{
	struct each e = {.link = fn, .opaque = opaque};
	struct request q = {.h = {.nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	int r = send_request(sock, &q, sizeof(q.link));
	if (r == 0)
		r = receive(sock, one_link, &e);
	return r < 0 ? dmig_error_set(err, -r, "cannot list network links: %s", strerror(-r)) : r;
}

int netns__each_address(int sock, netns_address_fn *fn, void *opaque, struct dmig_error **err)
{
	struct each e = {.address = fn, .opaque = opaque};
	struct request q = {.h = {.nlmsg_type = RTM_GETADDR, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	int r = send_request(sock, &q, sizeof(q.address));
	if (r == 0)
		r = receive(sock, one_address, &e);
	return r < 0 ? dmig_error_set(err, -r, "cannot list network addresses: %s", strerror(-r)) : r;
}

static int keep_link(const struct netns_link *link, void *opaque)
{
	*(struct netns_link *)opaque = *link;
	return 0;
}

int netns__get_link(int sock, int index, struct netns_link *ret, struct dmig_error **err)
{
	struct netns_link found = {0};
	struct each e = {.link = keep_link, .opaque = &found};
	struct request q = {.h = {.nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.link = {.ifi_index = index}};
	int r = send_request(sock, &q, sizeof(q.link));
	if (r == 0)
		r = receive(sock, one_link, &e);
	if (r == 0 && found.index != index)
		r = -ENODEV;
	if (r < 0)
		return dmig_error_set(err, -r, "network link %d: %s", index, strerror(-r));
	*ret = found;
	return 0;
}

static int keep_nsid(const struct nlmsghdr *h, size_t len, void *opaque)
{
	if (h->nlmsg_type != RTM_NEWNSID || len < NLMSG_LENGTH(NLMSG_ALIGN(sizeof(struct rtgenmsg))))
		return 0;
	const struct rtattr *a =
		(const struct rtattr *)((const char *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(struct rtgenmsg)));
	int left = (int)(len - NLMSG_LENGTH(NLMSG_ALIGN(sizeof(struct rtgenmsg))));
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == NETNSA_NSID && RTA_PAYLOAD(a) == sizeof(int))
			memcpy(opaque, RTA_DATA(a), sizeof(int));
	return 0;
}

int netns__nsid(int sock, int ns_fd, int *ret)
{
	struct request q = {.h = {.nlmsg_type = RTM_GETNSID, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.nsid = {.gen = {.rtgen_family = AF_UNSPEC},
			.attr = {.rta_type = NETNSA_FD, .rta_len = RTA_LENGTH(sizeof(int))},
			.fd = ns_fd}};
	*ret = NETNSA_NSID_NOT_ASSIGNED;
	int r = send_request(sock, &q, sizeof(q.nsid));
	return r < 0 ? r : receive(sock, keep_nsid, ret);
}

int netns__set_up(int sock, int index, bool up, struct dmig_error **err)
{
	struct request q = {.h = {.nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.link = {.ifi_index = index, .ifi_flags = up ? IFF_UP : 0, .ifi_change = IFF_UP}};
	int r = send_request(sock, &q, sizeof(q.link));
	if (r == 0)
		r = receive(sock, NULL, NULL);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot set network link %d %s: %s", index, up ? "up" : "down",
			strerror(-r));
	return 0;
}

/* Entries that one container has while it is being restored: its peers on the local network. */
#define MAX_UNRESOLVED 256

struct unresolved {
	struct request list[MAX_UNRESOLVED];
	size_t len[MAX_UNRESOLVED];
	size_t n;
};

static int note_unresolved(const struct nlmsghdr *h, size_t len, void *opaque)
{
	struct unresolved *u = opaque;
	const struct ndmsg *nd = NLMSG_DATA(h);
	if (h->nlmsg_type != RTM_NEWNEIGH || len < NLMSG_LENGTH(sizeof(*nd)) || u->n == MAX_UNRESOLVED ||
		!(nd->ndm_state & (NUD_INCOMPLETE | NUD_FAILED | NUD_PROBE)))
		return 0;
	unsigned left = (unsigned)(len - NLMSG_LENGTH(sizeof(*nd)));
	const struct rtattr *a =
		(const struct rtattr *)(const void *)((const char *)nd + NLMSG_ALIGN(sizeof(*nd)));
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		struct request *q = &u->list[u->n];
		if (a->rta_type != NDA_DST || a->rta_len > sizeof(q->attributes))
			continue;
		*q = (struct request){
			.h = {.nlmsg_type = RTM_DELNEIGH, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
			.neighbour = *nd};
		memcpy((char *)&q->neighbour + NLMSG_ALIGN(sizeof(*nd)), a, a->rta_len);
		u->len[u->n++] = NLMSG_ALIGN(sizeof(*nd)) + a->rta_len;
		break;
	}
	return 0;
}

int netns__forget_unresolved(int sock, struct dmig_error **err)
{
	struct request q = {.h = {.nlmsg_type = RTM_GETNEIGH, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	cleanup_free struct unresolved *u = calloc(1, sizeof(*u));
	if (!u)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = send_request(sock, &q, sizeof(q.neighbour));
	if (r == 0)
		r = receive(sock, note_unresolved, u);
	for (size_t i = 0; r == 0 && i < u->n; i++) {
		r = send_request(sock, &u->list[i], u->len[i]);
		if (r == 0)
			r = receive(sock, NULL, NULL);
		if (r == -ENOENT)
			r = 0; /* it went by itself */
	}
	return r < 0 ? dmig_error_set(err, -r, "cannot forget unresolved neighbours: %s", strerror(-r)) : 0;
}
