/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_PLACEHOLDER_H
#define DMIG_RUNTIME_PLACEHOLDER_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * dmigrated's part of a target's life between Docker's create and the end of the restore (design.md "Restore through the
 * runtime"). Owns the target socket, the real `runc create`, the placeholder init P, its network namespace, its zombie,
 * runc's state folder moved aside, the restore bundle.
 *
 * The owner process must be a child subreaper (dmig_target_new sets it), so that P becomes its child. A thread of its own
 * inside serves the socket; every function here may be called from one other thread.
 * If the owner dies, the sockets close: helper and wrappers act on end of file as target.h says; P's zombie goes to the next
 * subreaper above (the supervisor reaps it).
 */
struct dmig_target;

struct dmig_target_paths {
	const char *run_dir;   /* /run/dmigrate/ID: ours */
	const char *runc;      /* the real runc */
	const char *criu_dir;  /* folder with our criu, NULL: PATH */
};

/* Writes the record ("uncommitted"), listens. container_id as created by Docker. */
int dmig_target_new(const char *container_id, const char *migration_id, const struct dmig_target_paths *paths,
	struct dmig_target **ret, struct dmig_error **err);
/* Wait until Docker's start has reached the waiting helper (START was received). */
int dmig_target_wait_started(struct dmig_target *t, int timeout_ms, struct dmig_error **err);
/* After started: the placeholder's pid, its network namespace (lent fd), the merged root (lent O_PATH fd of the bundle's root.path). */
pid_t dmig_target_pid(const struct dmig_target *t);
int dmig_target_netns_fd(const struct dmig_target *t);
int dmig_target_root_fd(const struct dmig_target *t);
/* Kill P without reaping it, move its runc state aside. After this only restore or undo. */
int dmig_target_vacate(struct dmig_target *t, struct dmig_error **err);

struct dmig_restore_opts {
	const char *images_dir;
	const char *notify_socket; /* path the restoring CRIU connects to (dmig_notify) */
	const char *sandbox_key;   /* netns path to be recorded, NULL: keep the bundle's */
	bool external_netns, tcp_close, tty;
	bool wait_images; /* images_dir holds descriptors.json only: CRIU asks (stage WAIT_IMAGES) before it reads the others */
	int log_level;
};
/* Let the helper run `runc restore` (on a copy of the bundle with realpath'd binds, no prestart hooks, cgroup-root for runc 1.1 on v2). Returns at once. */
int dmig_target_restore(struct dmig_target *t, const struct dmig_restore_opts *opts, struct dmig_error **err);
/* From the notify server, at stage ROOT_HOST_PID: reap P right now and return the pid to ask for. */
int dmig_target_reap(struct dmig_target *t, pid_t *ret_pid, struct dmig_error **err);
/* The helper has reported the end of runc restore: 0, or error with CRIU's last error lines. -ETIMEDOUT. */
int dmig_target_wait_restored(struct dmig_target *t, int timeout_ms, struct dmig_error **err);
/*
 * The commit is decided and journaled: from here the helper must not kill what was restored when we die (RELEASE in
 * target.h). Called right before CRIU is let go.
 */
int dmig_target_release(struct dmig_target *t, struct dmig_error **err);
/* It runs and is committed: record removed, socket closed, state folder of P deleted; from here an ordinary container. */
int dmig_target_commit(struct dmig_target *t, struct dmig_error **err);
/*
 * Before commit: kill what was restored, put runc's state folder back, let the helper make the tombstone, so that Docker sees
 * the container end. Afterwards the caller removes the container. Idempotent.
 */
int dmig_target_undo(struct dmig_target *t, struct dmig_error **err);
void dmig_target_free(struct dmig_target *t);

/*
 * The same clean-up from files alone, when the owner died: used by the supervisor and by recovery. Kills whatever runs in the
 * container's cgroup if the record says uncommitted, puts state back, reaps the zombie if it is our child, removes record and socket.
 */
int dmig_target_recover(const char *container_id, struct dmig_error **err);
/* Who may have run: 1 = record says committed (absent), 0 = uncommitted, -ENOENT = no trace. */
int dmig_target_record_state(const char *container_id);

#endif
