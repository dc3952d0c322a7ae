/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_DEST_INTERNAL_H
#define DMIG_MIGRATE_DEST_INTERNAL_H

#include "criu/notify.h"
#include "docker/docker.h"
#include "fs/tree.h"
#include "migrate/dest.h"
#include "migrate/peer.h"
#include "netns/netns.h"
#include "runtime/placeholder.h"

/* Shared by the files of the destination: dest.c (messages), dest_prepare.c, dest_streams.c, dest_restore.c. */
#define MAX_DATA_THREADS 16 /* connections over a migration's life: two for data, some for reconnecting */

struct dest {
	struct dmig_worker *w;
	const struct dmig_dest_opts *o;
	struct dmig_peer *peer;
	enum dmig_phase phase; /* what was done last */

	struct dmig_docker *docker;
	struct dmig_spec *spec;
	bool tcp_close, own_netns, verbose, source_keep;
	char **binds; /* bind sources that were allowed by --bind */
	char *image_id;
	char *container_id;
	struct dmig_container *container; /* as created here: where its volumes are */
	char *images_dir, *tty_key;

	struct dmig_target *target;
	struct dmig_notify *notify;
	struct dmig_links *links;
	struct dmig_announcer *announcer;
	bool early;	/* CRIU was started before the freeze and waits for images */
	bool restoring; /* runc restore was told to start */
	int64_t resumed_us;

	pthread_t acceptor;
	bool accepting;
	int accept_stop, watch_stop; /* eventfds: end the acceptor and the watcher */
	pthread_mutex_t lock; /* guards threads, what streams may write to */
	pthread_t threads[MAX_DATA_THREADS];
	struct dmig_conn *conns[MAX_DATA_THREADS];
	size_t n_threads;
	struct dmig_tree_stats files, memory;
	pthread_t watcher; /* stops the worker when the target cannot go on */
	bool watching;
};

/* dest_prepare.c */
int dest__check(struct dest *d, json_t *body, json_t **ret_result, struct dmig_error **err);
int dest__prepare(struct dest *d, struct dmig_error **err);
int dest__start(struct dest *d, json_t *body, struct dmig_error **err);
/* dest_restore.c */
int dest__launch_restore(struct dest *d, struct dmig_error **err);
int dest__wait_for_images_stage(struct dest *d, struct dmig_error **err);
int dest__restore(struct dest *d, struct dmig_error **err);
int dest__go(struct dest *d, struct dmig_error **err);
int dest__after_go(struct dest *d, struct dmig_error **err);
int dest__finish(struct dest *d, json_t **ret_report, struct dmig_error **err);
/* dest_streams.c */
int dest__start_acceptor(struct dest *d, struct dmig_error **err);
void dest__stop_streams(struct dest *d);
/* dest_watch.c */
int dest__watch_target(struct dest *d, struct dmig_error **err);
void dest__unwatch_target(struct dest *d);
/* dest_hello.c: server side of HELLO. role and id as the peer says them. */
int dest__hello(struct dmig_conn *conn, const char *expected_id, uint16_t data_port, struct dmig_wire_hello *ret,
	struct dmig_error **err);
int dest__answer_query(struct dmig_conn *conn, struct dmig_journal *j, struct dmig_error **err);

#endif
