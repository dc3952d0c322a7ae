/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_INTERNAL_H
#define DMIG_RUNTIME_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/args.h"
#include "runtime/message.h"
#include "runtime/placeholder.h"
#include "runtime/record.h"

/* How far a target is. Only ever grows; UNDONE and COMMITTED are ends. */
enum dmig_target_stage {
	STAGE_LISTENING,
	STAGE_CREATING,
	STAGE_CREATED, /* P waits in runc's exec fifo */
	STAGE_STARTED, /* Docker believes that it runs; the helper waits */
	STAGE_VACATED, /* P is a zombie, runc's state aside */
	STAGE_RESTORING,
	STAGE_RELEASED, /* the helper kills no more */
	STAGE_COMMITTED,
	STAGE_UNDONE,
};

/* A wrapper or the helper. */
struct dmig_target_conn {
	int fd;
	uint32_t waits_for; /* request that is not answered yet, 0: none */
};
/* Docker runs a handful at once: exec, health probe, stop, top. */
#define DMIG_TARGET_MAX_CONNS 32

struct dmig_target {
	/* Set by dmig_target_new(), then only read. */
	char *id, *run_dir, *runc, *criu_dir, *socket_path;
	int listen_fd;
	int wake_fd;  /* eventfd: the socket thread looks at stage and stop again */
	int event_fd; /* eventfd for the caller: there is trouble */
	pthread_t thread;

	/* Only the socket thread. */
	struct dmig_target_conn conns[DMIG_TARGET_MAX_CONNS];
	size_t n_conns;

	/* Guards all below. Never held while waiting for another process. */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* CLOCK_MONOTONIC */
	bool stop;
	enum dmig_target_stage stage;
	struct dmig_error *trouble; /* first reason why it cannot go on, NULL: none */

	struct dmig_target_info info; /* written once, before STAGE_CREATED */
	char *log, *devpts;
	bool systemd_cgroup, tty;
	int stdio[3]; /* the container's, until they went to the helper */
	int pidfd, netns_fd, root_fd, devpts_slave;
	bool reaped;

	int helper; /* its connection (also in conns), -1: none */
	pid_t helper_pid;
	bool restored, released, buried; /* what the helper has said */
	int restore_status, bury_errno;
};

/* All of these: lock held. */
void dmig_target__set_stage(struct dmig_target *t, enum dmig_target_stage stage);
void dmig_target__trouble(struct dmig_target *t, enum dmig_error_class class, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int dmig_target__copy_trouble(const struct dmig_target *t, struct dmig_error **err);
void dmig_target__close_stdio(struct dmig_target *t);
/* Wait for a change until deadline_ms: 0, -ETIMEDOUT. */
int dmig_target__wait_change(struct dmig_target *t, int64_t deadline_ms);
/* Reap P if it is our zombie. */
void dmig_target__reap_zombie(struct dmig_target *t);

/* The socket thread's main function. */
void *dmig_target__serve(void *target);
/* One request of a wrapper: lock not held. Answers, or leaves conn->waits_for set. */
void dmig_target__answer(struct dmig_target *t, struct dmig_target_conn *conn, struct dmig_packet *p);
/* Look again at a request that waits. Lock held. */
void dmig_target__answer_waiting(struct dmig_target *t, struct dmig_target_conn *conn);
/* runc create with the wrapper's arguments (argv, NULL-terminated); fills info and descriptors. Lock not
 * held. */
int dmig_target__create(struct dmig_target *t, char **argv, size_t argc, struct dmig_error **err);

/* Last message of runc's JSON log. Caller frees; NULL: none. */
char *dmig_target__runc_message(const char *log);

/* Until runc restore has ended well, whoever can tell. Lock held. */
int dmig_target__wait_restored(struct dmig_target *t, int64_t deadline_ms, struct dmig_error **err);
/* Shared by commit and recovery. */
int dmig_target__fix_bundle(const struct dmig_target_info *info, const char *id, struct dmig_error **err);
/* Until the runc restore of a dead helper has ended: 0, -ETIMEDOUT. */
int dmig_target__wait_runc(const struct dmig_helper_note *note, int timeout_ms);
/* Restored as far as runc knows, and alive. */
bool dmig_target__runs(const struct dmig_target_info *info, const char *id);

/* P's devpts, seen at a folder of ours, and its slave 0. Before P dies. */
int dmig_devpts_take(pid_t pid, const char *folder, int *ret_slave, struct dmig_error **err);
void dmig_devpts_drop(const char *folder);

#endif
