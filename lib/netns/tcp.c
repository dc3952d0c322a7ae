/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "netns/netlink.h"
#include "netns/tcp_table.h"
#include "util/cleanup.h"
#include "util/io.h"

/* 150 bytes a connection: room for some hundred thousand. */
#define MAX_TABLE_BYTES (64u << 20)

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void netns__flows_clear(struct netns_flows *f)
{
	free(f->list);
	*f = (struct netns_flows){0};
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct netns_flow)); /* no holes: 16 + 16 + 2 + 2 */
}
_Static_assert(sizeof(struct netns_flow) == 36, "flows are compared byte by byte");

void netns__flows_sort(struct netns_flows *f)
{
	if (f->n)
		qsort(f->list, f->n, sizeof(*f->list), by_bytes);
}

bool netns__has_flow(const struct netns_flows *f, const struct netns_flow *flow)
{
	return f->n && bsearch(flow, f->list, f->n, sizeof(*f->list), by_bytes);
}

static void address_text(const uint8_t address[16], char text[INET6_ADDRSTRLEN + 2])
{
	char plain[INET6_ADDRSTRLEN];
	if (memcmp(address, mapped, sizeof(mapped)) == 0)
		snprintf(text, INET6_ADDRSTRLEN + 2, "%s",
			inet_ntop(AF_INET, address + 12, plain, sizeof(plain)));
	else
		snprintf(text, INET6_ADDRSTRLEN + 2, "[%s]",
			inet_ntop(AF_INET6, address, plain, sizeof(plain)));
}

char *netns__flow_text(const struct netns_flow *f)
{
	char local[INET6_ADDRSTRLEN + 2], remote[INET6_ADDRSTRLEN + 2];
	address_text(f->local, local);
	address_text(f->remote, remote);
	return dmig_asprintf("%s:%u -> %s:%u", remote, f->remote_port, local, f->local_port);
}

static bool is_loopback(const uint8_t address[16])
{
	static const uint8_t one[16] = {[15] = 1};
	if (memcmp(address, mapped, sizeof(mapped)) == 0)
		return address[12] == 127;
	return memcmp(address, one, sizeof(one)) == 0;
}

/* Digits of the address as 32-bit words, each printed as the host's number; so the bytes are those of the
 * network. */
static int parse_address(const char *hex, uint8_t ret[16])
{
	size_t words = strlen(hex) / 8;
	if (strlen(hex) % 8 || (words != 1 && words != 4))
		return -EPROTO;
	memcpy(ret, mapped, sizeof(mapped));
	for (size_t i = 0; i < words; i++) {
		char digits[9] = "";
		memcpy(digits, hex + i * 8, 8);
		uint32_t word = (uint32_t)strtoul(digits, NULL, 16);
		memcpy(ret + (words == 1 ? 12 : i * 4), &word, sizeof(word));
	}
	return 0;
}

static int parse_line(const char *line, struct netns_flow *flow, unsigned *state)
{
	char local[33], remote[33];
	unsigned local_port, remote_port;
	if (sscanf(line, " %*u: %32[0-9A-F]:%4x %32[0-9A-F]:%4x %2x", local, &local_port, remote,
		    &remote_port, state) != 5)
		return -EPROTO;
	flow->local_port = (uint16_t)local_port;
	flow->remote_port = (uint16_t)remote_port;
	int r = parse_address(local, flow->local);
	return r < 0 ? r : parse_address(remote, flow->remote);
}

static int add_flow(struct netns_flows *f, const struct netns_flow *flow)
{
	if ((f->n & (f->n - 1)) == 0) { /* full at each power of two */
		struct netns_flow *bigger = reallocarray(f->list, f->n ? f->n * 2 : 1, sizeof(*f->list));
		if (!bigger)
			return -ENOMEM;
		f->list = bigger;
	}
	f->list[f->n++] = *flow;
	return 0;
}

int netns__read_tcp(char *table, struct dmig_tcp_counts *counts, struct netns_flows *flows)
{
	char *save = NULL;
	char *line = strtok_r(table, "\n", &save); /* headings */
	while (line && (line = strtok_r(NULL, "\n", &save))) {
		struct netns_flow flow = {0};
		unsigned state;
		int r = parse_line(line, &flow, &state);
		if (r < 0)
			return r;
		counts->listening += state == NETNS_TCP_LISTEN;
		if (state != NETNS_TCP_ESTABLISHED)
			continue;
		counts->established++;
		if (memcmp(flow.local, flow.remote, sizeof(flow.local)) && !is_loopback(flow.remote))
			counts->outside++;
		r = add_flow(flows, &flow);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_tables(
	pid_t pid, struct dmig_tcp_counts *counts, struct netns_flows *flows, struct dmig_error **err)
{
	static const char *const names[] = {"tcp", "tcp6"};
	for (size_t i = 0; i < 2; i++) {
		cleanup_free char *path = dmig_asprintf("/proc/%d/net/%s", (int)pid, names[i]);
		cleanup_free char *table = NULL;
		int r = path ? dmig_read_file(path, MAX_TABLE_BYTES, &table, NULL) : -ENOMEM;
		if (r == -ENOENT && i == 1)
			continue; /* no IPv6 in this kernel */
		if (r == 0)
			r = netns__read_tcp(table, counts, flows);
		if (r < 0)
			return dmig_error_set(err, -r, "cannot read %s: %s", path ? path : "", strerror(-r));
	}
	return 0;
}

struct own {
	const struct netns_flows *flows;
	unsigned found;
};

static int count_from(const struct netns_address *address, void *opaque)
{
	struct own *o = opaque;
	uint8_t bytes[16];
	if (address->family == AF_INET) {
		memcpy(bytes, mapped, sizeof(mapped));
		memcpy(bytes + 12, address->bytes, 4);
	} else
		memcpy(bytes, address->bytes, 16);
	if (is_loopback(bytes))
		return 0;
	for (size_t i = 0; i < o->flows->n; i++)
		o->found += memcmp(o->flows->list[i].remote, bytes, 16) == 0;
	return 0;
}

static int count_from_host(
	const struct netns_flows *flows, struct dmig_tcp_counts *counts, struct dmig_error **err)
{
	struct own o = {.flows = flows};
	cleanup_fd int sock = netns__socket(-1, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (sock < 0)
		return dmig_error_set(err, -sock, "no netlink socket: %s", strerror(-sock));
	int r = netns__each_address(sock, count_from, &o, err);
	counts->from_host = o.found;
	return r;
}

int dmig_netns_tcp_counts(pid_t pid, struct dmig_tcp_counts *ret, struct dmig_error **err)
{
	struct netns_flows flows = {0};
	*ret = (struct dmig_tcp_counts){0};
	int r = read_tables(pid, ret, &flows, err);
	netns__flows_sort(&flows);
	if (r == 0)
		r = count_from_host(&flows, ret, err);
	if (r == 0)
		r = netns__count_published(&flows, ret, err);
	netns__flows_clear(&flows);
	return r;
}
