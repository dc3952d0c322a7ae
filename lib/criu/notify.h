/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_NOTIFY_H
#define DMIG_CRIU_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * Where CRIU asks before it goes on. Our CRIU (criu-patches/, notify-socket) sends every action-script stage
 * over one SOCK_SEQPACKET socket and blocks until it is answered; dmigrate-hook does the same for a stock
 * CRIU. The layout of the two packets is that of criu/include/notify-socket.h in the patch. EOF or a wrong
 * answer fails the stage; on dump that means the tasks run on.
 */
enum dmig_criu_stage {
	DMIG_CRIU_OTHER = 0, /* a stage that we need not know */
	DMIG_CRIU_PRE_DUMP,
	DMIG_CRIU_POST_FREEZE, /* all tasks stopped; nothing dumped yet */
	DMIG_CRIU_NETWORK_LOCK,
	DMIG_CRIU_POST_DUMP, /* images complete, tasks stopped and cured */
	DMIG_CRIU_NETWORK_UNLOCK,
	DMIG_CRIU_WAIT_IMAGES, /* restore is warmed up and needs the images now */
	DMIG_CRIU_PRE_RESTORE,
	DMIG_CRIU_ROOT_HOST_PID, /* answer value = pid wanted in CRIU's pid namespace, 0 = any */
	DMIG_CRIU_SETUP_NAMESPACES,
	DMIG_CRIU_POST_SETUP_NAMESPACES,
	DMIG_CRIU_POST_RESTORE,
	DMIG_CRIU_PRE_RESUME, /* everything restored, not one instruction run */
	DMIG_CRIU_POST_RESUME,
};
const char *dmig_criu_stage_name(enum dmig_criu_stage stage);

struct dmig_notify_event {
	enum dmig_criu_stage stage;
	char name[32];  /* as CRIU says it */
	pid_t root_pid; /* as CRIU sees it, 0: none yet */
};

/* One listening socket, one CRIU at a time. Used by one thread. */
struct dmig_notify;
int dmig_notify_new(const char *path, struct dmig_notify **ret, struct dmig_error **err);
void dmig_notify_free(
	struct dmig_notify *n); /* closes (a waiting CRIU sees its stage fail) and removes the socket */
/*
 * The next stage. Waits at most timeout_ms (-1 for ever) -> -ETIMEDOUT. When CRIU closes: -EPIPE; a stage
 * that is open may be waited on, too: then only CRIU's end, the time or cancel_fd come. cancel_fd (or -1)
 * becoming readable: -ECANCELED. Peers that are neither root nor our own user are dropped; a hook's end after
 * its answer is not reported.
 */
int dmig_notify_next(struct dmig_notify *n, int timeout_ms, int cancel_fd, struct dmig_notify_event *ret,
	struct dmig_error **err);
int dmig_notify_answer(struct dmig_notify *n, int ret, int32_t value, struct dmig_error **err);
/* Pollable, the same number all the time: readable when a stage, a new connection or CRIU's end waits. Lent.
 */
int dmig_notify_fd(const struct dmig_notify *n);
/* Process that made the last connection: CRIU, or a dmigrate-hook below it. 0: nobody yet. */
pid_t dmig_notify_peer(const struct dmig_notify *n);
/*
 * Whether the process that waits for the answer to the open stage lives. Its socket is closed before the
 * kernel lets its tracees go: with all tasks frozen first, true means that none has run since the stage
 * began.
 */
bool dmig_notify_waits(const struct dmig_notify *n);
/* Stop serving: an open stage fails, and so does every later one, of CRIU and of a hook. _next() then says
 * -EPIPE. */
void dmig_notify_shut(struct dmig_notify *n);

#endif
