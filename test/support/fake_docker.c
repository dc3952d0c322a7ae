/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/fake_docker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_ROUTES 128
#define MAX_REQUESTS 512
#define MAX_CONNECTIONS 16
#define MAX_HEAD 65536

#define must(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "fake docker: %s failed: %m\n", #condition);                         \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

struct route {
	char method[8], *path;
	int status; /* 0: no answer, -1: raw */
	char *data;
	size_t len;
};

struct request {
	char method[8], *path; /* with its query */
	char *body;
	size_t len;
};

struct fake_docker {
	char dir[64], socket[96], api[8];
	int listener, stop[2];
	int connections[MAX_CONNECTIONS];
	size_t n_connections;
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	struct route routes[MAX_ROUTES];
	size_t n_routes;
	struct request requests[MAX_REQUESTS];
	size_t n_requests;
};

static char *copy(const void *data, size_t len)
{
	char *p = malloc(len + 1);
	must(p);
	if (len)
		memcpy(p, data, len);
	p[len] = '\0';
	return p;
}

/* Does a path with its query fit what a test asked for? */
static bool fits(const char *wanted, const char *path)
{
	if (strchr(wanted, '?'))
		return !strcmp(wanted, path);
	size_t n = strcspn(path, "?");
	return strlen(wanted) == n && !strncmp(wanted, path, n);
}

/* ------------------------------------------------------------------ serving */

