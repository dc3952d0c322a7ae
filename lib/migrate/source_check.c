/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "migrate/process.h"
#include "migrate/source_internal.h"
#include "migrate/tunnel.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* Whoever answers a dial answers it at once; a firewall that drops needs a limit. */
#define DIAL_MS 5000
/* The destination asks its Docker for a list of things. */
#define CHECK_MS 30000
/* Clock samples: the shortest of these round trips is used. */
#define CLOCK_PINGS 8

static int say_hello(struct source *s, struct dmig_conn *conn, enum dmig_role role, struct dmig_wire_hello *ret_answer,
	struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_hello hello = {
		.version_min = DMIG_WIRE_VERSION_MIN, .version_max = DMIG_WIRE_VERSION, .role = role};
	struct dmig_frame f;
	snprintf(hello.id, sizeof(hello.id), "%s", s->w->id);
	ssize_t n = dmig_wire_encode_hello(&hello, buf, sizeof(buf));
	int r = n < 0 ? dmig_error_set(err, (int)-n, "hello") : 0;
	if (r == 0)
		r = dmig_conn_send(conn, DMIG_MSG_HELLO, 0, buf, (size_t)n, NULL, 0, err);
	if (r == 0)
		r = dmig_conn_recv(conn, DIAL_MS, &f, err);
	if (r < 0)
		return r;
	if (f.type == DMIG_MSG_ABORT) {
		struct dmig_wire_status why;
		r = dmig_wire_decode_abort(f.payload, f.length, &why, err);
		return r < 0 ? r : dmig_wire_status_error(&why, err);
	}
	if (f.type != DMIG_MSG_HELLO)
		return dmig_error_set(err, EPROTO, "%s answers %s to our hello", dmig_conn_peer(conn), dmig_wire_name(f.type));
	r = dmig_wire_decode_hello(f.payload, f.length, ret_answer, err);
	return r < 0 ? r : dmig_wire_accept_version(ret_answer, err);
}

static int open_connection(struct source *s, uint16_t port, int timeout_ms, struct dmig_conn **ret,
	struct dmig_error **err)
{
	struct dmig_address to = {.port = port};
	cleanup_error struct dmig_error *direct = NULL;
	snprintf(to.host, sizeof(to.host), "%s", s->o->host);
	int r = dmig_conn_dial(&to, s->key, timeout_ms, ret, &direct);
	if (r == 0)
		return 0;
	if (!s->o->tunnel || port != s->o->port) {
		if (err && !*err)
			*err = steal_ptr(&direct);
		return r;
	}
	log_info("no direct connection (%s): through ssh", direct->message);
	int fd = dmig_tunnel_open((const char *const *)s->o->tunnel, err);
	if (fd < 0)
		return fd;
	return dmig_conn_client(fd, s->key, timeout_ms * 4, ret, err);
}

int source__dial(struct source *s, enum dmig_role role, uint16_t port, int timeout_ms, struct dmig_conn **ret,
	struct dmig_error **err)
{
	struct dmig_conn *conn = NULL;
	struct dmig_wire_hello answer;
	int r = open_connection(s, port, timeout_ms, &conn, err);
	if (r == 0)
		r = say_hello(s, conn, role, &answer, err);
	if (r < 0) {
		dmig_conn_free(conn);
		dmig_error_wrap(err, "destination %s port %u", s->o->host, port);
		return r;
	}
	if (role == DMIG_ROLE_CONTROL && answer.data_port)
		s->data_port = answer.data_port;
	*ret = conn;
	return 0;
}

int source__connect(struct source *s, struct dmig_error **err)
{
	struct dmig_conn *conn = NULL;
	if (s->o->dry_run && !*s->o->host)
		return 0; /* a check of this side alone */
	int r = dmig_key_parse(s->o->key, strlen(s->o->key), &s->key, err);
	if (r < 0)
		return r;
	s->data_port = s->o->port;
	r = source__dial(s, DMIG_ROLE_CONTROL, s->o->port, DIAL_MS, &conn, err);
	if (r < 0)
		return r;
	dmig_worker_set(s->w, "peer", dmig_conn_peer(conn));
	r = dmig_journal_add(s->w->journal, json_pack("{s:s,s:i}", "rec", "data-port", "data_port", (int)s->data_port), err);
	if (r < 0) {
		dmig_conn_free(conn);
		return r;
	}
	r = dmig_peer_new(conn, DMIG_SIDE_SOURCE, s->w->stop, &s->peer, err);
	return r < 0 ? r : dmig_peer_measure_clock(s->peer, CLOCK_PINGS, DIAL_MS, err);
}

