/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dmigrated.h"
#include "migrate/control.h"
#include "migrate/report.h"
#include "migrate/supervisor.h"
#include "net/net.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"
#include "wire/proto.h"

/* A request is some hundred bytes; a key line less. */
#define MAX_REQUEST (256 << 10)
#define MAX_KEY_LINE 512

/* Logs of all migrations of this host: small, kept by the service manager or logrotate. */
static void open_log(const char *tag, bool verbose)
{
	if (dmig_mkdir_p(dmig_state_dir(), 0700) < 0)
		return;
	cleanup_free char *path = dmig_asprintf("%s/log", dmig_state_dir());
	int fd = open(path ? path : "/dev/null", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	dmig_log_to_fd(fd, verbose ? DMIG_LOG_DEBUG : DMIG_LOG_INFO, tag);
}

/* Away from the terminal: closing it must not hurt a migration. */
static void detach_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

static int read_all(int fd, size_t max, char **ret, size_t *ret_len, struct dmig_error **err)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int r = dmig_read_file(path, max, ret, ret_len);
	return r < 0 ? dmig_error_set(err, -r, "cannot read the request: %s", strerror(-r)) : 0;
}

static int run_source(const struct daemon_options *o, struct dmig_error **err)
{
	struct dmig_options request;
	cleanup_free char *text = NULL;
	size_t len;
	if (o->request_fd < 0)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "--source needs --request-fd");
	int r = read_all(o->request_fd, MAX_REQUEST, &text, &len, err);
	if (r == 0)
		r = dmig_options_from_json(text, len, &request, err);
	if (text)
		explicit_bzero(text, len);
	if (r < 0)
		return r;
	close(o->request_fd);
	if (o->ready_fd >= 0)
		fcntl(o->ready_fd, F_SETFD, FD_CLOEXEC);
	setsid();
	detach_stdio();
	if (chdir("/") < 0)
		log_warn("chdir: %m");
	open_log("source", request.verbose || o->verbose);
	r = dmig_supervise_source(&request, o->ready_fd);
	dmig_options_clear(&request);
	return r;
}

/* ---------------------------------------------------------------- destination */

/* The data port is where everything of this migration comes in; the source learns it by HELLO or from our answer to ssh. */
static int listen_for_data(const struct daemon_options *o, uint16_t *ret_port, struct dmig_error **err)
{
	return dmig_listen("", o->port_low, o->port_high, ret_port, err);
}

static int read_key_line(struct dmig_key **ret, struct dmig_error **err)
{
	char line[MAX_KEY_LINE];
	size_t len = 0;
	while (len < sizeof(line)) {
		ssize_t n = read(0, line + len, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || line[len] == '\n')
			break;
		len++;
	}
	int r = dmig_key_parse(line, len, ret, err);
	explicit_bzero(line, sizeof(line));
	return r;
}

static bool is_id(const char *id)
{
	return id && strlen(id) == DMIG_WIRE_ID_LEN && strspn(id, "0123456789abcdef") == DMIG_WIRE_ID_LEN;
}

static int prepare_bootstrap(const struct daemon_options *o, struct dmig_key **key, int *listen_fd, uint16_t *port,
	struct dmig_error **err)
{
	if (!is_id(o->id))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "--bootstrap needs --id with 16 hexadecimal digits");
	int r = read_key_line(key, err);
	if (r < 0)
		return r;
	*listen_fd = listen_for_data(o, port, err);
	return *listen_fd < 0 ? *listen_fd : 0;
}

/* Answers on stdout, then leaves the ssh session: our parent ends, we go on. */
static int run_bootstrap(const struct daemon_options *o, struct dmig_error **err)
{
	struct dmig_key *key = NULL;
	cleanup_fd int listen_fd = -1;
	uint16_t port = 0;
	struct dmig_error *why = NULL;
	int r = prepare_bootstrap(o, &key, &listen_fd, &port, &why);
	if (r < 0) {
		json_t *answer = json_pack("{s:s}", "error", why->message);
		json_dumpf(answer, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(answer);
		dmig_error_free(why);
		return DMIG_EXIT_INTERNAL;
	}
	pid_t pid = fork();
	if (pid < 0)
		return dmig_error_set(err, errno, "fork: %m");
	if (pid > 0) {
		printf("{\"port\":%u,\"version\":\"%s\"}\n", port, DMIG_VERSION);
		return 0;
	}
	setsid();
	detach_stdio();
	if (chdir("/") < 0)
		log_warn("chdir: %m");
	open_log("destination", o->verbose);
	struct dmig_supervise_dest d = {
		.key = key, .allow = &o->allow, .id = o->id, .control_fd = -1, .listen_fd = listen_fd, .port = port};
	_exit(dmig_supervise_dest(&d));
}

/* One supervisor per connection. It ends by itself; nobody waits for it. */
static void serve_connection(const struct daemon_options *o, const struct dmig_key *key, int fd, int listener)
{
	pid_t pid = fork();
	if (pid != 0)
		return;
	cleanup_error struct dmig_error *error = NULL;
	uint16_t port = 0;
	close(listener);
	setsid();
	signal(SIGCHLD, SIG_DFL);
	int data = listen_for_data(o, &port, &error);
	if (data < 0) {
		log_error("%s", error->message);
		_exit(DMIG_EXIT_INTERNAL);
	}
	struct dmig_supervise_dest d = {
		.key = key, .allow = &o->allow, .control_fd = fd, .listen_fd = data, .port = port};
	_exit(dmig_supervise_dest(&d));
}

static void note(const char *line, void *opaque)
{
	(void)opaque;
	log_warn("%s", line);
}

static int run_listen(const struct daemon_options *o, struct dmig_error **err)
{
	struct dmig_key *key = NULL;
	struct dmig_address at = {.port = DAEMON_PORT};
	cleanup_error struct dmig_error *left = NULL;
	uint16_t port;
	int r = o->address ? dmig_address_parse(o->address, DAEMON_PORT, &at, err) : 0;
	if (r == 0)
		r = dmig_key_load(o->key_file, &key, err);
	if (r < 0)
		return r;
	cleanup_fd int listener = dmig_listen(at.host, at.port, at.port, &port, err);
	if (listener < 0) {
		dmig_key_free(key);
		return listener;
	}
	open_log("destination", o->verbose);
	if (dmig_recover(note, NULL, &left) < 0)
		log_error("recovery: %s", left->message);
	signal(SIGCHLD, SIG_IGN); /* the kernel reaps our supervisors */
	log_info("listening on port %u", port);
	for (;;) {
		int fd = dmig_accept(listener, -1, NULL);
		if (fd >= 0)
			serve_connection(o, key, fd, listener);
		if (fd >= 0)
			close(fd);
	}
}

int daemon_run(const struct daemon_options *o, struct dmig_error **err)
{
	signal(SIGPIPE, SIG_IGN);
	if (geteuid() != 0)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EPERM, "dmigrated needs root");
	switch (o->mode) {
	case DAEMON_SOURCE:
		return run_source(o, err);
	case DAEMON_BOOTSTRAP:
		return run_bootstrap(o, err);
	default:
		return run_listen(o, err);
	}
}
