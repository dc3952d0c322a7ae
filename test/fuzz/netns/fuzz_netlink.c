/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of rtnetlink and of the connection tracker. Names of links in them are chosen by the container. */
#include <assert.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "netns/netlink.h"
#include "netns/netns.h"
#include "netns/tcp_table.h"

/* As receive() sees them: many in one buffer, each aligned. */
#define MAX_BYTES 4096

static void run_links(const uint8_t *data, size_t size)
{
	struct dmig_links *l = NULL;
	char text[256];
	size_t n = size < sizeof(text) ? size : sizeof(text) - 1;
	memcpy(text, data, n);
	text[n] = '\0';
	if (dmig_links_parse(text, &l, NULL) == 0)
		dmig_links_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(struct nlmsghdr) uint8_t buf[MAX_BYTES];
	struct netns_link link;
	struct netns_address address;
	struct netns_flow flow;
	run_links(data, size);
	if (size > sizeof(buf))
		size = sizeof(buf);
	memcpy(buf, data, size);
	int left = (int)size;
	for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)buf; NLMSG_OK(h, left);
		h = NLMSG_NEXT(h, left)) {
		if (netns__parse_link(h, h->nlmsg_len, &link) == 1)
			assert(memchr(link.name, 0, sizeof(link.name)) &&
				memchr(link.kind, 0, sizeof(link.kind)));
		netns__parse_address(h, h->nlmsg_len, &address);
		memset(&flow, 0, sizeof(flow));
		netns__parse_dnat(h, h->nlmsg_len, &flow);
	}
	return 0;
}
