/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* Peers that are not root are dropped; so is whoever comes when all places are taken. */
static void accept_one(struct dmig_target *t)
{
	cleanup_fd int fd = accept4(t->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 || dmig_unix_peer_uid(fd) != 0)
		return;
	if (t->n_conns == DMIG_TARGET_MAX_CONNS) {
		dmig_packet_send_text(fd, DMIG_TARGET_FAILED, EBUSY, "too many requests at once");
		return;
	}
	t->conns[t->n_conns++] = (struct dmig_target_conn){.fd = steal_fd(&fd)};
}

/* After the release runc and CRIU go on without it. */
static void helper_gone(struct dmig_target *t)
{
	t->helper = -1;
	if (!t->buried && t->stage < STAGE_RELEASED)
		dmig_target__trouble(t, DMIG_ERR_FAILED, EPIPE, "the restore helper died");
	pthread_cond_broadcast(&t->changed);
}

static void drop_conn(struct dmig_target *t, size_t i)
{
	pthread_mutex_lock(&t->lock);
	if (t->conns[i].fd == t->helper)
		helper_gone(t);
	pthread_mutex_unlock(&t->lock);
	close(t->conns[i].fd);
	t->conns[i] = t->conns[--t->n_conns];
}

static void note_restored(struct dmig_target *t, int status)
{
	t->restored = true;
	t->restore_status = status;
	if (status != 0)
		dmig_target__trouble(t, DMIG_ERR_FAILED, EIO, "runc restore failed (exit code %d)", status);
}

/* What the helper says. false: it talks nonsense. */
static bool hear_helper(struct dmig_target *t, const struct dmig_packet *p)
{
	bool known = true;
	pthread_mutex_lock(&t->lock);
	switch (p->head.type) {
	case DMIG_TARGET_RESTORED:
		note_restored(t, p->head.value);
		break;
	case DMIG_TARGET_OK:
		t->released = true;
		break;
	case DMIG_TARGET_TOMBSTONE:
		t->buried = true;
		t->bury_errno = p->head.value;
		break;
	default:
		known = false;
	}
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	return known;
}

/* false: the connection is over. */
static bool hear(struct dmig_target *t, struct dmig_target_conn *conn)
{
	cleanup_packet struct dmig_packet p = DMIG_PACKET_INIT;
	int r = dmig_packet_recv(conn->fd, 0, &p);
	if (r == -ETIMEDOUT)
		return true;
	if (r < 0) {
		if (r != -EPIPE)
			log_warn("target %.12s: bad message: %s", t->id, strerror(-r));
		return false;
	}
	pthread_mutex_lock(&t->lock);
	bool is_helper = conn->fd == t->helper;
	pthread_mutex_unlock(&t->lock);
	if (is_helper)
		return hear_helper(t, &p);
	if (conn->waits_for)
		return false; /* one request per connection */
	dmig_target__answer(t, conn, &p);
	return true;
}

static void look_at_waiting(struct dmig_target *t)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n_conns; i++)
		if (t->conns[i].waits_for)
			dmig_target__answer_waiting(t, &t->conns[i]);
	pthread_mutex_unlock(&t->lock);
}

/* P died and we did not kill it: nothing can become of this target. */
static void placeholder_gone(struct dmig_target *t)
{
	pthread_mutex_lock(&t->lock);
	if (t->stage < STAGE_VACATED)
		dmig_target__trouble(t, DMIG_ERR_FAILED, ESRCH, "the waiting container was killed");
	pthread_mutex_unlock(&t->lock);
}

#define FIXED 3 /* wake, listen, P */

static size_t poll_set(struct dmig_target *t, struct pollfd *set)
{
	pthread_mutex_lock(&t->lock);
	bool watch = t->stage >= STAGE_CREATED && t->stage < STAGE_VACATED && !t->trouble;
	set[0] = (struct pollfd){.fd = t->wake_fd, .events = POLLIN};
	set[1] = (struct pollfd){.fd = t->listen_fd, .events = POLLIN};
	set[2] = (struct pollfd){.fd = watch ? t->pidfd : -1, .events = POLLIN};
	pthread_mutex_unlock(&t->lock);
	for (size_t i = 0; i < t->n_conns; i++)
		set[FIXED + i] = (struct pollfd){.fd = t->conns[i].fd, .events = POLLIN};
	return FIXED + t->n_conns;
}

static bool should_stop(struct dmig_target *t)
{
	uint64_t n;
	ssize_t ignored = read(t->wake_fd, &n, sizeof(n));
	(void)ignored;
	pthread_mutex_lock(&t->lock);
	bool stop = t->stop;
	pthread_mutex_unlock(&t->lock);
	return stop;
}

void *dmig_target__serve(void *target)
{
	struct dmig_target *t = target;
	struct pollfd set[FIXED + DMIG_TARGET_MAX_CONNS];
	while (!should_stop(t)) {
		size_t n = poll_set(t, set);
		if (poll(set, n, -1) < 0)
			continue; /* EINTR, ENOMEM */
		/* From the end: dropping one moves the last into its place. */
		for (size_t i = n; i-- > FIXED;)
			if (set[i].revents && !hear(t, &t->conns[i - FIXED]))
				drop_conn(t, i - FIXED);
		if (set[2].revents)
			placeholder_gone(t);
		if (set[1].revents)
			accept_one(t);
		look_at_waiting(t);
	}
	return NULL;
}
