/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/control_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "migrate/control.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

struct client {
	int fd; /* -1: free */
	bool watching;
};

struct dmig_control_server {
	char *path;
	int fd;
	struct client clients[DMIG_CONTROL_MAX_CLIENTS];
	dmig_control_request_fn *fn;
	void *opaque;
	json_t *status;
	int64_t started_ms;
	/* For the rate: what was done at some moment at least a second ago. */
	int64_t rate_ms;
	json_int_t rate_done;
	double rate;
};

int dmig_control_server_new(const char *id, dmig_control_request_fn *fn, void *opaque, struct dmig_control_server **ret,
	struct dmig_error **err)
{
	struct dmig_control_server *s = calloc(1, sizeof(*s));
	if (!s)
		return dmig_error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < DMIG_CONTROL_MAX_CLIENTS; i++)
		s->clients[i].fd = -1;
	s->fn = fn;
	s->opaque = opaque;
	s->status = json_object();
	s->started_ms = dmig_now_ms();
	s->path = dmig_asprintf("%s/%s/control.sock", dmig_run_dir(), id);
	s->fd = s->path ? dmig_unix_listen(s->path) : -ENOMEM;
	if (s->fd < 0) {
		int r = dmig_error_set(err, -s->fd, "cannot listen on %s: %s", s->path ? s->path : "", strerror(-s->fd));
		dmig_control_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void drop(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	*c = (struct client){.fd = -1};
}

void dmig_control_server_free(struct dmig_control_server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < DMIG_CONTROL_MAX_CLIENTS; i++)
		drop(&s->clients[i]);
	if (s->fd >= 0) {
		close(s->fd);
		unlink(s->path);
	}
	free(s->path);
	json_decref(s->status);
	free(s);
}

void dmig_control_server_leave(struct dmig_control_server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < DMIG_CONTROL_MAX_CLIENTS; i++)
		drop(&s->clients[i]);
	dmig_closep(&s->fd);
}

size_t dmig_control_server_fill(struct dmig_control_server *s, struct pollfd *p)
{
	size_t n = 0;
	p[n++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
	for (size_t i = 0; i < DMIG_CONTROL_MAX_CLIENTS; i++)
		p[n++] = (struct pollfd){.fd = s->clients[i].fd, .events = POLLIN};
	return n;
}

static void tell(struct client *c, json_t *event)
{
	cleanup_free char *text = json_dumps(event, JSON_COMPACT);
	if (!text || send(c->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno != EAGAIN) /* a slow watcher misses a line, a dead one goes */
			drop(c);
	}
}

static json_t *status_event(struct dmig_control_server *s)
{
	int64_t now = dmig_now_ms();
	json_t *e = json_copy(s->status);
	json_object_set_new(e, "event", json_string("status"));
	json_object_set_new(e, "elapsed_ms", json_integer(now - s->started_ms));
	json_t *bytes = json_deep_copy(json_object_get(s->status, "bytes"));
	if (!bytes)
		bytes = json_object();
	json_int_t done = json_integer_value(json_object_get(bytes, "image")) +
		json_integer_value(json_object_get(bytes, "files")) + json_integer_value(json_object_get(bytes, "memory"));
	json_int_t total = json_integer_value(json_object_get(bytes, "total"));
	if (now - s->rate_ms >= 1000) {
		s->rate = s->rate_ms ? (double)(done - s->rate_done) * 1000.0 / (double)(now - s->rate_ms) : 0;
		s->rate_ms = now;
		s->rate_done = done;
	}
	json_object_set_new(bytes, "done", json_integer(done));
	json_object_set_new(bytes, "rate", json_integer((json_int_t)s->rate));
	json_object_set_new(e, "bytes", bytes);
	json_object_set_new(e, "eta_ms", s->rate > 0 && total > done
						  ? json_integer((json_int_t)((double)(total - done) * 1000.0 / s->rate))
						  : json_null());
	return e;
}

static void tell_status(struct dmig_control_server *s, struct client *c)
{
	json_t *e = status_event(s);
	tell(c, e);
	json_decref(e);
}

static void answer(struct dmig_control_server *s, struct client *c, json_t *request)
{
	const char *op = json_string_value(json_object_get(request, "op"));
	if (op && (!strcmp(op, "status") || !strcmp(op, "watch"))) {
		c->watching = !strcmp(op, "watch");
		tell_status(s, c);
		return;
	}
	const char *problem = op ? s->fn(op, request, s->opaque) : "the request has no \"op\"";
	json_t *e = problem ? json_pack("{s:s,s:s}", "event", "error", "message", problem) : json_pack("{s:s}", "event", "ok");
	tell(c, e);
	json_decref(e);
}

static void hear(struct dmig_control_server *s, struct client *c)
{
	char buf[4096];
	ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(c);
		return;
	}
	json_t *request = json_loadb(buf, (size_t)n, 0, NULL);
	answer(s, c, request);
	json_decref(request);
}

static void take_client(struct dmig_control_server *s)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	for (size_t i = 0; i < DMIG_CONTROL_MAX_CLIENTS && dmig_unix_peer_uid(fd) == 0; i++) {
		if (s->clients[i].fd < 0) {
			s->clients[i].fd = fd;
			return;
		}
	}
	close(fd);
}

void dmig_control_server_serve(struct dmig_control_server *s, const struct pollfd *p, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (p[i].revents && s->clients[i - 1].fd == p[i].fd && p[i].fd >= 0)
			hear(s, &s->clients[i - 1]);
	if (n && p[0].revents)
		take_client(s);
}

void dmig_control_server_status(struct dmig_control_server *s, json_t *status)
{
	json_decref(s->status);
	s->status = status;
	for (size_t i = 0; i < DMIG_CONTROL_MAX_CLIENTS; i++)
		if (s->clients[i].fd >= 0 && s->clients[i].watching)
			tell_status(s, &s->clients[i]);
}

void dmig_control_server_end(struct dmig_control_server *s, json_t *report)
{
	json_t *e = json_pack("{s:s,s:o}", "event", "end", "report", report);
	for (size_t i = 0; i < DMIG_CONTROL_MAX_CLIENTS; i++)
		if (s->clients[i].fd >= 0 && s->clients[i].watching)
			tell(&s->clients[i], e);
	json_decref(e);
}

json_t *dmig_control_server_last(struct dmig_control_server *s)
{
	return s->status;
}
