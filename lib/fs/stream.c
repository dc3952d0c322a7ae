/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "fs/internal.h"

static int send_to_conn(void *opaque, enum dmig_msg type, uint16_t flags, const void *head, size_t head_len,
	const void *body, size_t body_len, struct dmig_error **err)
{
	return dmig_conn_send(opaque, type, flags, head, head_len, body, body_len, err);
}

static int recv_from_conn(void *opaque, struct dmig_frame *ret, struct dmig_error **err)
{
	return dmig_conn_recv(opaque, -1, ret, err);
}

struct dmig_fs__output dmig_fs__output_to(struct dmig_conn *conn)
{
	return (struct dmig_fs__output){.send = send_to_conn, .opaque = conn};
}

struct dmig_fs__input dmig_fs__input_from(struct dmig_conn *conn)
{
	return (struct dmig_fs__input){.recv = recv_from_conn, .opaque = conn};
}

/* Failures to tell are ignored: the reason for the end is the better one. */
static void send_abort(const struct dmig_fs__output *out, const struct dmig_error *why)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_status status = dmig_wire_status_of(why, DMIG_SIDE_SOURCE);
	ssize_t len = dmig_wire_encode_abort(&status, buf, sizeof(buf));
	if (len > 0)
		out->send(out->opaque, DMIG_MSG_ABORT, 0, buf, (size_t)len, NULL, 0, NULL);
}

int dmig_fs__give_up(
	const struct dmig_fs__output *out, int r, struct dmig_error *why, struct dmig_error **err)
{
	send_abort(out, why);
	if (err && !*err)
		*err = why;
	else
		dmig_error_free(why);
	return r;
}

int dmig_fs__unexpected(const struct dmig_frame *frame, struct dmig_error **err)
{
	struct dmig_wire_status status;
	if (frame->type != DMIG_MSG_ABORT)
		return dmig_error_set(err, EPROTO, "unexpected %s in a stream", dmig_wire_name(frame->type));
	int r = dmig_wire_decode_abort(frame->payload, frame->length, &status, err);
	if (r < 0)
		return r;
	dmig_wire_status_error(&status, err);
	return err && *err ? dmig_error_wrap(err, "the sender gave up") : -status.code;
}

int dmig_stream_next(struct dmig_conn *conn, struct dmig_stream *ret, struct dmig_error **err)
{
	struct dmig_frame frame;
	struct dmig_wire_stream_begin begin;
	int r = dmig_conn_recv(conn, -1, &frame, err);
	if (r < 0)
		return r;
	if (frame.type != DMIG_MSG_STREAM_BEGIN)
		return dmig_fs__unexpected(&frame, err);
	r = dmig_wire_decode_stream_begin(frame.payload, frame.length, &begin, err);
	if (r < 0)
		return r;
	*ret = (struct dmig_stream){.kind = begin.kind};
	memcpy(ret->name, begin.name, strlen(begin.name) + 1); /* the decoder checked the length */
	return 0;
}

int dmig_stream_done(struct dmig_conn *conn, const struct dmig_error *result, struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_status status = dmig_wire_status_of(result, DMIG_SIDE_DESTINATION);
	ssize_t len = dmig_wire_encode_stream_done(&status, buf, sizeof(buf));
	if (len < 0)
		return dmig_error_set(err, (int)-len, "cannot encode the end of a stream");
	return dmig_conn_send(conn, DMIG_MSG_STREAM_DONE, 0, buf, (size_t)len, NULL, 0, err);
}

int dmig_stream_wait_done(struct dmig_conn *conn, int timeout_ms, struct dmig_error **err)
{
	struct dmig_frame frame;
	struct dmig_wire_status status;
	int r = dmig_conn_recv(conn, timeout_ms, &frame, err);
	if (r < 0)
		return r;
	if (frame.type != DMIG_MSG_STREAM_DONE)
		return dmig_fs__unexpected(&frame, err);
	r = dmig_wire_decode_stream_done(frame.payload, frame.length, &status, err);
	return r < 0 ? r : dmig_wire_status_error(&status, err);
}

/* The reason was sent before the connection went down: it is here already, or will never come. */
#define REASON_MS 1000

int dmig_stream_result(struct dmig_conn *conn, int sent, int timeout_ms, struct dmig_error **err)
{
	struct dmig_error *reason = NULL;
	if (sent == 0)
		return dmig_stream_wait_done(conn, timeout_ms, err);
	if (sent != -EPIPE)
		return sent;
	int r = dmig_stream_wait_done(conn, REASON_MS, &reason);
	if (r == 0 || !reason ||
		reason->side == DMIG_SIDE_LOCAL) { /* nothing but that the connection is gone */
		dmig_error_free(reason);
		return sent;
	}
	if (err) {
		dmig_error_free(*err);
		*err = reason;
	} else {
		dmig_error_free(reason);
	}
	return r;
}
