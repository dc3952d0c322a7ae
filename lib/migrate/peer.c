/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/peer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* Heartbeat: how often we ask and how long silence may last, in ms. */
#define PING_MS 2000
#define SILENCE_MS 10000
#define FROZEN_PING_MS 200
#define FROZEN_SILENCE_MS 1000
/* The receiver looks at its clocks this often. */
#define TICK_MS 50
/* A peer that sends this much unasked is not one of ours. */
#define MAX_QUEUE 32

struct queued {
	struct queued *next;
	struct dmig_peer_msg msg;
};

struct dmig_peer {
	struct dmig_conn *conn;
	enum dmig_side side;
	struct dmig_stop *stop;
	pthread_t thread;
	bool started, ending;
	pthread_mutex_t lock; /* guards all below; taken alone */
	pthread_cond_t changed; /* queue, ending, pongs, stop */
	struct queued *head, **tail;
	size_t n_queued;
	bool frozen, aborted, closed;
	bool told; /* the other side said ABORT */
	int64_t heard_ms, pinged_ms;
	uint64_t seq;
	int64_t sent_us[16]; /* of the last pings, by seq */
	uint64_t pongs;
	int64_t offset_us, error_us;
};

static void stop_with(struct dmig_peer *p, struct dmig_error *why)
{
	dmig_stop_now(p->stop, why);
	pthread_mutex_lock(&p->lock);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

static int send_ping(struct dmig_peer *p, struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_ping ping;
	pthread_mutex_lock(&p->lock);
	ping.seq = ++p->seq;
	ping.clock_us = (uint64_t)dmig_now_us();
	p->sent_us[ping.seq % 16] = (int64_t)ping.clock_us;
	p->pinged_ms = dmig_now_ms();
	pthread_mutex_unlock(&p->lock);
	ssize_t n = dmig_wire_encode_ping(&ping, buf, sizeof(buf));
	return dmig_conn_send(p->conn, DMIG_MSG_PING, 0, buf, (size_t)n, NULL, 0, err);
}

static int answer_ping(struct dmig_peer *p, const struct dmig_frame *f, struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_ping ping;
	int r = dmig_wire_decode_ping(f->payload, f->length, &ping, err);
	if (r < 0)
		return r;
	ping.clock_us = (uint64_t)dmig_now_us();
	ssize_t n = dmig_wire_encode_ping(&ping, buf, sizeof(buf));
	return dmig_conn_send(p->conn, DMIG_MSG_PONG, 0, buf, (size_t)n, NULL, 0, err);
}

/* Of all round trips the shortest tells the clock best: its error is at most half of it. */
static int take_pong(struct dmig_peer *p, const struct dmig_frame *f, struct dmig_error **err)
{
	struct dmig_wire_ping pong;
	int r = dmig_wire_decode_ping(f->payload, f->length, &pong, err);
	if (r < 0)
		return r;
	int64_t now = dmig_now_us();
	pthread_mutex_lock(&p->lock);
	if (pong.seq <= p->seq && p->seq - pong.seq < 16) {
		int64_t sent = p->sent_us[pong.seq % 16], half = (now - sent) / 2;
		if (half < p->error_us) {
			p->error_us = half;
			p->offset_us = (int64_t)pong.clock_us - (sent + half);
		}
		p->pongs++;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* After an ABORT the connection stays: its end says that the other side has cleaned up. */
static int take_abort(struct dmig_peer *p, const struct dmig_frame *f, struct dmig_error **err)
{
	struct dmig_wire_status status;
	struct dmig_error *why = NULL;
	int r = dmig_wire_decode_abort(f->payload, f->length, &status, err);
	if (r < 0)
		return r;
	dmig_wire_status_error(&status, &why);
	if (!why)
		dmig_error_set(&why, ECONNABORTED, "the other side stopped without a reason");
	dmig_error_side(why, p->side == DMIG_SIDE_SOURCE ? DMIG_SIDE_DESTINATION : DMIG_SIDE_SOURCE);
	pthread_mutex_lock(&p->lock);
	p->aborted = p->told = true;
	pthread_mutex_unlock(&p->lock);
	stop_with(p, why);
	return 0;
}

static int enqueue(struct dmig_peer *p, const struct dmig_frame *f, struct dmig_error **err)
{
	struct queued *q = calloc(1, sizeof(*q));
	uint8_t *copy = malloc(f->length + 1);
	if (!q || !copy) {
		free(q);
		free(copy);
		return dmig_error_set(err, ENOMEM, "out of memory");
	}
	memcpy(copy, f->payload, f->length);
	copy[f->length] = '\0';
	q->msg = (struct dmig_peer_msg){f->type, f->length, copy};
	pthread_mutex_lock(&p->lock);
	bool full = p->n_queued >= MAX_QUEUE;
	if (!full) {
		*p->tail = q;
		p->tail = &q->next;
		p->n_queued++;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	if (full) {
		free(copy);
		free(q);
		return dmig_error_set(err, EPROTO, "the peer sends more than was asked for");
	}
	return 0;
}

static int take_frame(struct dmig_peer *p, const struct dmig_frame *f, struct dmig_error **err)
{
	switch (f->type) {
	case DMIG_MSG_PING:
		return answer_ping(p, f, err);
	case DMIG_MSG_PONG:
		return take_pong(p, f, err);
	case DMIG_MSG_ABORT:
		return take_abort(p, f, err);
	default:
		log_debug("received %s, %u bytes", dmig_wire_name(f->type), f->length);
		return enqueue(p, f, err);
	}
}

static int keep_alive(struct dmig_peer *p, struct dmig_error **err)
{
	int64_t now = dmig_now_ms();
	pthread_mutex_lock(&p->lock);
	int64_t silent = now - p->heard_ms;
	int limit = p->frozen ? FROZEN_SILENCE_MS : SILENCE_MS;
	bool due = now - p->pinged_ms >= (p->frozen ? FROZEN_PING_MS : PING_MS) && !p->aborted;
	bool judge = !p->aborted;
	pthread_mutex_unlock(&p->lock);
	if (judge && silent > limit)
		return dmig_error_set(err, ETIMEDOUT, "no sign of life from %s for %lld ms", dmig_conn_peer(p->conn),
			(long long)silent);
	return due ? send_ping(p, err) : 0;
}

static bool is_ending(struct dmig_peer *p)
{
	pthread_mutex_lock(&p->lock);
	bool r = p->ending;
	pthread_mutex_unlock(&p->lock);
	return r;
}

static void *receiver(void *opaque)
{
	struct dmig_peer *p = opaque;
	struct dmig_error *e = NULL;
	int r = 0;
	while (!is_ending(p)) {
		struct dmig_frame f;
		cleanup_error struct dmig_error *quiet = NULL;
		r = dmig_conn_recv(p->conn, TICK_MS, &f, &quiet);
		if (r < 0 && r != -ETIMEDOUT) {
			e = steal_ptr(&quiet);
			break;
		}
		if (r == 0) {
			pthread_mutex_lock(&p->lock);
			p->heard_ms = dmig_now_ms();
			pthread_mutex_unlock(&p->lock);
			r = take_frame(p, &f, &e);
		} else {
			r = 0;
		}
		if (r == 0)
			r = keep_alive(p, &e);
		if (r < 0)
			break;
	}
	pthread_mutex_lock(&p->lock);
	p->closed = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	if (!is_ending(p)) {
		if (!e)
			dmig_error_set(&e, r ? -r : EPIPE, "connection lost");
		stop_with(p, e);
	} else {
		dmig_error_free(e);
	}
	return NULL;
}

int dmig_peer_new(struct dmig_conn *conn, enum dmig_side side, struct dmig_stop *stop, struct dmig_peer **ret,
	struct dmig_error **err)
{
	struct dmig_peer *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;
	if (!p) {
		dmig_conn_free(conn);
		return dmig_error_set(err, ENOMEM, "out of memory");
	}
	p->conn = conn;
	p->side = side;
	p->stop = stop;
	p->tail = &p->head;
	p->error_us = INT64_MAX;
	p->heard_ms = p->pinged_ms = dmig_now_ms();
	dmig_conn_set_send_timeout(conn, SILENCE_MS);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	int r = pthread_create(&p->thread, NULL, receiver, p);
	if (r) {
		dmig_peer_free(p);
		return dmig_error_set(err, r, "cannot start a thread: %s", strerror(r));
	}
	p->started = true;
	*ret = p;
	return 0;
}

void dmig_peer_free(struct dmig_peer *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_mutex_unlock(&p->lock);
	dmig_conn_shutdown(p->conn);
	if (p->started)
		pthread_join(p->thread, NULL);
	dmig_conn_free(p->conn);
	while (p->head) {
		struct queued *q = p->head;
		p->head = q->next;
		free(q->msg.payload);
		free(q);
	}
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

int dmig_peer_send_raw(struct dmig_peer *p, enum dmig_msg type, const void *buf, size_t len, struct dmig_error **err)
{
	log_debug("sending %s, %zu bytes", dmig_wire_name(type), len);
	int r = dmig_conn_send(p->conn, type, 0, buf, len, NULL, 0, err);
	return r < 0 ? dmig_error_wrap(err, "cannot send %s", dmig_wire_name(type)) : 0;
}

int dmig_peer_send(struct dmig_peer *p, enum dmig_msg type, struct dmig_error **err)
{
	return dmig_peer_send_raw(p, type, NULL, 0, err);
}

int dmig_peer_send_json(struct dmig_peer *p, enum dmig_msg type, json_t *body, struct dmig_error **err)
{
	cleanup_free char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	if (!text)
		return dmig_error_set(err, ENOMEM, "out of memory");
	if (strlen(text) > DMIG_WIRE_MAX_JSON)
		return dmig_error_set(err, EMSGSIZE, "the description is larger than %u bytes", DMIG_WIRE_MAX_JSON);
	return dmig_peer_send_raw(p, type, text, strlen(text), err);
}

void dmig_peer_abort(struct dmig_peer *p, const struct dmig_error *why)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_error unknown = {.code = ECANCELED, .message = (char *)(uintptr_t)"stopped"};
	struct dmig_wire_status status = dmig_wire_status_of(why ? why : &unknown, p->side);
	ssize_t n = dmig_wire_encode_abort(&status, buf, sizeof(buf));
	pthread_mutex_lock(&p->lock);
	p->aborted = true; /* it may be busy cleaning up now: its silence means nothing any more */
	pthread_mutex_unlock(&p->lock);
	if (n > 0)
		dmig_conn_send(p->conn, DMIG_MSG_ABORT, 0, buf, (size_t)n, NULL, 0, NULL);
}

static struct timespec deadline_of(int timeout_ms)
{
	int64_t us = dmig_now_us() + (int64_t)timeout_ms * 1000;
	return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

/* The stop may come from elsewhere without waking our condition: look at it at least this often. */
#define STOP_POLL_MS 20

int dmig_peer_next(struct dmig_peer *p, int timeout_ms, struct dmig_peer_msg *ret, struct dmig_error **err)
{
	int64_t deadline = timeout_ms < 0 ? INT64_MAX : dmig_now_ms() + timeout_ms;
	int r = 0;
	pthread_mutex_lock(&p->lock);
	while (!p->head && r == 0) {
		pthread_mutex_unlock(&p->lock);
		r = dmig_stop_check(p->stop, err);
		pthread_mutex_lock(&p->lock);
		if (r == 0 && !p->head) {
			struct timespec ts = deadline_of(STOP_POLL_MS);
			pthread_cond_timedwait(&p->changed, &p->lock, &ts);
			if (!p->head && dmig_now_ms() >= deadline)
				r = -ETIMEDOUT;
		}
	}
	if (p->head) {
		struct queued *q = p->head;
		p->head = q->next;
		if (!p->head)
			p->tail = &p->head;
		p->n_queued--;
		*ret = q->msg;
		free(q);
		r = 0;
		if (err && *err)
			dmig_error_freep(err);
	}
	pthread_mutex_unlock(&p->lock);
	if (r == -ETIMEDOUT && err && !*err)
		return dmig_error_set(err, ETIMEDOUT, "no answer from %s within %d ms", dmig_conn_peer(p->conn), timeout_ms);
	return r;
}

static int expect(struct dmig_peer *p, enum dmig_msg type, int timeout_ms, struct dmig_peer_msg *ret,
	struct dmig_error **err)
{
	int r = dmig_peer_next(p, timeout_ms, ret, err);
	if (r < 0)
		return r;
	if (ret->type == type)
		return 0;
	r = dmig_error_set(err, EPROTO, "%s where %s was expected", dmig_wire_name(ret->type), dmig_wire_name(type));
	free(ret->payload);
	return r;
}

int dmig_peer_expect(struct dmig_peer *p, enum dmig_msg type, int timeout_ms, struct dmig_error **err)
{
	struct dmig_peer_msg msg;
	int r = expect(p, type, timeout_ms, &msg, err);
	if (r == 0)
		free(msg.payload);
	return r;
}

int dmig_peer_json(const struct dmig_peer_msg *msg, json_t **ret, struct dmig_error **err)
{
	struct dmig_wire_json body;
	int r = dmig_wire_decode_json(msg->payload, msg->length, &body, err);
	if (r < 0)
		return r;
	json_error_t je;
	*ret = json_loadb(body.text, body.len, JSON_REJECT_DUPLICATES, &je);
	if (json_is_object(*ret))
		return 0;
	json_decref(*ret);
	*ret = NULL;
	return dmig_error_set(err, EPROTO, "%s is not a JSON object", dmig_wire_name(msg->type));
}

int dmig_peer_expect_json(struct dmig_peer *p, enum dmig_msg type, int timeout_ms, json_t **ret_json,
	struct dmig_error **err)
{
	struct dmig_peer_msg msg;
	int r = expect(p, type, timeout_ms, &msg, err);
	if (r < 0)
		return r;
	r = dmig_peer_json(&msg, ret_json, err);
	free(msg.payload);
	return r;
}

void dmig_peer_frozen(struct dmig_peer *p, bool frozen)
{
	pthread_mutex_lock(&p->lock);
	p->frozen = frozen;
	p->heard_ms = dmig_now_ms(); /* the shorter limit counts from now */
	pthread_mutex_unlock(&p->lock);
	dmig_conn_set_send_timeout(p->conn, frozen ? FROZEN_SILENCE_MS : SILENCE_MS);
}

void dmig_peer_clock(struct dmig_peer *p, int64_t *ret_offset_us, int64_t *ret_error_us)
{
	pthread_mutex_lock(&p->lock);
	*ret_offset_us = p->offset_us;
	*ret_error_us = p->error_us;
	pthread_mutex_unlock(&p->lock);
}

int dmig_peer_measure_clock(struct dmig_peer *p, int n, int timeout_ms, struct dmig_error **err)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&p->lock);
		uint64_t before = p->pongs;
		pthread_mutex_unlock(&p->lock);
		int r = send_ping(p, err);
		pthread_mutex_lock(&p->lock);
		while (r == 0 && p->pongs == before && dmig_now_ms() < deadline) {
			struct timespec ts = deadline_of(STOP_POLL_MS);
			pthread_cond_timedwait(&p->changed, &p->lock, &ts);
		}
		bool silent = p->pongs == before;
		pthread_mutex_unlock(&p->lock);
		if (r < 0)
			return r;
		r = dmig_stop_check(p->stop, err);
		if (r < 0)
			return r;
		if (silent)
			return dmig_error_set(err, ETIMEDOUT, "no answer to a ping within %d ms", timeout_ms);
	}
	return 0;
}

bool dmig_peer_has_aborted(struct dmig_peer *p)
{
	pthread_mutex_lock(&p->lock);
	bool told = p->told;
	pthread_mutex_unlock(&p->lock);
	return told;
}

bool dmig_peer_wait_closed(struct dmig_peer *p, int timeout_ms)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	pthread_mutex_lock(&p->lock);
	while (!p->closed && dmig_now_ms() < deadline) {
		struct timespec ts = deadline_of((int)(deadline - dmig_now_ms()));
		pthread_cond_timedwait(&p->changed, &p->lock, &ts);
	}
	bool closed = p->closed;
	pthread_mutex_unlock(&p->lock);
	return closed;
}

struct dmig_conn *dmig_peer_conn(struct dmig_peer *p)
{
	return p->conn;
}
