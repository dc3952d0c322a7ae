/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_PEER_H
#define DMIG_MIGRATE_PEER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "migrate/stop.h"
#include "net/net.h"
#include "wire/messages.h"

/*
 * The control connection with a life of its own: a thread answers pings, sends ours, watches for silence and queues what
 * is for the phases. Before the freeze a silent peer is dead after 10 s; while frozen a ping goes every 200 ms and 1 s of
 * silence is too long (design.md). A dead peer or an ABORT stops the worker (stop.h).
 *
 * Thread rules: send and wait from any thread; one thread waits at a time.
 */
struct dmig_peer;
/* Takes ownership of conn, also on failure. side: who we are. stop: lent, must outlive the peer. */
int dmig_peer_new(struct dmig_conn *conn, enum dmig_side side, struct dmig_stop *stop, struct dmig_peer **ret,
	struct dmig_error **err);
void dmig_peer_free(struct dmig_peer *p);

int dmig_peer_send(struct dmig_peer *p, enum dmig_msg type, struct dmig_error **err); /* no payload */
int dmig_peer_send_json(struct dmig_peer *p, enum dmig_msg type, json_t *body, struct dmig_error **err); /* takes body */
int dmig_peer_send_raw(struct dmig_peer *p, enum dmig_msg type, const void *buf, size_t len, struct dmig_error **err);
/* Tell the peer why we stop; nothing is reported if it cannot be told. */
void dmig_peer_abort(struct dmig_peer *p, const struct dmig_error *why);

struct dmig_peer_msg {
	uint16_t type;
	uint32_t length;
	uint8_t *payload; /* owned: free */
};
/* Next message; 0, -ETIMEDOUT, or the reason of stop. */
int dmig_peer_next(struct dmig_peer *p, int timeout_ms, struct dmig_peer_msg *ret, struct dmig_error **err);
/* The next message must be of this type. ret may be NULL if it has no payload. ret_json: parsed object (new reference). */
int dmig_peer_expect(struct dmig_peer *p, enum dmig_msg type, int timeout_ms, struct dmig_error **err);
int dmig_peer_expect_json(struct dmig_peer *p, enum dmig_msg type, int timeout_ms, json_t **ret_json,
	struct dmig_error **err);
/* The object in a payload, checked; new reference. */
int dmig_peer_json(const struct dmig_peer_msg *msg, json_t **ret, struct dmig_error **err);

void dmig_peer_frozen(struct dmig_peer *p, bool frozen);
/* Peer's clock minus ours, and how wrong that may be. error_us is INT64_MAX before the first answer. */
void dmig_peer_clock(struct dmig_peer *p, int64_t *ret_offset_us, int64_t *ret_error_us);
/* Send n pings now and wait for their answers, for a better clock. */
int dmig_peer_measure_clock(struct dmig_peer *p, int n, int timeout_ms, struct dmig_error **err);
struct dmig_conn *dmig_peer_conn(struct dmig_peer *p); /* lent */
/* Wait until the other side has closed the connection (true), e.g. because it has cleaned up after an ABORT. */
/* Whether the other side said ABORT: it knows that this migration is over and will not ask. */
bool dmig_peer_has_aborted(struct dmig_peer *p);
bool dmig_peer_wait_closed(struct dmig_peer *p, int timeout_ms);

#endif
