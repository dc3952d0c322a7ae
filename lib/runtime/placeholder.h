/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_PLACEHOLDER_H
#define DMIG_RUNTIME_PLACEHOLDER_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * dmigrated's part of a target's life between Docker's create and the end of the restore (design.md "Restore
 * through the runtime", docs/design/runtime.md). Owns the target socket, the real `runc create`, the
 * placeholder init P, its network namespace, its zombie, runc's state folder moved aside, the restore bundle.
 *
 * The owner process must be a child subreaper (dmig_target_new sets it), so that P becomes its child. A
 * thread of its own inside serves the socket; every function here may be called from one other thread. If the
 * owner dies, the sockets close: helper and wrappers act on end of file as target.h says; P's zombie goes to
 * the next subreaper above (the supervisor reaps it in dmig_target_recover()).
 *
 * Order: new, wait_started, vacate, restore, [reap when CRIU asks], release at GO, commit once the tasks run;
 * undo from any point before the commit. After undo or recover: Docker removes the container, then
 * dmig_target_record_remove().
 */
struct dmig_target;

struct dmig_target_paths {
	const char *run_dir;  /* /run/dmigrate/ID: ours */
	const char *runc;     /* the real runc */
	const char *criu_dir; /* folder with our criu, NULL: PATH */
};

/* Writes the record ("uncommitted"), listens. container_id as created by Docker. */
int dmig_target_new(const char *container_id, const char *migration_id, const struct dmig_target_paths *paths,
	struct dmig_target **ret, struct dmig_error **err);
/* Closes everything. Neither committed nor undone: the same as if the owner had died. */
void dmig_target_free(struct dmig_target *t);

/*
 * Becomes readable, and stays so, when the target cannot go on: Docker was asked to stop the container (class
 * CANCELLED), helper or placeholder died, runc restore failed. Made for dmig_notify_next()'s cancel_fd;
 * dmig_target_check() says what it is.
 */
int dmig_target_event_fd(const struct dmig_target *t);
int dmig_target_check(struct dmig_target *t, struct dmig_error **err);

/* Wait until Docker's start has reached the waiting helper (START was received). */
int dmig_target_wait_started(struct dmig_target *t, int timeout_ms, struct dmig_error **err);
/* After started: the placeholder's pid, its network namespace (lent fd), the merged root (lent O_PATH fd of
 * the bundle's root.path). */
pid_t dmig_target_pid(const struct dmig_target *t);
int dmig_target_netns_fd(const struct dmig_target *t);
int dmig_target_root_fd(const struct dmig_target *t);
/* Kill P without reaping it, move its runc state aside. After this only restore or undo. */
int dmig_target_vacate(struct dmig_target *t, struct dmig_error **err);

struct dmig_restore_opts {
	const char *images_dir;
	const char *notify_socket; /* path the restoring CRIU connects to (dmig_notify) */
	const char *sandbox_key;   /* netns path to be recorded, NULL: keep the bundle's, or found when
				      external_netns */
	bool external_netns;       /* the dump has it as extRootNetNS */
	bool tcp_close;
	bool wait_images; /* images_dir holds descriptors.json only: CRIU asks (stage WAIT_IMAGES) before it
			     reads the others */
	const char *tty_key; /* name of the terminal in the dump, "tty[RDEV:DEV]"; NULL: no terminal */
	int log_level;       /* of CRIU; runc's own wish, 4, wins as long as CRIU takes it from its caller */
};
/*
 * Let the helper run `runc restore` (on a copy of the bundle with realpath'd binds, no prestart hooks,
 * cgroup-root for runc 1.1 on v2). Returns at once. descriptors.json must be in images_dir, the rest only
 * when CRIU reads it.
 */
int dmig_target_restore(struct dmig_target *t, const struct dmig_restore_opts *opts, struct dmig_error **err);
/* From the notify server, at stage ROOT_HOST_PID: reap P right now and return the pid to ask for. */
int dmig_target_reap(struct dmig_target *t, pid_t *ret_pid, struct dmig_error **err);
/* The helper has reported the end of runc restore: 0, or error with CRIU's last error lines. -ETIMEDOUT. */
int dmig_target_wait_restored(struct dmig_target *t, int timeout_ms, struct dmig_error **err);

/*
 * The helper lets its weapon go: from here the death of dmigrated no longer ends what was restored. Before
 * PRE_RESUME is answered (CRIU fails by itself if nobody answers it) and before the commit is journaled: an
 * error here is an ordinary failure. One round trip to the helper.
 */
int dmig_target_release(struct dmig_target *t, struct dmig_error **err);
/* It runs and is committed: waits for runc's end; record removed, socket closed, state folder of P deleted;
 * from here an ordinary container. */
int dmig_target_commit(struct dmig_target *t, struct dmig_error **err);
/*
 * Before commit: kill what was restored, put runc's state folder back, let the helper make the tombstone, so
 * that Docker sees the container end. The record stays (a `docker start` must not make a fresh copy) until
 * dmig_target_record_remove(). Idempotent.
 */
int dmig_target_undo(struct dmig_target *t, struct dmig_error **err);

/* ---- from files alone: supervisor and recovery, when the owner is dead */

/*
 * The commit was not reached: what undo does. Reaps the zombie if it is our child, lets the helper end, kills
 * whatever is in the container's cgroup, puts state back, removes the socket. Without a helper Docker hears
 * of the end by its own `docker rm -f`.
 */
int dmig_target_recover(const char *container_id, struct dmig_error **err);
/*
 * The commit was decided, but nobody saw what became of it: wait for the helper and runc. 1: it was restored
 * and is an ordinary container from here (it may have ended since). 0: it does not run, and what is left was
 * cleaned up as by recover; whether it ran for a moment is not known. -ETIMEDOUT: the restore goes on still.
 */
int dmig_target_outcome(const char *container_id, int timeout_ms, struct dmig_error **err);
/* Docker has removed the container (or it is an ordinary one): remove the record and all files. Missing is
 * fine. */
int dmig_target_record_remove(const char *container_id);
/* 0: there is a record, it is uncommitted. -ENOENT: none, the container is an ordinary one. */
int dmig_target_record_state(const char *container_id);

#endif
