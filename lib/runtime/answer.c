/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* What dmigrate-runc asks, and what it is told at each stage. */

static void say(struct dmig_target_conn *conn, enum dmig_target_type type, int value, const char *text)
{
	conn->waits_for = 0;
	dmig_packet_send_text(conn->fd, type, value, text);
}

static void say_ok(struct dmig_target_conn *conn, enum dmig_target_action action)
{
	say(conn, DMIG_TARGET_OK, (int)action, "");
}

static void say_failed(struct dmig_target_conn *conn, int code, const char *text)
{
	say(conn, DMIG_TARGET_FAILED, code, text);
}

/* ---- create, start */

static void answer_create(struct dmig_target *t, struct dmig_target_conn *conn, struct dmig_packet *p)
{
	cleanup_error struct dmig_error *err = NULL;
	cleanup_free char **argv = NULL;
	size_t argc = 0;

	pthread_mutex_lock(&t->lock);
	bool first = t->stage == STAGE_LISTENING && !t->trouble;
	if (first)
		t->stage = STAGE_CREATING;
	for (size_t i = 0; first && p->n_fds == 3 && i < 3; i++)
		t->stdio[i] = steal_fd(&p->fds[i]);
	pthread_mutex_unlock(&t->lock);
	if (!first)
		return say_failed(
			conn, EEXIST, "this container is the target of a migration and was created already");

	int r = dmig_strings_split(p->data, p->head.length, &argv, &argc);
	r = r < 0 ? dmig_error_set(&err, -r, "bad arguments") : dmig_target__create(t, argv, argc, &err);
	pthread_mutex_lock(&t->lock);
	if (r < 0) {
		dmig_target__trouble(t, DMIG_ERR_FAILED, -r, "runc create failed: %s", err->message);
		dmig_target__close_stdio(t);
		say_failed(conn, -r, err->message);
	} else {
		dmig_target__set_stage(t, STAGE_CREATED);
		say(conn, DMIG_TARGET_CREATED, t->info.pid, "");
	}
	pthread_mutex_unlock(&t->lock);
}

/* The number that the helper believes to have must be the one that we see: tombstone and restore count in it.
 */
static bool same_pid_namespace(int fd, int claimed)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.pid > 0 &&
	       cred.pid == claimed;
}

static void answer_start(struct dmig_target *t, struct dmig_target_conn *conn, struct dmig_packet *p)
{
	pthread_mutex_lock(&t->lock);
	if (t->stage != STAGE_CREATED || t->trouble)
		say_failed(conn, EBUSY,
			t->trouble ? t->trouble->message : "the migration is not ready for a start");
	else if (!same_pid_namespace(conn->fd, p->head.value)) {
		dmig_target__trouble(t, DMIG_ERR_REFUSED, EXDEV,
			"dmigrated and containerd-shim are not in the same pid namespace");
		say_failed(conn, EXDEV, t->trouble->message);
	} else {
		t->helper = conn->fd;
		t->helper_pid = p->head.value;
		say(conn, DMIG_TARGET_STARTED, t->info.pid, "");
		dmig_target__set_stage(t, STAGE_STARTED);
	}
	pthread_mutex_unlock(&t->lock);
}

/* ---- what goes on meanwhile; lock held in all of these */

/* The real runc has a container to work on: P before the start, the restored one after the release, P's
 * remains at the end. */
static bool runc_knows(const struct dmig_target *t)
{
	return t->stage <= STAGE_CREATED || t->stage >= STAGE_RELEASED;
}

static void answer_undone_kill(struct dmig_target *t, struct dmig_target_conn *conn)
{
	say_ok(conn, t->buried && t->bury_errno == 0 ? DMIG_TARGET_DONE : DMIG_TARGET_DO_TOMBSTONE);
}

/*
 * docker stop, kill, rm -f. A signal that ends things cancels the migration; the conductor then undoes, and
 * the helper's tombstone tells Docker. Others would have to wait and then hit the application at a moment
 * nobody chose: refused.
 */
