/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

#define DEFAULT_SOCKET "/var/run/docker.sock"

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void init_curl(void)
{
	curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int socket_path(char **ret, struct dmig_error **err)
{
	const char *host = getenv("DOCKER_HOST");
	if (!host || !*host)
		host = "unix://" DEFAULT_SOCKET;
	if (strncmp(host, "unix:///", 8))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
			"DOCKER_HOST=%s: only unix:///path is supported: run this on the Docker host itself",
			host);
	*ret = strdup(host + 7);
	return *ret ? 0 : dmig_docker__oom(err);
}

/* "1.N" to N, else -1. */
static int minor_of(const char *version)
{
	char *end;
	if (strncmp(version, "1.", 2) || version[2] < '0' || version[2] > '9')
		return -1;
	unsigned long n = strtoul(version + 2, &end, 10);
	return *end == '\0' && n < 1000 ? (int)n : -1;
}

static int negotiate(struct dmig_docker *d, struct dmig_error **err)
{
	cleanup_answer struct dmig_docker__answer a = {0};
	struct dmig_docker__request rq = {.method = "GET", .path = "/_ping", .no_version = true};
	int r = dmig_docker__http(d, &rq, &a, err);
	if (r < 0)
		return r;
	if (a.os[0] && strcmp(a.os, "linux"))
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EOPNOTSUPP,
			"Docker at %s runs on %s, not Linux", d->socket, a.os);
	int minor = minor_of(a.api);
	if (minor < API_OLDEST)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EOPNOTSUPP,
			"Docker at %s speaks API %s: 1.%d (Docker 20.10) or newer is needed", d->socket,
			a.api[0] ? a.api : "of unknown version", API_OLDEST);
	d->api_minor = minor < API_NEWEST ? minor : API_NEWEST;
	snprintf(d->api, sizeof(d->api), "1.%d", d->api_minor);
	return 0;
}

static int read_version(struct dmig_docker *d, struct dmig_error **err)
{
	cleanup_json json_t *root = NULL;
	int r = dmig_docker__get(d, &root, err, "/version");
	if (r < 0)
		return r;
	struct dmig_docker__reader rd = {.what = "version of Docker", .err = err};
	int min = minor_of(dmig_docker__str(&rd, root, "MinAPIVersion"));
	d->version = dmig_docker__strdup(&rd, root, "Version");
	if (!rd.failed && min > d->api_minor)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EOPNOTSUPP,
			"Docker %s speaks no API older than 1.%d, we none newer than 1.%d", d->version, min,
			API_NEWEST);
	return rd.failed;
}

static void read_security(struct dmig_docker *d, struct dmig_docker__reader *rd, const json_t *info)
{
	json_t *v;
	size_t i;
	json_array_foreach(dmig_docker__arr(rd, info, "SecurityOptions"), i, v)
	{
		const char *s = json_is_string(v) ? json_string_value(v) : "";
		d->userns_remap |= strstr(s, "name=userns") != NULL;
		d->rootless |= strstr(s, "name=rootless") != NULL;
	}
}

/* DriverStatus is a list of pairs; the containerd store names its snapshotter there. */
static void read_store(struct dmig_docker *d, struct dmig_docker__reader *rd, const json_t *info)
{
	json_t *v;
	size_t i;
	json_array_foreach(dmig_docker__arr(rd, info, "DriverStatus"), i, v)
	{
		const char *key = json_string_value(json_array_get(v, 0));
		const char *value = json_string_value(json_array_get(v, 1));
		if (key && value && !strcmp(key, "driver-type") && strstr(value, "containerd.snapshotter"))
			d->containerd_store = true;
	}
}

static int read_info(struct dmig_docker *d, struct dmig_error **err)
{
	int r = dmig_docker__get(d, &d->info, err, "/info");
	if (r < 0)
		return r;
	const json_t *info = d->info;
	struct dmig_docker__reader rd = {.what = "info of Docker", .err = err};
	d->root_dir = dmig_docker__strdup(&rd, info, "DockerRootDir");
	d->driver = dmig_docker__strdup(&rd, info, "Driver");
	d->default_runtime = dmig_docker__strdup(&rd, info, "DefaultRuntime");
	d->runtimes = dmig_docker__obj(&rd, info, "Runtimes");
	d->plugins = dmig_docker__obj(&rd, info, "Plugins");
	read_security(d, &rd, info);
	read_store(d, &rd, info);
	if (!rd.failed && !dmig_docker__is_path(d->root_dir))
		dmig_docker__fail(&rd, EINVAL, "DockerRootDir is not a path");
	return rd.failed;
}

static int connect_client(struct dmig_docker *d, struct dmig_error **err)
{
	pthread_once(&curl_once, init_curl);
	d->timeout_ms = TIMEOUT_DEFAULT;
	d->cancel_fd = -1;
	d->curl = curl_ready == CURLE_OK ? curl_easy_init() : NULL;
	if (!d->curl)
		return dmig_docker__oom(err);
	int r = socket_path(&d->socket, err);
	if (r == 0)
		r = negotiate(d, err);
	if (r == 0)
		r = read_version(d, err);
	return r < 0 ? r : read_info(d, err);
}

int dmig_docker_open(struct dmig_docker **ret, struct dmig_error **err)
{
	struct dmig_docker *d = calloc(1, sizeof(*d));
	if (!d)
		return dmig_docker__oom(err);
	int r = connect_client(d, err);
	if (r < 0) {
		dmig_docker_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

void dmig_docker_free(struct dmig_docker *d)
{
	if (!d)
		return;
	if (d->curl)
		curl_easy_cleanup(d->curl);
	json_decref(d->info);
	free(d->socket);
	free(d->version);
	free(d->root_dir);
	free(d->driver);
	free(d->default_runtime);
	free(d);
}

void dmig_docker_set_timeout(struct dmig_docker *d, int timeout_ms)
{
	d->timeout_ms = timeout_ms > 0 ? timeout_ms : TIMEOUT_DEFAULT;
}

void dmig_docker_set_cancel_fd(struct dmig_docker *d, int fd)
{
	d->cancel_fd = fd;
}

const char *dmig_docker_version(const struct dmig_docker *d)
{
	return d->version;
}

const char *dmig_docker_api_version(const struct dmig_docker *d)
{
	return d->api;
}

const char *dmig_docker_root_dir(const struct dmig_docker *d)
{
	return d->root_dir;
}

const char *dmig_docker_storage_driver(const struct dmig_docker *d)
{
	return d->driver;
}
