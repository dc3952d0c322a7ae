/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "migrate.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/paths.h"
#include "util/spawn.h"

/* dmigrated asks Docker and makes a socket; only a host that is stuck needs longer. */
#define READY_TIMEOUT_MS 30000
#define READY 'R'
#define MAX_MESSAGE 4096
#define PREFIX "dmigrated: "

struct daemon_start {
	const char *argv[7]; /* NULL-terminated */
	int request_rd, ready_wr;
};

/* Only async-signal-safe calls from here to exec. */
static void become_daemon(const struct daemon_start *d)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	for (int s = 1; s < NSIG; s++)
		sigaction(s, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null < 0 || chdir("/") < 0)
		_exit(DMIG_EXIT_INTERNAL);
	dup2(null, 0);
	dup2(null, 1);
	dup2(d->ready_wr, 2); /* until it detaches; what it has to say before that is for us */
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	fcntl(d->request_rd, F_SETFD, 0);
	fcntl(d->ready_wr, F_SETFD, 0);
	execvp(d->argv[0], (char *const *)(uintptr_t)d->argv);
	static const char text[] = "cannot start dmigrated: is it installed?";
	(void)!write(d->ready_wr, text, sizeof(text) - 1);
	_exit(DMIG_EXIT_INTERNAL);
}

/* Forked twice with a session of its own between: no terminal and no parent of ours. */
static int start_detached(const struct daemon_start *d, struct dmig_error **err)
{
	pid_t pid = fork();
	if (pid < 0)
		return dmig_error_set(err, errno, "fork: %m");
	if (pid == 0) {
		setsid();
		pid_t child = fork();
		if (child == 0)
			become_daemon(d);
		_exit(child < 0 ? errno : 0);
	}
	int status = dmig_wait_pid(pid, -1, -1);
	if (status < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		return dmig_error_set(err, EAGAIN, "cannot start a process for dmigrated");
	return 0;
}

static int wait_ready(int fd, struct dmig_error **err)
{
	char text[MAX_MESSAGE + 1];
	size_t len = 0;
	int64_t deadline = dmig_now_ms() + READY_TIMEOUT_MS;

	while (len < MAX_MESSAGE) {
		int64_t left = deadline - dmig_now_ms();
		if (left <= 0 || dmig_poll_one(fd, POLLIN, (int)left) <= 0)
			return dmig_error_set(err, ETIMEDOUT, "dmigrated is not ready after %d s; see %s/log",
				READY_TIMEOUT_MS / 1000, dmig_state_dir());
		ssize_t n = read(fd, text + len, MAX_MESSAGE - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		/* A message may start with the same letter, but comes in one piece. */
		if (len == 0 && n == 1 && text[0] == READY)
			return 0;
		len += (size_t)n;
	}
	while (len && text[len - 1] == '\n')
		len--;
	text[len] = '\0';
	if (len == 0)
		return dmig_error_set(
			err, ECHILD, "dmigrated ended before it was ready; see %s/log", dmig_state_dir());
	return dmig_error_set(
		err, ECHILD, "%s", strncmp(text, PREFIX, strlen(PREFIX)) ? text : text + strlen(PREFIX));
}

/* A pipe whose ends survive in the daemon under numbers above stdio. */
static int make_pipe(int *rd, int *wr, struct dmig_error **err)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return dmig_error_set(err, errno, "pipe: %m");
	*rd = p[0];
	*wr = p[1];
	return 0;
}

static int hand_over(int fd, const struct dmig_options *o, struct dmig_error **err)
{
	char *json = dmig_options_to_json(o);
	if (!json)
		return dmig_error_set(err, ENOMEM, "out of memory");
	size_t len = strlen(json);
	int r = dmig_write_full(fd, json, len);
	explicit_bzero(json, len);
	free(json);
	/* A daemon that is gone has said why on the other pipe. */
	return r < 0 && r != -EPIPE ? dmig_error_set(err, -r, "cannot talk to dmigrated: %s", strerror(-r))
				    : 0;
}

int dmig_migrate_launch(const struct dmig_options *o, struct dmig_error **err)
{
	cleanup_free char *program = dmig_program_path("dmigrated");
	cleanup_fd int request_rd = -1;
	cleanup_fd int request_wr = -1;
	cleanup_fd int ready_rd = -1;
	cleanup_fd int ready_wr = -1;
	char request[12], ready[12];

	int r = make_pipe(&request_rd, &request_wr, err);
	if (r < 0 || (r = make_pipe(&ready_rd, &ready_wr, err)) < 0)
		return r;
	snprintf(request, sizeof(request), "%d", request_rd);
	snprintf(ready, sizeof(ready), "%d", ready_wr);
	struct daemon_start d = {
		{program, "--source", "--request-fd", request, "--ready-fd", ready}, request_rd, ready_wr};
	r = program ? start_detached(&d, err) : dmig_error_set(err, ENOMEM, "out of memory");
	dmig_closep(&request_rd);
	dmig_closep(&ready_wr);
	if (r == 0)
		r = hand_over(request_wr, o, err);
	dmig_closep(&request_wr);
	return r < 0 ? r : wait_ready(ready_rd, err);
}
