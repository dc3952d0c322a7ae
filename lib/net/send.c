/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "net/internal.h"
#include "wire/messages.h"

static void take_turn(struct dmig_conn *conn)
{
	pthread_mutex_lock(&conn->turn_lock);
	uint64_t ticket = conn->next_ticket++;
	while (conn->now_served != ticket)
		pthread_cond_wait(&conn->turn_moved, &conn->turn_lock);
	pthread_mutex_unlock(&conn->turn_lock);
}

static void pass_turn(struct dmig_conn *conn)
{
	pthread_mutex_lock(&conn->turn_lock);
	conn->now_served++;
	pthread_cond_broadcast(&conn->turn_moved);
	pthread_mutex_unlock(&conn->turn_lock);
}

static int flush(struct dmig_conn *conn, struct dmig_error **err)
{
	int timeout_ms = atomic_load(&conn->send_timeout_ms);
	return dmig_net__flush(conn, dmig_net__deadline(timeout_ms), timeout_ms, err);
}

/* At most NET_RECORD bytes into one TLS record in out. */
static int put_record(struct dmig_conn *conn, const void *data, size_t len, struct dmig_error **err)
{
	while (len) {
		if (conn->out_len >= NET_FLUSH) {
			int r = flush(conn, err);
			if (r < 0)
				return r;
		}
		pthread_mutex_lock(&conn->session_lock);
		conn->in_send = true;
		ssize_t n = gnutls_record_send(conn->session, data, len);
		conn->in_send = false;
		pthread_mutex_unlock(&conn->session_lock);
		if (n > 0) {
			data = (const uint8_t *)data + n;
			len -= (size_t)n;
			continue;
		}
		if (n != GNUTLS_E_AGAIN && n != GNUTLS_E_INTERRUPTED)
			return dmig_error_set(err, EPROTO, "cannot encrypt for %s: %s", conn->peer,
				gnutls_strerror((int)n));
		/* out was full: with room GnuTLS goes on where it stopped, given the same bytes again. */
		int r = flush(conn, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The parts of a frame one behind the other in full records: small ones share the first, the rest is not
 * copied. */
static int put_frame(struct dmig_conn *conn, const struct dmig_frame_header *h, const void *head,
	size_t head_len, const uint8_t *body, size_t body_len, struct dmig_error **err)
{
	uint8_t *stage = conn->stage;
	size_t used = sizeof(*h);
	dmig_wire_encode_header(h, stage);
	const uint8_t *part = head;
	for (size_t left = head_len; left;) {
		size_t n = left < NET_RECORD - used ? left : NET_RECORD - used;
		memcpy(stage + used, part, n);
		used += n;
		part += n;
		left -= n;
		if (left == 0)
			break;
		int r = put_record(conn, stage, used, err);
		if (r < 0)
			return r;
		used = 0;
	}
	size_t first = body_len < NET_RECORD - used ? body_len : NET_RECORD - used;
	if (first)
		memcpy(stage + used, body, first);
	int r = put_record(conn, stage, used + first, err);
	for (size_t at = first; r == 0 && at < body_len; at += NET_RECORD) {
		size_t n = body_len - at < NET_RECORD ? body_len - at : NET_RECORD;
		r = put_record(conn, body + at, n, err);
	}
	return r;
}

int dmig_conn_send(struct dmig_conn *conn, enum dmig_msg type, uint16_t flags, const void *head,
	size_t head_len, const void *body, size_t body_len, struct dmig_error **err)
{
	if (head_len > DMIG_WIRE_MAX_PAYLOAD || body_len > DMIG_WIRE_MAX_PAYLOAD - head_len)
		return dmig_error_set_class(err, DMIG_ERR_INTERNAL, EMSGSIZE,
			"message %s is too long for one frame", dmig_wire_name((uint16_t)type));
	const struct dmig_frame_header h = {
		.length = (uint32_t)(head_len + body_len), .type = (uint16_t)type, .flags = flags};
	take_turn(conn);
	int r = conn->send_error;
	if (r == -ECONNABORTED)
		dmig_net__aborted(err);
	else if (r < 0)
		dmig_error_set(err, -r, "connection to %s is broken", conn->peer);
	else
		r = put_frame(conn, &h, head, head_len, body, body_len, err);
	if (r == 0)
		r = flush(conn, err);
	/* Half a frame may be out: nothing can follow it. */
	conn->send_error = r;
	pass_turn(conn);
	return r;
}