static char *lines_of(char **list)
{
	size_t len = 1;
	for (size_t i = 0; list && list[i]; i++)
		len += strlen(list[i]) + 4;
	char *out = calloc(1, len);
	for (size_t i = 0; out && list && list[i]; i++) {
		if (i)
			strcat(out, "\n  ");
		strcat(out, list[i]);
	}
	return out;
}

static int refuse(const char *side, char **blockers, struct dmig_error **err)
{
	cleanup_free char *text = lines_of(blockers);
	int r = dmig_error_set_class(err, DMIG_ERR_REFUSED, EPERM, "this container cannot be moved as asked:\n  %s",
		text ? text : "out of memory");
	if (err && *err)
		dmig_error_side(*err, !strcmp(side, "source") ? DMIG_SIDE_SOURCE : DMIG_SIDE_DESTINATION);
	return r;
}

static void keep_warnings(struct source *s, char **warnings)
{
	for (size_t i = 0; warnings && warnings[i]; i++)
		json_array_append_new(s->warnings, json_string(warnings[i]));
}

static const char **paths_with(const struct dmig_options *o)
{
	const char **paths = calloc(o->n_binds + 1, sizeof(*paths));
	size_t n = 0;
	for (size_t i = 0; paths && i < o->n_binds; i++)
		if (o->binds[i].mode != DMIG_BIND_REFUSE)
			paths[n++] = o->binds[i].path;
	return paths;
}

static void check_programs(struct dmig_findings *f)
{
	cleanup_free char *criu_dir = dmig_criu_dir();
	cleanup_free char *version = NULL;
	cleanup_error struct dmig_error *e = NULL;
	int features = dmig_criu_probe(criu_dir, &version, &e);
	if (features < 0)
		dmig_findings_add(&f->blockers, "criu: %s: install Dmigrate's CRIU (make install) or Debian's package criu",
			e ? e->message : "not usable");
	else if (!(features & DMIG_CRIU_HAS_NOTIFY_SOCKET))
		dmig_findings_add(&f->warnings, "criu: %s is not patched for Dmigrate: the downtime is longer",
			version ? version : "this CRIU");
}

/* A connection through a published port ends at this host's own address: it cannot follow the container. */
static void check_connections(struct source *s, struct dmig_findings *f)
{
	struct dmig_tcp_counts tcp = {0};
	if (!s->own_netns || dmig_netns_tcp_counts(s->container->pid, &tcp, NULL) < 0)
		return;
	s->tcp_connections = tcp.established;
	if (s->o->tcp == DMIG_TCP_CLOSE) {
		if (tcp.outside)
			dmig_findings_add(&f->warnings,
				"network: %u TCP connections with the outside will be closed (--tcp close)", tcp.outside);
		return;
	}
	if (tcp.published)
		dmig_findings_add(&f->blockers,
			"network: %u TCP connections came through a published port and end at this host's address (%s): "
			"close them with --tcp close", tcp.published, tcp.example);
	if (tcp.from_host)
		dmig_findings_add(&f->warnings,
			"network: %u TCP connections come from this host itself: those of docker-proxy will break", tcp.from_host);
}

/* While the container is frozen its kernel must not answer for it. */
static void check_links(struct source *s, struct dmig_findings *f)
{
	struct dmig_links *links = NULL;
	cleanup_error struct dmig_error *e = NULL;
	cleanup_free char *path = dmig_asprintf("/proc/%d/ns/net", (int)s->container->pid);
	cleanup_fd int ns = s->own_netns && path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (ns < 0)
		return;
	if (dmig_links_find(ns, &links, &e) < 0)
		dmig_findings_add(&f->blockers, "network: %s", e ? e->message : "the container's links cannot be read");
	else if (dmig_links_uncovered(links)[0])
		dmig_findings_add(&f->blockers, "network: only links of Docker's bridge networks can be cut and joined: not %s",
			dmig_links_uncovered(links));
	dmig_links_free(links);
}

