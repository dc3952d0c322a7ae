/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ssh.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/spawn.h"
#include "words.h"

/* Whatever the login shell there prints before the answer; beyond this it is not our dmigrated that talks. */
#define MAX_ANSWER 65536
/* After its answer dmigrated has detached, so the session ends by itself. */
#define END_TIMEOUT_MS 5000
/* What the remote shell reports for a program that it does not find, and ssh for its own failures. */
#define EXIT_NOT_FOUND 127
#define EXIT_SSH 255

static char **bootstrap_argv(const struct dmig_ssh *s, const char *id, struct dmig_cli_ports ports)
{
	struct dmig_words w = {0};
	char range[32];
	/* No terminal, X11 or agent there: nothing but our two pipes. */
	char **base = dmig_words_insert(s->words, DMIG_SSH_TAIL, "-T", "-x", "-a", NULL);
	for (size_t i = 0; base && base[i]; i++)
		dmig_words_add(&w, base[i], NULL);
	w.failed |= !base;
	dmig_words_free(base);
	if (!s->root)
		dmig_words_add(&w, "sudo", "-n", NULL);
	dmig_words_add(&w, s->program, "--bootstrap", "--id", id, NULL);
	if (ports.low) {
		snprintf(range, sizeof(range), "%d-%d", ports.low, ports.high);
		dmig_words_add(&w, "--data-port", range, NULL);
	}
	return dmig_words_take(&w);
}

struct session {
	pid_t pid;
	int pidfd, in, out;
};

static int start(struct session *se, char **argv, struct dmig_error **err)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) {
		int e = errno;
		dmig_closep(&in[0]);
		dmig_closep(&in[1]);
		return dmig_error_set(err, e, "pipe: %s", strerror(e));
	}
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	s.argv = (const char *const *)argv;
	s.stdin_fd = in[0];
	s.stdout_fd = out[1];
	s.stderr_fd = 2; /* ssh talks to the person itself */
	se->pid = dmig_spawn(&s, &se->pidfd, err);
	close(in[0]);
	close(out[1]);
	se->in = in[1];
	se->out = out[0];
	return se->pid < 0 ? se->pid : 0;
}

/* One line that starts like an object: a banner of the login shell may come before it. 0 at end of file. */
static int read_answer(int fd, int64_t deadline, char *buf, size_t size)
{
	size_t len = 0;
	for (;;) {
		int64_t left = deadline - dmig_now_ms();
		int r = left > 0 ? dmig_poll_one(fd, POLLIN, (int)left) : 0;
		if (r <= 0)
			return r < 0 ? r : -ETIMEDOUT;
		ssize_t n = read(fd, buf + len, 1);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		if (n != 1)
			continue;
		if (buf[len] != '\n') {
			if (++len == size - 1)
				return -EMSGSIZE;
			continue;
		}
		buf[len] = '\0';
		if (buf[0] == '{')
			return 1;
		len = 0;
	}
}

static int parse_answer(const char *text, uint16_t *ret_port, struct dmig_error **err)
{
	json_t *obj = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *message = json_string_value(json_object_get(obj, "error"));
	json_int_t port = json_integer_value(json_object_get(obj, "port"));
	int r = 0;
	if (message)
		r = dmig_error_set(err, EREMOTEIO, "%s", message);
	else if (port < 1 || port > 65535)
		r = dmig_error_set(err, EPROTO, "dmigrated there did not answer with a port");
	else
		*ret_port = (uint16_t)port;
	if (r < 0 && err)
		dmig_error_side(*err, DMIG_SIDE_DESTINATION);
	json_decref(obj);
	return r;
}

/* ssh ended without an answer: its exit code tells who failed, its own message has been shown. */
static int explain_end(const struct dmig_ssh *s, int status, struct dmig_error **err)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	if (code == EXIT_SSH)
		return dmig_error_set(err, EHOSTUNREACH, "ssh cannot reach the host");
	if (code == EXIT_NOT_FOUND)
		return dmig_error_set(err, ENOENT, "dmigrated is not installed there (not found in PATH)");
	if (!s->root && code == 1)
		return dmig_error_set(err, EPERM,
			"cannot start dmigrated as root there: use root@ or allow sudo without a "
			"password");
	return dmig_error_set(err, EREMOTEIO, "dmigrated did not start there (exit code %d)", code);
}

static int talk(const struct dmig_ssh *s, struct session *se, const char *key, int timeout_ms,
	uint16_t *ret_port, struct dmig_error **err)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	cleanup_free char *buf = malloc(MAX_ANSWER);
	if (!buf)
		return dmig_error_set(err, ENOMEM, "out of memory");
	/* A failed write shows as an end of file below, where the reason is known. */
	if (dmig_write_full(se->in, key, strlen(key)) == 0 && !strchr(key, '\n'))
		(void)!write(se->in, "\n", 1);
	dmig_closep(&se->in);
	int r = read_answer(se->out, deadline, buf, MAX_ANSWER);
	if (r == -ETIMEDOUT)
		return dmig_error_set(
			err, ETIMEDOUT, "no answer from dmigrated there within %d s", timeout_ms / 1000);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read the answer of dmigrated there: %s", strerror(-r));
	if (r > 0)
		return parse_answer(buf, ret_port, err);
	int status = dmig_wait_pid(se->pid, se->pidfd, END_TIMEOUT_MS);
	if (status < 0)
		return dmig_error_set(err, EREMOTEIO, "dmigrated there did not answer");
	se->pid = -1;
	return explain_end(s, status, err);
}

static void finish(struct session *se)
{
	dmig_closep(&se->in);
	dmig_closep(&se->out);
	if (se->pid > 0 && dmig_wait_pid(se->pid, se->pidfd, END_TIMEOUT_MS) == -ETIMEDOUT) {
		kill(se->pid, SIGKILL);
		dmig_wait_pid(se->pid, se->pidfd, -1);
	}
	dmig_closep(&se->pidfd);
}

int dmig_ssh_bootstrap(const struct dmig_ssh *s, const char *id, const char *key, struct dmig_cli_ports ports,
	int timeout_ms, uint16_t *ret_port, struct dmig_error **err)
{
	struct session se = {.pid = -1, .pidfd = -1, .in = -1, .out = -1};
	char **argv = bootstrap_argv(s, id, ports);
	if (!argv)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = start(&se, argv, err);
	dmig_words_free(argv);
	if (r == 0)
		r = talk(s, &se, key, timeout_ms, ret_port, err);
	/* Without an answer there is nothing to wait for. */
	if (r < 0 && se.pid > 0)
		kill(se.pid, SIGTERM);
	finish(&se);
	return r < 0 ? dmig_error_wrap(err, "%s", s->target) : 0;
}
