/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_DEST_H
#define DMIG_MIGRATE_DEST_H

#include "docker/docker.h"
#include "migrate/worker.h"
#include "net/net.h"

/*
 * The destination's worker. It answers one control connection, takes data connections on listen_fd, restores, resumes on
 * GO and nothing else.
 */
struct dmig_dest_opts {
	const struct dmig_key *key;
	const struct dmig_allow *allow;
	int control_fd; /* accepted TCP connection, or -1: the first one on listen_fd is it. Taken over */
	int listen_fd;	/* for data connections and for the source that asks again; lent */
	uint16_t port;	/* of listen_fd */
};
/* Returns an exit code of report.h. */
int dmig_dest_run(struct dmig_worker *w, const struct dmig_dest_opts *o);

/*
 * After the worker died: what the journal decided is told to a source that asks (QUERY) until it says FINISH, or until
 * timeout_ms passed without a call. w->journal is open.
 */
int dmig_dest_answer_queries(struct dmig_worker *w, const struct dmig_dest_opts *o, int timeout_ms);
/*
 * After a failure or a death: what became of the target. 1: it runs here, all around it is finished. 0: nothing ran and
 * nothing will, undone. Negative: it was let go but does not run, a person has to look; no question is answered.
 */
int dmig_dest_settle(struct dmig_journal *j, struct dmig_error **err);
/* Bring a committed destination to its end from the journal alone: links up, restart policy, record gone. Idempotent. */
int dmig_dest_roll_forward(struct dmig_journal *j, struct dmig_error **err);

#endif
