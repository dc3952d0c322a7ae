/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "net/internal.h"
#include "util/cleanup.h"
#include "util/io.h"

static int bad_address(const char *text, const char *why, struct dmig_error **err)
{
	return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "bad address '%.*s': %s", 300, text, why);
}

/* Names, IPv4, IPv6 with a zone. What it means is for the resolver; here nothing strange gets past. */
static bool host_ok(const char *s, size_t len, bool brackets)
{
	const char *more = brackets ? ":%." : ".";
	if (len == 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = s[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			     c == '-' || c == '_';
		if (!plain && (!c || !strchr(more, c)))
			return false;
	}
	return s[0] != '-';
}

static bool parse_port(const char *s, uint16_t *ret)
{
	size_t len = strspn(s, "0123456789");
	if (len == 0 || len > 5 || s[len] != '\0')
		return false;
	unsigned long v = strtoul(s, NULL, 10);
	*ret = (uint16_t)v;
	return v > 0 && v <= UINT16_MAX;
}

int dmig_address_parse(
	const char *text, uint16_t default_port, struct dmig_address *ret, struct dmig_error **err)
{
	const char *host = text, *rest;
	bool v6 = false;
	size_t len;

	if (*text == '[') {
		host++;
		len = strcspn(host, "]");
		if (host[len] != ']')
			return bad_address(text, "']' is missing", err);
		rest = host + len + 1;
		v6 = true;
	} else if (strchr(text, ':') != strrchr(text, ':')) {
		/* An IPv6 address without brackets has no room for a port. */
		len = strlen(text);
		rest = host + len;
		v6 = true;
	} else {
		len = strcspn(text, ":");
		rest = host + len;
	}
	if (len >= sizeof(ret->host) || !host_ok(host, len, v6))
		return bad_address(text, "no usable host name", err);
	if (*rest == '\0' && default_port == 0)
		return bad_address(
			text, v6 ? "needs a port: [ADDRESS]:PORT" : "needs a port: HOST:PORT", err);
	uint16_t port = default_port;
	if (*rest != '\0' && (*rest != ':' || !parse_port(rest + 1, &port)))
		return bad_address(text, "the port is not a number from 1 to 65535", err);
	memcpy(ret->host, host, len);
	ret->host[len] = '\0';
	ret->port = port;
	return 0;
}

int dmig_net__address_of(const struct sockaddr *sa, socklen_t len, struct dmig_address *ret)
{
	struct sockaddr_in v4;
	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;
		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
			v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = v6->sin6_port};
			memcpy(&v4.sin_addr, v6->sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
			sa = (const struct sockaddr *)&v4;
			len = sizeof(v4);
		}
	}
	if (getnameinfo(sa, len, ret->host, sizeof(ret->host), NULL, 0, NI_NUMERICHOST) != 0)
		return -EAFNOSUPPORT;
	ret->port = ntohs(sa->sa_family == AF_INET ? ((const struct sockaddr_in *)sa)->sin_port
						   : ((const struct sockaddr_in6 *)sa)->sin6_port);
	return 0;
}

char *dmig_net__address_text(const struct dmig_address *a)
{
	return dmig_asprintf(strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, (unsigned)a->port);
}
