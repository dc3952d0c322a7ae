/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/remains.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/spawn.h"
#include "wrapper.h"

/*
 * A child of the shim that waits for the images, runs `runc restore`, and answers for what was restored until
 * the commit. Armed (from the start): the owner's end of file means kill, put runc's state back, tombstone.
 * After RELEASE it only sees runc to its end. docs/design/runtime.md has the table of deaths.
 */

/* The zombie of P has to be reaped by somebody else first; a reaping pid 1 does it at once. */
#define TOMBSTONE_MS 5000
#define KILL_MS 5000
/* CRIU that is told to stop needs this long to kill and unmount; tens of milliseconds with many tasks. */
#define GRACE_MS 1500
/* Exit code for a runc that was killed by a signal, as a shell says it. */
#define SIGNALLED 128

struct life {
	const struct helper *h;
	bool owner; /* the connection stands */
	bool armed;
	pid_t runc; /* 0: not running */
	int runc_pidfd;
	struct dmig_helper_note note;
};

/* ---- end */

/* Nothing may be left when this returns, except what cannot be killed. */
static int end_all(struct life *l)
{
	cleanup_target_info struct dmig_target_info info = {0};
	int r = dmig_target_info_read(l->h->id, &info, NULL);
	if (r == 0)
		r = dmig_remains_kill(&info, &l->note, GRACE_MS, KILL_MS, NULL);
	if (l->runc) {
		kill(l->runc, SIGKILL);
		waitpid(l->runc, NULL, 0);
	}
	return r < 0 ? r : dmig_state_put_back(&info, l->h->id, NULL);
}

static int bury(struct life *l)
{
	bool was_running = l->note.ended && l->note.status == 0;
	int r = end_all(l);
	/* A restored init that had been handed to the shim is its own tombstone. */
	int buried = was_running ? 0 : dmig_tombstone(l->h->pid, TOMBSTONE_MS);
	l->note.buried = buried == 0;
	dmig_helper_write(l->h->file, &l->note);
	return r < 0 ? r : buried;
}

static void __attribute__((noreturn)) leave(struct life *l)
{
	close(l->h->sock);
	_exit(0);
}

static void __attribute__((noreturn)) undo(struct life *l)
{
	int r = bury(l);
	if (l->owner)
		dmig_packet_send(l->h->sock, DMIG_TARGET_TOMBSTONE, -r, NULL, 0, NULL, 0);
	leave(l);
}

/* ---- runc restore */

static int spawn_restore(struct life *l, const struct dmig_packet *go)
{
	cleanup_free char **strings = NULL;
	size_t n = 0;
	int argc = go->head.value;
	int r = dmig_strings_split(go->data, go->head.length, &strings, &n);
	if (r < 0 || argc < 1 || (size_t)argc > n)
		return -EPROTO;
	cleanup_free const char **argv = calloc((size_t)argc + 1, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	memcpy(argv, strings, (size_t)argc * sizeof(*argv));
	/* The stdio of runc restore becomes the container's: these three or /dev/null, and nothing else is
	 * open. */
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	s.argv = argv;
	s.env = (const char *const *)strings + argc;
	s.stdin_fd = go->fds[0];
	s.stdout_fd = go->fds[1];
	s.stderr_fd = go->fds[2];
	pid_t pid = dmig_spawn(&s, &l->runc_pidfd, NULL);
	if (pid < 0)
		return pid;
	l->runc = pid;
	l->note = (struct dmig_helper_note){.runc = pid, .start = dmig_process_start(pid)};
	return dmig_helper_write(l->h->file, &l->note);
}

static void say_restored(struct life *l, int status)
{
	if (l->owner)
		dmig_packet_send(l->h->sock, DMIG_TARGET_RESTORED, status, NULL, 0, NULL, 0);
}

static void go(struct life *l, struct dmig_packet *p)
{
	int r = l->runc || l->note.ended ? -EALREADY : spawn_restore(l, p);
	/* Ours would keep the container's pipes open after its end. */
	for (size_t i = 0; i < p->n_fds; i++)
		dmig_closep(&p->fds[i]);
	if (r < 0 && !l->runc) {
		l->note.ended = true;
		l->note.status = EXIT_FAILURE;
		say_restored(l, EXIT_FAILURE);
	}
}

static void runc_ended(struct life *l)
{
	int status = dmig_wait_pid(l->runc, l->runc_pidfd, -1);
	dmig_closep(&l->runc_pidfd);
	l->runc = 0;
	l->note.ended = true;
	l->note.status = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + (WTERMSIG(status) & 0x7f);
	dmig_helper_write(l->h->file, &l->note);
	say_restored(l, l->note.status);
}

/* ---- the owner */

static void hear(struct life *l, struct dmig_packet *p)
{
	switch (p->head.type) {
	case DMIG_TARGET_GO:
		go(l, p);
		break;
	case DMIG_TARGET_RELEASE:
		l->armed = false;
		dmig_packet_send(l->h->sock, DMIG_TARGET_OK, 0, NULL, 0, NULL, 0);
		break;
	case DMIG_TARGET_FAILED:
		undo(l);
	case DMIG_TARGET_OK:
		leave(l);
	default:
		break;
	}
}

static void listen_to_owner(struct life *l)
{
	cleanup_packet struct dmig_packet p = DMIG_PACKET_INIT;
	int r = dmig_packet_recv(l->h->sock, 0, &p);
	if (r == 0)
		hear(l, &p);
	else if (r != -ETIMEDOUT)
		l->owner = false;
}

/*
 * Nobody is there to decide. Armed: nothing has been committed. Released: CRIU decides, which fails if it got
 * no answer; when it has failed and nothing lives, Docker must see the end.
 */
static void decide_alone(struct life *l)
{
	cleanup_target_info struct dmig_target_info info = {0};
	if (l->armed)
		undo(l);
	if (l->runc)
		return;
	if (l->note.ended && l->note.status != 0 && dmig_target_info_read(l->h->id, &info, NULL) == 0 &&
		!dmig_remains_alive(&info))
		undo(l);
	leave(l);
}

void helper_main(const struct helper *h)
{
	struct life l = {.h = h, .owner = true, .armed = true, .runc_pidfd = -1};
	for (;;) {
		struct pollfd set[] = {{.fd = l.owner ? h->sock : -1, .events = POLLIN},
			{.fd = l.runc ? l.runc_pidfd : -1, .events = POLLIN}};
		if (!l.owner)
			decide_alone(&l);
		if (poll(set, 2, -1) < 0)
			continue;
		if (set[1].revents)
			runc_ended(&l);
		if (set[0].revents)
			listen_to_owner(&l);
	}
}
