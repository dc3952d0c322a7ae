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

/* Shared by the files of the destination: dest.c (messages), dest_prepare.c, dest_streams.c, dest_receive.c, dest_restore.c. */
/* Connections at one time: two for data, one that asks, and room for strangers who do not get through the handshake. */
#define MAX_DATA_THREADS 32

struct data_slot {
	pthread_t thread;
	bool used, ended; /* ended: only the join is left */
	int fd;		  /* another descriptor of its socket: ends a handshake that waits */
	struct dmig_conn *conn;
};

struct dest {
	struct dmig_worker *w;
	const struct dmig_dest_opts *o;
	struct dmig_peer *peer;
	enum dmig_phase phase; /* what was done last; dest__reached() */

	struct dmig_docker *docker;
	struct dmig_spec *spec;
	bool tcp_close, own_netns, verbose, source_keep;
	bool refused; /* the check found a blocker: whatever the source makes of it, nothing is created */
	char **binds; /* paths that the source's --bind names: the peer's word only */
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
	/*
	 * Guards what follows, and phase, container, target, images_dir, image_id as data threads see them: the phases
	 * set each once, by dest__publish(), and read it without the lock; it stays until the data threads have ended.
	 */
	pthread_mutex_t lock;
	struct data_slot slots[MAX_DATA_THREADS];
	unsigned receiving; /* a bit for each kind of stream that is under way */
	struct dmig_tree_stats files, memory;
	pthread_t watcher; /* stops the worker when the target cannot go on */
	bool watching;
};

/* dest.c */
void dest__reached(struct dest *d, enum dmig_phase phase);
/* Set a pointer that data threads look at. */
#define dest__publish(d, field, value)                                                                                 \
	do {                                                                                                           \
		pthread_mutex_lock(&(d)->lock);                                                                        \
		(d)->field = (value);                                                                                  \
		pthread_mutex_unlock(&(d)->lock);                                                                      \
	} while (0)
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
/* dest_receive.c: one stream into its place */
int dest__receive(struct dest *d, struct dmig_conn *conn, const struct dmig_stream *stream, struct dmig_error **err);
/* dest_watch.c */
int dest__watch_target(struct dest *d, struct dmig_error **err);
void dest__unwatch_target(struct dest *d);
/* dest_hello.c: server side of HELLO. role and id as the peer says them. */
int dest__hello(struct dmig_conn *conn, const char *expected_id, uint16_t data_port, struct dmig_wire_hello *ret,
	struct dmig_error **err);
/* ABORT on a connection that has no peer yet. */
void dest__refuse(struct dmig_conn *conn, const struct dmig_error *why);
#define DMIG_BOOT_ID_BYTES 40
/* Of the running kernel; "" if it does not say. */
void dest__boot_id(char ret[DMIG_BOOT_ID_BYTES]);
int dest__answer_query(struct dmig_conn *conn, struct dmig_journal *j, struct dmig_error **err);

#endif
