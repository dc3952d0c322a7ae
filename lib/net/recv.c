/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "net/internal.h"
#include "wire/messages.h"

#define HEADER sizeof(struct dmig_frame_header)

static int tls_broken(const struct dmig_conn *conn, int code, struct dmig_error **err)
{
	if (code == GNUTLS_E_PREMATURE_TERMINATION)
		return dmig_error_set(err, EPIPE, "%s closed the connection", conn->peer);
	return dmig_error_set(err, EPROTO, "broken TLS data from %s: %s", conn->peer, gnutls_strerror(code));
}

/* Decrypt something into buf: bytes, 0 if more must come from the network, or an error. */
static ssize_t get_some(struct dmig_conn *conn, uint8_t *buf, size_t len, struct dmig_error **err)
{
	for (;;) {
		pthread_mutex_lock(&conn->session_lock);
		ssize_t n = gnutls_record_recv(conn->session, buf, len);
		pthread_mutex_unlock(&conn->session_lock);
		if (n > 0)
			return n;
		if (n == 0)
			return dmig_error_set(err, EPIPE, "%s closed the connection", conn->peer);
		if (n != GNUTLS_E_AGAIN && n != GNUTLS_E_INTERRUPTED)
			return tls_broken(conn, (int)n, err);
		/* Something of TLS itself was handled; behind it there may be more. */
		if (conn->in_pos == conn->in_len)
			return 0;
	}
}

/* Until conn->have is target. Silence of timeout_ms ends it; what has come stays for the next call. */
static int get_until(struct dmig_conn *conn, size_t target, int timeout_ms, struct dmig_error **err)
{
	while (conn->have < target) {
		uint8_t *to = conn->have < HEADER ? conn->header + conn->have
						  : conn->payload + (conn->have - HEADER);
		ssize_t n = get_some(conn, to, target - conn->have, err);
		if (n < 0)
			return (int)n;
		conn->have += (size_t)n;
		if (n > 0)
			continue;
		int r = dmig_net__fill(conn, dmig_net__deadline(timeout_ms), err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int get_frame(struct dmig_conn *conn, int timeout_ms, struct dmig_error **err)
{
	bool fresh = conn->have < HEADER;
	int r = get_until(conn, HEADER, timeout_ms, err);
	if (r == 0 && fresh)
		r = dmig_wire_decode_header(conn->header, &conn->frame, err);
	if (r == 0)
		r = get_until(conn, HEADER + conn->frame.length, timeout_ms, err);
	return r;
}

int dmig_conn_recv(struct dmig_conn *conn, int timeout_ms, struct dmig_frame *ret, struct dmig_error **err)
{
	if (conn->recv_error)
		return dmig_error_set(err, -conn->recv_error, "connection to %s is broken", conn->peer);
	int r = get_frame(conn, timeout_ms, err);
	if (r < 0) {
		if (r != -ETIMEDOUT)
			conn->recv_error = r;
		return r;
	}
	*ret = (struct dmig_frame){
		.type = conn->frame.type,
		.flags = conn->frame.flags,
		.length = conn->frame.length,
		.payload = conn->payload,
	};
	conn->have = 0;
	return 0;
}
