/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "docker/internal.h"

int dmig_docker__addr_parse(const char *text, struct dmig_docker__addr *ret)
{
	char host[INET6_ADDRSTRLEN + 1];
	struct dmig_docker__addr a = {0};
	size_t n = strcspn(text, "/");
	if (n == 0 || n >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	a.family = strchr(host, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(a.family, host, a.bytes) != 1)
		return -EINVAL;
	int max = a.family == AF_INET ? 32 : 128;
	a.bits = max;
	if (text[n] == '/') {
		char *end;
		unsigned long bits = strtoul(text + n + 1, &end, 10);
		if (text[n + 1] < '0' || text[n + 1] > '9' || *end || bits > (unsigned long)max)
			return -EINVAL;
		a.bits = (int)bits;
	}
	*ret = a;
	return 0;
}

static bool same_prefix(const unsigned char *a, const unsigned char *b, int bits)
{
	int whole = bits / 8, rest = bits % 8;
	if (memcmp(a, b, (size_t)whole))
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) & (0xff << (8 - rest)) & 0xff) == 0;
}

bool dmig_docker__addr_in(const struct dmig_docker__addr *a, const struct dmig_docker__addr *net)
{
	return a->family == net->family && a->bits >= net->bits &&
	       same_prefix(a->bytes, net->bytes, net->bits);
}

bool dmig_docker__addr_overlap(const struct dmig_docker__addr *a, const struct dmig_docker__addr *b)
{
	int bits = a->bits < b->bits ? a->bits : b->bits;
	return a->family == b->family && same_prefix(a->bytes, b->bytes, bits);
}

bool dmig_docker__mac_is_derived(const char *mac, const char *ipv4)
{
	struct dmig_docker__addr a;
	char derived[18];
	if (dmig_docker__addr_parse(ipv4, &a) < 0 || a.family != AF_INET)
		return false;
	snprintf(derived, sizeof(derived), "02:42:%02x:%02x:%02x:%02x", a.bytes[0], a.bytes[1], a.bytes[2],
		a.bytes[3]);
	return !strcasecmp(mac, derived);
}
