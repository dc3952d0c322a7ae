/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
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
/* What cannot be put back because Docker restarts can be soon: for a minute and a half, then the next command does it. */
#define RECOVER_TRIES 30
#define RECOVER_PAUSE_S 3

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

static void note(const char *line, void *opaque)
{
	(void)opaque;
	log_warn("%s", line);
}

static int recover(void)
{
	cleanup_error struct dmig_error *left = NULL;
	int r = dmig_recover(note, NULL, &left);
	if (r < 0)
		log_error("recovery: %s", left ? left->message : strerror(-r));
	return r;
}

/* Answers on stdout, then leaves the ssh session: our parent ends, we go on. */
static int run_bootstrap(const struct daemon_options *o, struct dmig_error **err)
{
	struct dmig_key *key = NULL;
	cleanup_fd int listen_fd = -1;
	uint16_t port = 0;
	struct dmig_error *why = NULL;
	open_log("destination", o->verbose);
	recover(); /* what an earlier one left would be in the way */
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
	int data = listen_for_data(o, &port, &error);
	if (data < 0) {
		log_error("%s", error->message);
		_exit(DMIG_EXIT_INTERNAL);
	}
	struct dmig_supervise_dest d = {
		.key = key, .allow = &o->allow, .control_fd = fd, .listen_fd = data, .port = port};
	_exit(dmig_supervise_dest(&d));
}

/* Whoever holds a journal is alive and puts things right itself; this is for those that nobody holds. */
static void recover_beside(void)
{
	if (fork() == 0) {
		for (int i = 0; i < RECOVER_TRIES && recover() < 0; i++)
			sleep(RECOVER_PAUSE_S);
		_exit(0);
	}
}

/*
 * Supervisors, and what they leave when they die: we are their subreaper. One that was killed may have left a container
 * half made, with nobody to remove it.
 */
static void reap(int signals)
{
	struct signalfd_siginfo info;
	bool died = false;
	int status;
	while (read(signals, &info, sizeof(info)) == sizeof(info))
		;
	while (waitpid(-1, &status, WNOHANG) > 0)
		died |= status != 0; /* also a worker that outlived its supervisor */
	if (died)
		recover_beside();
}

static int watch_children(void)
{
	sigset_t set;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void listen_forever(const struct daemon_options *o, const struct dmig_key *key, int listener, int signals)
{
	for (;;) {
		struct pollfd p[] = {{.fd = listener, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents)
			reap(signals);
		int fd = p[0].revents ? dmig_accept(listener, 0, NULL) : -1;
		if (fd < 0)
			continue;
		serve_connection(o, key, fd, listener);
		close(fd);
	}
}

static int run_listen(const struct daemon_options *o, struct dmig_error **err)
{
	struct dmig_key *key = NULL;
	struct dmig_address at = {.port = DAEMON_PORT};
	uint16_t port;
	int r = o->address ? dmig_address_parse(o->address, DAEMON_PORT, &at, err) : 0;
	if (r == 0)
		r = dmig_key_load(o->key_file, &key, err);
	if (r < 0)
		return r;
	cleanup_fd int listener = dmig_listen(at.host, at.port, at.port, &port, err);
	cleanup_fd int signals = listener < 0 ? -1 : watch_children();
	if (listener >= 0 && signals < 0)
		r = dmig_error_set(err, errno, "signalfd: %m");
	if (listener < 0 || r < 0) {
		dmig_key_free(key);
		return listener < 0 ? listener : r;
	}
	open_log("destination", o->verbose);
	recover();
	log_info("listening on port %u", port);
	listen_forever(o, key, listener, signals);
	return 0;
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