static int source_findings(struct source *s, struct dmig_error **err)
{
	cleanup_free const char **binds = paths_with(s->o);
	struct dmig_check_opts opts = {.tcp_close = s->o->tcp == DMIG_TCP_CLOSE,
		.source_keep = s->o->source_after == DMIG_SOURCE_KEEP,
		.bind_share = binds};
	struct dmig_findings f = {0};
	int r = dmig_docker_check_source(s->docker, s->container, &opts, &f, err);
	if (r == 0) {
		check_programs(&f);
		check_connections(s, &f);
		check_links(s, &f);
		keep_warnings(s, f.warnings);
		if (f.blockers && f.blockers[0])
			r = refuse("source", f.blockers, err);
	}
	dmig_findings_clear(&f);
	return r;
}

static int describe(struct source *s, json_t **ret, struct dmig_error **err)
{
	cleanup_free char *text = NULL;
	int r = dmig_docker_describe(s->docker, s->container, &text, err);
	if (r < 0)
		return r;
	json_t *spec = json_loads(text, 0, NULL);
	json_t *options = json_pack("{s:s,s:s,s:b,s:b}", "tcp", s->o->tcp == DMIG_TCP_CLOSE ? "close" : "established",
		"source", s->o->source_after == DMIG_SOURCE_KEEP ? "keep" : "remove", "verbose", s->o->verbose, "own_netns",
		s->own_netns);
	json_t *binds = json_array();
	for (size_t i = 0; i < s->o->n_binds; i++)
		if (s->o->binds[i].mode != DMIG_BIND_REFUSE)
			json_array_append_new(binds, json_string(s->o->binds[i].path));
	if (s->o->name)
		json_object_set_new(options, "name", json_string(s->o->name));
	json_object_set_new(options, "binds", binds);
	*ret = json_pack("{s:o,s:o}", "spec", spec, "options", options);
	return *ret ? 0 : dmig_error_set(err, EINVAL, "cannot describe the container");
}

static char **string_list(json_t *list)
{
	size_t n = json_array_size(list), out = 0;
	char **strings = calloc(n + 1, sizeof(*strings));
	for (size_t i = 0; strings && i < n; i++) {
		const char *text = json_string_value(json_array_get(list, i));
		if (text && (strings[out] = strdup(text)))
			out++;
	}
	return strings;
}

static void free_strings(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

static int destination_findings(struct source *s, struct dmig_error **err)
{
	json_t *body = NULL;
	int r = describe(s, &body, err);
	if (r == 0)
		r = dmig_peer_send_json(s->peer, DMIG_MSG_CHECK, body, err);
	if (r == 0)
		r = dmig_peer_expect_json(s->peer, DMIG_MSG_CHECK_RESULT, CHECK_MS, &s->check_result, err);
	if (r < 0)
		return r;
	char **warnings = string_list(json_object_get(s->check_result, "warnings"));
	char **blockers = string_list(json_object_get(s->check_result, "blockers"));
	keep_warnings(s, warnings);
	if (blockers && blockers[0])
		r = refuse("destination", blockers, err);
	free_strings(warnings);
	free_strings(blockers);
	return r;
}

/* What must be known of the running container before anything is prepared for it. */
static int look_at_container(struct source *s, struct dmig_error **err)
{
	int r = dmig_docker_open(&s->docker, err);
	if (r == 0)
		dmig_docker_set_cancel_fd(s->docker, dmig_stop_fd(s->w->stop)); /* saving an image takes minutes */
	if (r == 0)
		r = dmig_docker_inspect(s->docker, s->o->container, &s->container, err);
	if (r == -ENOENT && err && *err)
		(*err)->class = DMIG_ERR_USAGE; /* most likely mistyped */
	if (r < 0)
		return r;
	if (!s->container->running || s->container->pid <= 0)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, ESRCH,
			"container %s does not run: start it, or copy it with docker save", s->o->container);
	dmig_worker_set(s->w, "container", s->container->id);
	dmig_worker_set(s->w, "name", s->container->name);
	s->own_netns = strcmp(s->container->network_mode, "host") != 0 &&
		strncmp(s->container->network_mode, "container:", 10) != 0;
	s->init_pidfd = (int)syscall(SYS_pidfd_open, s->container->pid, 0);
	if (s->init_pidfd < 0)
		return dmig_error_set(err, errno, "container %s ends right now: %m", s->container->name);
	r = dmig_docker_runc_root(s->container->id, &s->runc_root, err);
	if (r == 0)
		r = dmig_docker_upper_dir(s->docker, s->container->pid, &s->upper, err);
	return r;
}

int source__check(struct source *s, struct dmig_error **err)
{
	int r = look_at_container(s, err);
	if (r == 0)
		r = source_findings(s, err);
	if (r == 0 && s->peer)
		r = destination_findings(s, err);
	return r;
}
