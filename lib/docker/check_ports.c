/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "docker/check.h"

/* Are the ports that the container publishes free here? Asked of Docker, and of the kernel by trying to bind.
 */

struct port {
	const char *spec; /* "80/tcp" */
	const char *host_ip;
	long number;
	bool udp;
};

/* 0: one port. Ranges and "any" are Docker's to choose. */
static int read_port(const char *spec, const json_t *binding, struct port *ret)
{
	const char *text = dmig_docker__text(binding, "HostPort"), *slash = strchr(spec, '/');
	char *end;
	ret->number = strtol(text, &end, 10);
	if (!*text || *end || ret->number <= 0 || ret->number > 65535)
		return -EINVAL;
	if (slash && strcmp(slash, "/tcp") && strcmp(slash, "/udp")) /* sctp may not even be loaded */
		return -EINVAL;
	ret->spec = spec;
	ret->host_ip = dmig_docker__text(binding, "HostIp");
	ret->udp = slash && !strcmp(slash, "/udp");
	return 0;
}

static bool any_address(const char *ip)
{
	return !*ip || !strcmp(ip, "0.0.0.0") || !strcmp(ip, "::");
}

static const char *name_of(const json_t *container)
{
	const char *name = json_string_value(json_array_get(json_object_get(container, "Names"), 0));
	return name ? name + (*name == '/') : "another container";
}

/* The running container that publishes it, or NULL. */
static const char *publisher(const struct dmig_docker__check *k, const struct port *p)
{
	json_t *container, *v;
	size_t i, j;
	json_array_foreach(k->containers, i, container)
		json_array_foreach(json_object_get(container, "Ports"), j, v)
	{
		const char *ip = dmig_docker__text(v, "IP");
		bool same_ip = any_address(ip) || any_address(p->host_ip) || !strcmp(ip, p->host_ip);
		if (same_ip && json_integer_value(json_object_get(v, "PublicPort")) == p->number &&
			!strcmp(dmig_docker__text(v, "Type"), p->udp ? "udp" : "tcp"))
			return name_of(container);
	}
	return NULL;
}

static socklen_t fill(const struct port *p, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	memset(ret, 0, sizeof(*ret));
	if (strchr(p->host_ip, ':')) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)p->number);
		return inet_pton(AF_INET6, p->host_ip, &v6->sin6_addr) == 1 ? sizeof(*v6) : 0;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons((uint16_t)p->number);
	return !*p->host_ip || inet_pton(AF_INET, p->host_ip, &v4->sin_addr) == 1 ? sizeof(*v4) : 0;
}

/* errno of an attempt to have the port, 0 if it worked. */
static int try_bind(const struct port *p)
{
	struct sockaddr_storage a;
	socklen_t len = fill(p, &a);
	if (!len)
		return EADDRNOTAVAIL;
	cleanup_fd int fd = socket(a.ss_family, (p->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	int one = 1;
	/* Connections in their last minute do not count, only who listens. */
	if (fd >= 0 && !p->udp)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 ? errno : 0;
}

static void check_port(struct dmig_docker__check *k, const struct port *p)
{
	const char *who = publisher(k, p);
	int e = who ? 0 : try_bind(p);
	if (who)
		blocker(k,
			"port %ld for %s: container %s publishes it here: stop that one or use another port",
			p->number, p->spec, who);
	else if (e == EADDRINUSE)
		blocker(k, "port %ld for %s: a program of this host uses it: stop it or use another port",
			p->number, p->spec);
	else if (e == EADDRNOTAVAIL)
		blocker(k, "port %ld for %s: address %s is not one of this host: publish without it",
			p->number, p->spec, p->host_ip);
}

int dmig_docker__check_ports(struct dmig_docker__check *k)
{
	const char *spec;
	json_t *list, *v;
	struct port p;
	size_t i;
	json_object_foreach(json_object_get(k->host_config, "PortBindings"), spec, list)
		json_array_foreach(list, i, v) if (read_port(spec, v, &p) == 0) check_port(k, &p);
	return 0;
}