static void answer_kill(struct dmig_target *t, struct dmig_target_conn *conn, int sig)
{
	if (t->stage == STAGE_UNDONE)
		return answer_undone_kill(t, conn);
	if (runc_knows(t)) {
		if (t->stage <= STAGE_CREATED)
			dmig_target__trouble(t, DMIG_ERR_CANCELLED, ECANCELED,
				"the container was killed before its start");
		return say_ok(conn, DMIG_TARGET_PASS);
	}
	if (sig == 0)
		return say_ok(conn, DMIG_TARGET_DONE);
	if (sig != SIGTERM && sig != SIGKILL && sig != SIGINT && sig != SIGQUIT)
		return say_failed(
			conn, EBUSY, "the container is being migrated here and takes no signals yet");
	dmig_target__trouble(
		t, DMIG_ERR_CANCELLED, ECANCELED, "Docker was asked to stop the container (signal %d)", sig);
	if (t->helper >= 0)
		say_ok(conn, DMIG_TARGET_DONE);
	else
		conn->waits_for = DMIG_TARGET_KILL;
}

/* After an exit that Docker saw, or when it gives the container up because the shim died. */
static void answer_delete(struct dmig_target *t, struct dmig_target_conn *conn)
{
	if (t->stage == STAGE_CREATED)
		dmig_target__trouble(
			t, DMIG_ERR_CANCELLED, ECANCELED, "Docker removed the container before its start");
	if (runc_knows(t))
		return say_ok(conn, DMIG_TARGET_PASS);
	dmig_target__trouble(t, DMIG_ERR_CANCELLED, ECANCELED, "Docker gave the container up");
	conn->waits_for = DMIG_TARGET_DELETE;
}

static void answer_exec(struct dmig_target *t, struct dmig_target_conn *conn)
{
	if (t->stage == STAGE_COMMITTED)
		say_ok(conn, DMIG_TARGET_PASS);
	else if (t->trouble || t->stage == STAGE_UNDONE)
		say_failed(conn, ESRCH, "the migration of this container to this host failed");
	else
		conn->waits_for = DMIG_TARGET_EXEC_WAIT;
}

static char *state_json(const struct dmig_target *t)
{
	json_t *o = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:s}", "ociVersion", "1.0.2", "id", t->id,
		"pid", (int)t->info.pid, "status", "running", "bundle", t->info.bundle, "rootfs", "", "owner",
		"");
	char *text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	json_decref(o);
	return text;
}

static void answer_state(struct dmig_target *t, struct dmig_target_conn *conn)
{
	if (runc_knows(t))
		return say_ok(conn, DMIG_TARGET_PASS);
	cleanup_free char *text = state_json(t);
	if (text)
		say(conn, DMIG_TARGET_STATE, t->info.pid, text);
	else
		say_failed(conn, ENOMEM, "out of memory");
}

void dmig_target__answer_waiting(struct dmig_target *t, struct dmig_target_conn *conn)
{
	switch (conn->waits_for) {
	case DMIG_TARGET_EXEC_WAIT:
		answer_exec(t, conn);
		break;
	case DMIG_TARGET_KILL:
		if (t->stage == STAGE_UNDONE)
			answer_undone_kill(t, conn);
		break;
	case DMIG_TARGET_DELETE:
		if (runc_knows(t))
			say_ok(conn, DMIG_TARGET_PASS);
		break;
	default:
		break;
	}
}

void dmig_target__answer(struct dmig_target *t, struct dmig_target_conn *conn, struct dmig_packet *p)
{
	if (p->head.type == DMIG_TARGET_CREATE)
		return answer_create(t, conn, p);
	if (p->head.type == DMIG_TARGET_START)
		return answer_start(t, conn, p);

	pthread_mutex_lock(&t->lock);
	switch (p->head.type) {
	case DMIG_TARGET_KILL:
		answer_kill(t, conn, p->head.value);
		break;
	case DMIG_TARGET_DELETE:
		answer_delete(t, conn);
		break;
	case DMIG_TARGET_EXEC_WAIT:
		answer_exec(t, conn);
		break;
	case DMIG_TARGET_STATE:
		answer_state(t, conn);
		break;
	default:
		say_failed(conn, EPROTO, "unknown request");
	}
	pthread_mutex_unlock(&t->lock);
}
