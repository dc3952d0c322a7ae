/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"
#include "wrapper.h"

/*
 * `start` returns as soon as the owner knows the helper: a start that blocks makes inspect, logs and stop of
 * the container hang, and what was asked meanwhile runs right after the restore. The helper stays: forked
 * twice, so that it becomes a child of the shim, with /dev/null on 0-2, because containerd reads our output
 * to its end.
 */

/* What the helper tells the wrapper through a pipe: text of the failure, nothing = started. One byte says
 * that it did speak. */
struct verdict {
	int pipe;
};

static void tell(const struct verdict *v, const char *failure)
{
	if (dmig_write_full(v->pipe, "v", 1) == 0 && failure)
		dmig_write_full(v->pipe, failure, strlen(failure));
	close(v->pipe);
}

static void detach_stdio(void)
{
	int fd = open("/dev/null", O_RDWR);
	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
}

static int say_start(const char *id, struct helper *h, struct dmig_packet *answer)
{
	h->file = dmig_helper_open(id);
	if (h->file < 0)
		return h->file;
	h->sock = connect_owner(id);
	if (h->sock < 0)
		return h->sock;
	int r = dmig_packet_send(h->sock, DMIG_TARGET_START, getpid(), NULL, 0, NULL, 0);
	return r < 0 ? r : dmig_packet_recv(h->sock, DMIG_TARGET_ANSWER_MS, answer);
}

static void __attribute__((noreturn)) be_helper(const char *id, const struct verdict *v)
{
	struct helper h = {.id = id};
	struct dmig_packet answer = DMIG_PACKET_INIT;
	setsid();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "dmigrate-helper");
	int r = say_start(id, &h, &answer);
	if (r < 0) {
		cleanup_free char *text = dmig_asprintf("dmigrated does not answer: %s", strerror(-r));
		tell(v, text ? text : "out of memory");
		_exit(1);
	}
	if (answer.head.type != DMIG_TARGET_STARTED) {
		tell(v, answer.data);
		_exit(1);
	}
	h.pid = answer.head.value;
	dmig_packet_clear(&answer);
	detach_stdio();
	tell(v, NULL);
	helper_main(&h);
}

static int fork_helper(const char *id, int *ret_pipe)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	pid_t child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		close(p[0]);
		pid_t helper = fork();
		if (helper == 0)
			be_helper(id, &(struct verdict){.pipe = p[1]});
		_exit(helper < 0);
	}
	close(p[1]);
	*ret_pipe = p[0];
	waitpid(child, NULL, 0);
	return 0;
}

int start_target(const struct wrapper *w)
{
	char text[1024];
	size_t len = 0;
	cleanup_fd int fd = -1;
	int r = fork_helper(w->args.id, &fd);
	if (r < 0)
		return fail(w, "cannot start the restore helper: %s", strerror(-r));
	while (len < sizeof(text) - 1) {
		ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	if (len == 0)
		return fail(w, "the restore helper died");
	return len == 1 ? 0 : fail(w, "%s", text + 1);
}