static bool read_byte(int fd, char *c)
{
	ssize_t n;
	do
		n = read(fd, c, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

static bool read_all(int fd, char *p, size_t len)
{
	for (; len; p++, len--)
		if (!read_byte(fd, p))
			return false;
	return true;
}

/* Up to and with the empty line. */
static bool read_head(int fd, char *head)
{
	size_t n = 0;
	do {
		must(n < MAX_HEAD - 1);
		if (!read_byte(fd, head + n))
			return false;
		head[++n] = '\0';
	} while (n < 4 || strcmp(head + n - 4, "\r\n\r\n"));
	return true;
}

static bool read_line(int fd, char *line, size_t size)
{
	size_t n = 0;
	do {
		must(n < size - 1);
		if (!read_byte(fd, line + n))
			return false;
	} while (line[n++] != '\n');
	line[n] = '\0';
	return true;
}

static bool read_chunks(int fd, struct request *rq)
{
	char line[64];
	for (;;) {
		if (!read_line(fd, line, sizeof(line)))
			return false;
		size_t n = strtoul(line, NULL, 16);
		rq->body = realloc(rq->body, rq->len + n + 3);
		must(rq->body);
		if (!read_all(fd, rq->body + rq->len, n + 2)) /* with its line end */
			return false;
		rq->len += n;
		rq->body[rq->len] = '\0';
		if (n == 0)
			return true;
	}
}

static bool read_request(int fd, struct request *rq)
{
	static char head[MAX_HEAD]; /* one thread serves */
	char path[8192];
	if (!read_head(fd, head))
		return false;
	must(sscanf(head, "%7s %8191s", rq->method, path) == 2);
	char *p = path;
	if (!strncmp(p, "/v1.", 4))
		p = strchr(p + 1, '/');
	rq->path = copy(p, strlen(p));
	if (strcasestr(head, "\r\nTransfer-Encoding: chunked"))
		return read_chunks(fd, rq);
	char *length = strcasestr(head, "\r\nContent-Length:");
	rq->len = length ? strtoul(length + 17, NULL, 10) : 0;
	rq->body = copy("", 0);
	rq->body = realloc(rq->body, rq->len + 1);
	must(rq->body);
	rq->body[rq->len] = '\0';
	return read_all(fd, rq->body, rq->len);
}

static bool send_all(int fd, const char *p, size_t len)
{
	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool answer(struct fake_docker *f, int fd, const struct request *rq)
{
	static const struct route unknown = {.status = 404};
	const struct route *r = &unknown;
	char head[512];
	for (size_t i = 0; i < f->n_routes; i++)
		if (!strcmp(f->routes[i].method, rq->method) && fits(f->routes[i].path, rq->path))
			r = &f->routes[i];
	if (r->status == 0)
		return true;
	if (r->status == -1) {
		send_all(fd, r->data, r->len);
		return false;
	}
	snprintf(head, sizeof(head), "HTTP/1.1 %d Said\r\n%s%s%sOstype: linux\r\nContent-Length: %zu\r\n\r\n",
		r->status, f->api[0] ? "Api-Version: " : "", f->api, f->api[0] ? "\r\n" : "", r->len);
	return send_all(fd, head, strlen(head)) && send_all(fd, r->data, r->len);
}

/* One request of a connection; false: it is over. */
static bool serve(struct fake_docker *f, int fd)
{
	struct request rq = {0};
	bool ok = read_request(fd, &rq);
	if (!ok) {
		free(rq.path);
		free(rq.body);
		return false;
	}
	pthread_mutex_lock(&f->lock);
	must(f->n_requests < MAX_REQUESTS);
	f->requests[f->n_requests++] = rq;
	ok = answer(f, fd, &rq);
	pthread_mutex_unlock(&f->lock);
	return ok;
}

static void drop(struct fake_docker *f, size_t i)
{
	close(f->connections[i]);
	f->connections[i] = f->connections[--f->n_connections];
}

static void *run(void *opaque)
{
	struct fake_docker *f = opaque;
	for (;;) {
		struct pollfd p[MAX_CONNECTIONS + 2] = {{f->stop[0], POLLIN, 0}, {f->listener, POLLIN, 0}};
		size_t n = f->n_connections;
		for (size_t i = 0; i < n; i++)
			p[i + 2] = (struct pollfd){f->connections[i], POLLIN, 0};
		if (poll(p, n + 2, -1) < 0) {
			must(errno == EINTR);
			continue;
		}
		if (p[0].revents)
			return NULL;
		for (size_t i = n; i-- > 0;)
			if (p[i + 2].revents && !serve(f, f->connections[i]))
				drop(f, i);
		if (p[1].revents) {
			must(f->n_connections < MAX_CONNECTIONS);
			int fd = accept(f->listener, NULL, NULL);
			must(fd >= 0);
			f->connections[f->n_connections++] = fd;
		}
	}
}

/* ------------------------------------------------------------------ what a test calls */

static void listen_on(struct fake_docker *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char host[128];
	must(mkdtemp(strcpy(f->dir, "/tmp/fake-docker-XXXXXX")));
	snprintf(f->socket, sizeof(f->socket), "%s/docker.sock", f->dir);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", f->socket);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(f->listener >= 0 && bind(f->listener, (struct sockaddr *)&a, sizeof(a)) == 0);
	must(listen(f->listener, 16) == 0 && pipe(f->stop) == 0);
	snprintf(host, sizeof(host), "unix://%s", f->socket);
	must(setenv("DOCKER_HOST", host, 1) == 0);
}

struct fake_docker *fake_docker_start(void)
{
	struct fake_docker *f = calloc(1, sizeof(*f));
	must(f && pthread_mutex_init(&f->lock, NULL) == 0);
	listen_on(f);
	fake_docker_api(f, "1.51");
	fake_docker_on(f, "GET", "/_ping", 200, "OK");
	fake_docker_on(f, "GET", "/version", 200, "{\"Version\":\"28.5.2\",\"MinAPIVersion\":\"1.24\"}");
	fake_docker_on(f, "GET", "/info", 200,
		"{\"DockerRootDir\":\"/var/lib/docker\",\"Driver\":\"overlay2\",\"DriverStatus\":[[\"Backing "
		"Filesystem\",\"extfs\"]],\"DefaultRuntime\":\"runc\",\"Runtimes\":{\"runc\":{\"path\":"
		"\"runc\"},"
		"\"dmigrate\":{\"path\":\"/usr/libexec/dmigrate/"
		"dmigrate-runc\"}},\"SecurityOptions\":[\"name=seccomp,"
		"profile=builtin\"],\"Plugins\":{\"Volume\":[\"local\"],\"Network\":[\"bridge\",\"host\","
		"\"ipvlan\","
		"\"macvlan\",\"null\",\"overlay\"],\"Log\":[\"json-file\",\"local\",\"syslog\"]}}");
	must(pthread_create(&f->thread, NULL, run, f) == 0);
	return f;
}

void fake_docker_stop(struct fake_docker *f)
{
	must(write(f->stop[1], "x", 1) == 1);
	pthread_join(f->thread, NULL);
	while (f->n_connections)
		drop(f, 0);
	for (size_t i = 0; i < f->n_routes; i++) {
		free(f->routes[i].path);
		free(f->routes[i].data);
	}
	for (size_t i = 0; i < f->n_requests; i++) {
		free(f->requests[i].path);
		free(f->requests[i].body);
	}
	close(f->listener);
	close(f->stop[0]);
	close(f->stop[1]);
	unlink(f->socket);
	rmdir(f->dir);
	unsetenv("DOCKER_HOST");
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void fake_docker_api(struct fake_docker *f, const char *version)
{
	pthread_mutex_lock(&f->lock);
	snprintf(f->api, sizeof(f->api), "%s", version ? version : "");
	pthread_mutex_unlock(&f->lock);
}

void fake_docker_on_data(
	struct fake_docker *f, const char *method, const char *path, int status, const void *data, size_t len)
{
	pthread_mutex_lock(&f->lock);
	must(f->n_routes < MAX_ROUTES);
	struct route *r = &f->routes[f->n_routes++];
	snprintf(r->method, sizeof(r->method), "%s", method);
	r->path = copy(path, strlen(path));
	r->status = status;
	r->data = copy(data, len);
	r->len = len;
	pthread_mutex_unlock(&f->lock);
}

void fake_docker_on(struct fake_docker *f, const char *method, const char *path, int status, const char *body)
{
	fake_docker_on_data(f, method, path, status, body, body ? strlen(body) : 0);
}

void fake_docker_on_raw(struct fake_docker *f, const char *method, const char *path, const char *bytes)
{
	fake_docker_on_data(f, method, path, -1, bytes, strlen(bytes));
}

static struct request *last(struct fake_docker *f, const char *method, const char *path, unsigned *count)
{
	struct request *found = NULL;
	*count = 0;
	for (size_t i = 0; i < f->n_requests; i++) {
		struct request *rq = &f->requests[i];
		if (strcmp(rq->method, method) || !fits(path, rq->path))
			continue;
		found = rq;
		++*count;
	}
	return found;
}

unsigned fake_docker_count(struct fake_docker *f, const char *method, const char *path)
{
	unsigned n;
	pthread_mutex_lock(&f->lock);
	last(f, method, path, &n);
	pthread_mutex_unlock(&f->lock);
	return n;
}

char *fake_docker_body(struct fake_docker *f, const char *method, const char *path, size_t *ret_len)
{
	unsigned n;
	pthread_mutex_lock(&f->lock);
	struct request *rq = last(f, method, path, &n);
	char *body = rq ? copy(rq->body, rq->len) : NULL;
	if (rq && ret_len)
		*ret_len = rq->len;
	pthread_mutex_unlock(&f->lock);
	return body;
}

char *fake_docker_log(struct fake_docker *f)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	must(out);
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->n_requests; i++)
		fprintf(out, "%s %s\n", f->requests[i].method, f->requests[i].path);
	pthread_mutex_unlock(&f->lock);
	fclose(out);
	return text;
}
