/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_SOURCE_INTERNAL_H
#define DMIG_MIGRATE_SOURCE_INTERNAL_H

#include <time.h>

#include "criu/dump.h"
#include "criu/freezer.h"
#include "docker/docker.h"
#include "fs/tree.h"
#include "migrate/options.h"
#include "migrate/peer.h"
#include "migrate/worker.h"
#include "netns/netns.h"

/* Shared by the files of the source: source.c (phases), source_check.c, source_freeze.c, source_send.c, source_commit.c. */
struct sender {
	struct dmig_conn *conn;
	pthread_t thread;
	bool running;
	struct dmig_error *error; /* of the thread; read after the join */
	int64_t start_us, end_us;
};

struct source {
	struct dmig_worker *w;
	const struct dmig_options *o;
	struct dmig_key *key;
	struct dmig_peer *peer;
	uint16_t data_port;

	struct dmig_docker *docker;
	struct dmig_container *container;
	char *runc_root, *upper, *images_dir, *log_path;
	uint64_t log_sent; /* bytes of the log that the destination has */
	char *result_warnings; /* lines, newline-separated */
	json_t *warnings, *check_result;
	bool own_netns; /* the container has a network namespace of its own */

	struct dmig_links *links;
	struct dmig_freezer *freezer;
	struct dmig_dump *dump;
	int init_pidfd;
	struct sender files, images;
	pthread_t breaker; /* ends the streams when the worker is stopped */
	bool breaking;
	int breaker_end; /* eventfd */
	struct dmig_tree_stats file_stats, image_stats, memory_stats;
	uint64_t memory_bytes, zero_bytes, layers_sent;
	unsigned tcp_connections;

	int64_t start_us, freeze_us, frozen_us, resumed_us; /* our clock; resumed by the destination's word */
	timer_t deadline; /* of --timeout */
	bool has_deadline;
	int64_t released_us;	/* when the source's tasks were gone or ran again */
	json_t *destination_report;
};

/* Each phase: 0 or -errno with *err. */
int source__connect(struct source *s, struct dmig_error **err);
int source__check(struct source *s, struct dmig_error **err);
int source__prepare(struct source *s, struct dmig_error **err);
int source__stage(struct source *s, struct dmig_error **err);
int source__freeze(struct source *s, struct dmig_error **err);
int source__state(struct source *s, struct dmig_error **err);
int source__ready(struct source *s, struct dmig_error **err);
int source__commit(struct source *s, struct dmig_error **err);
int source__finish(struct source *s, struct dmig_error **err);

/* source_send.c: a data connection, said HELLO on. */
int source__dial(struct source *s, enum dmig_role role, uint16_t port, int timeout_ms, struct dmig_conn **ret,
	struct dmig_error **err);
int source__send_log(struct source *s, struct dmig_conn *conn, struct dmig_error **err);
int source__start_files(struct source *s, struct dmig_error **err);
int source__join(struct sender *sender, struct dmig_error **err);
/* From the time both streams stand: a stop ends what waits on them. */
int source__watch_streams(struct source *s, struct dmig_error **err);
void source__unwatch_streams(struct source *s);
int source__send_images(struct source *s, struct dmig_error **err);
/* source_freeze.c: let the tasks run again, as far as this process has stopped them. */
void source__release(struct source *s);
/* doubt.c: 0 = the destination runs; else the source may go on, *err says why. */
int source__in_doubt(struct source *s, struct dmig_error **err);
/* source_report.c */
json_t *source__report(struct source *s, const struct dmig_error *error);

#endif
