/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "wire/check.h"
#include "wire/cursor.h"
#include "wire/messages.h"

/* A positive errno of Linux; the kernel keeps -1 to -4095 for them. */
#define MAX_ERRNO 4095

_Static_assert(sizeof(struct dmig_frame_header) == 8, "frame header has no padding");
/* The numbers of lib/util are numbers of the wire. */
_Static_assert(DMIG_ERR_FAILED == 0 && DMIG_ERR_INTERNAL == 5, "error classes keep their numbers");
_Static_assert(DMIG_SIDE_LOCAL == 0 && DMIG_SIDE_DESTINATION == 2, "sides keep their numbers");

void dmig_wire_encode_header(const struct dmig_frame_header *h, uint8_t buf[sizeof(struct dmig_frame_header)])
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, sizeof(struct dmig_frame_header));
	dmig_wire_put_u32(&p, h->length);
	dmig_wire_put_u16(&p, h->type);
	dmig_wire_put_u16(&p, h->flags);
}

int dmig_wire_decode_header(const uint8_t buf[sizeof(struct dmig_frame_header)],
	struct dmig_frame_header *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, buf, sizeof(struct dmig_frame_header));
	ret->length = dmig_wire_get_u32(&g);
	ret->type = dmig_wire_get_u16(&g);
	ret->flags = dmig_wire_get_u16(&g);
	if (ret->length > DMIG_WIRE_MAX_PAYLOAD)
		return dmig_error_set(
			err, EPROTO, "frame of %u bytes is above the limit", (unsigned)ret->length);
	if (ret->flags & ~(ret->type == DMIG_MSG_DATA ? DMIG_FRAME_LZ4 : 0))
		return dmig_error_set(err, EPROTO, "frame %s has unknown flags %#x",
			dmig_wire_name(ret->type), (unsigned)ret->flags);
	return 0;
}

static bool role_ok(enum dmig_role role)
{
	return role == DMIG_ROLE_CONTROL || role == DMIG_ROLE_DATA;
}

ssize_t dmig_wire_encode_hello(const struct dmig_wire_hello *m, void *buf, size_t size)
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size);
	if (!dmig_wire_id_ok(m->id) || !role_ok(m->role) || m->version_min > m->version_max)
		dmig_wire_put_fail(&p, EINVAL);
	dmig_wire_put_u32(&p, DMIG_WIRE_MAGIC);
	dmig_wire_put_u16(&p, m->version_min);
	dmig_wire_put_u16(&p, m->version_max);
	dmig_wire_put_u16(&p, (uint16_t)m->role);
	dmig_wire_put_u16(&p, m->data_port);
	dmig_wire_put_u64(&p, m->features);
	dmig_wire_put_bytes(&p, m->id, DMIG_WIRE_ID_LEN);
	return dmig_wire_put_done(&p);
}

int dmig_wire_decode_hello(
	const void *payload, size_t len, struct dmig_wire_hello *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	*ret = (struct dmig_wire_hello){0};
	if (dmig_wire_get_u32(&g) != DMIG_WIRE_MAGIC)
		dmig_wire_get_fail(&g, "not a dmigrate peer");
	ret->version_min = dmig_wire_get_u16(&g);
	ret->version_max = dmig_wire_get_u16(&g);
	if (ret->version_min > ret->version_max)
		dmig_wire_get_fail(&g, "versions upside down");
	ret->role = (enum dmig_role)dmig_wire_get_u16(&g);
	if (!role_ok(ret->role))
		dmig_wire_get_fail(&g, "unknown role");
	ret->data_port = dmig_wire_get_u16(&g);
	ret->features = dmig_wire_get_u64(&g);
	const void *id = dmig_wire_get_bytes(&g, DMIG_WIRE_ID_LEN);
	if (!g.problem)
		memcpy(ret->id, id, DMIG_WIRE_ID_LEN);
	if (!dmig_wire_id_ok(ret->id))
		dmig_wire_get_fail(&g, "bad migration id");
	dmig_wire_get_bytes(&g, dmig_wire_get_left(&g));
	return dmig_wire_get_done(&g, "HELLO", err);
}

int dmig_wire_accept_version(const struct dmig_wire_hello *peer, struct dmig_error **err)
{
	if (peer->version_min > DMIG_WIRE_VERSION || peer->version_max < DMIG_WIRE_VERSION_MIN)
		return dmig_error_set(err, EPROTONOSUPPORT,
			"the other host talks protocol versions %u to %u, this one %u to %u: update the "
			"older one",
			peer->version_min, peer->version_max, DMIG_WIRE_VERSION_MIN, DMIG_WIRE_VERSION);
	return peer->version_max < DMIG_WIRE_VERSION ? peer->version_max : DMIG_WIRE_VERSION;
}

ssize_t dmig_wire_encode_ping(const struct dmig_wire_ping *m, void *buf, size_t size)
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size);
	dmig_wire_put_u64(&p, m->seq);
	dmig_wire_put_u64(&p, m->clock_us);
	return dmig_wire_put_done(&p);
}

int dmig_wire_decode_ping(
	const void *payload, size_t len, struct dmig_wire_ping *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	ret->seq = dmig_wire_get_u64(&g);
	ret->clock_us = dmig_wire_get_u64(&g);
	return dmig_wire_get_done(&g, "PING", err);
}

static ssize_t encode_status(const struct dmig_wire_status *m, int lowest, void *buf, size_t size)
{
	char text[DMIG_WIRE_MAX_TEXT + 1];
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size);
	dmig_wire_text_clean(m->message && m->code ? m->message : "", text, sizeof(text));
	if (m->code < lowest || m->code > MAX_ERRNO)
		dmig_wire_put_fail(&p, EINVAL);
	dmig_wire_put_u32(&p, (uint32_t)m->code);
	dmig_wire_put_u8(&p, (uint8_t)m->class);
	dmig_wire_put_u8(&p, (uint8_t)m->side);
	dmig_wire_put_string(&p, text, DMIG_WIRE_MAX_TEXT);
	return dmig_wire_put_done(&p);
}

static int decode_status(const void *payload, size_t len, uint32_t lowest, const char *what,
	struct dmig_wire_status *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	uint32_t code = dmig_wire_get_u32(&g);
	uint8_t class = dmig_wire_get_u8(&g), side = dmig_wire_get_u8(&g);
	const char *message = dmig_wire_get_string(&g, DMIG_WIRE_MAX_TEXT);
	if (code < lowest || code > MAX_ERRNO)
		dmig_wire_get_fail(&g, "code is not an error number");
	if (!dmig_wire_text_ok(message, strlen(message)) || (code == 0 && *message))
		dmig_wire_get_fail(&g, "message is not plain text");
	*ret = (struct dmig_wire_status){
		.code = (int)code,
		.class = class <= DMIG_ERR_INTERNAL ? (enum dmig_error_class) class : DMIG_ERR_FAILED,
		.side = side <= DMIG_SIDE_DESTINATION ? (enum dmig_side)side : DMIG_SIDE_LOCAL,
		.message = message,
	};
	return dmig_wire_get_done(&g, what, err);
}

ssize_t dmig_wire_encode_abort(const struct dmig_wire_status *m, void *buf, size_t size)
{
	return encode_status(m, 1, buf, size);
}

int dmig_wire_decode_abort(
	const void *payload, size_t len, struct dmig_wire_status *ret, struct dmig_error **err)
{
	return decode_status(payload, len, 1, "ABORT", ret, err);
}

ssize_t dmig_wire_encode_stream_done(const struct dmig_wire_status *m, void *buf, size_t size)
{
	return encode_status(m, 0, buf, size);
}

int dmig_wire_decode_stream_done(
	const void *payload, size_t len, struct dmig_wire_status *ret, struct dmig_error **err)
{
	return decode_status(payload, len, 0, "STREAM_DONE", ret, err);
}

struct dmig_wire_status dmig_wire_status_of(const struct dmig_error *error, enum dmig_side here)
{
	if (!error)
		return (struct dmig_wire_status){.side = here, .message = ""};
	return (struct dmig_wire_status){
		.code = error->code > 0 && error->code <= MAX_ERRNO ? error->code : EIO,
		.class = error->class,
		.side = error->side == DMIG_SIDE_LOCAL ? here : error->side,
		.message = error->message ? error->message : "",
	};
}

int dmig_wire_status_error(const struct dmig_wire_status *m, struct dmig_error **err)
{
	if (m->code == 0)
		return 0;
	int r = dmig_error_set_class(
		err, m->class, m->code, "%s", *m->message ? m->message : strerror(m->code));
	if (err)
		dmig_error_side(*err, m->side);
	return r;
}

int dmig_wire_decode_json(
	const void *payload, size_t len, struct dmig_wire_json *ret, struct dmig_error **err)
{
	*ret = (struct dmig_wire_json){.text = payload, .len = len};
	if (len == 0 || len > DMIG_WIRE_MAX_JSON)
		return dmig_error_set(err, EPROTO, "JSON text of %zu bytes", len);
	if (!dmig_wire_utf8_ok(payload, len))
		return dmig_error_set(err, EPROTO, "JSON text is not UTF-8");
	return 0;
}

int dmig_wire_decode_empty(const void *payload, size_t len, struct dmig_error **err)
{
	(void)payload;
	return len ? dmig_error_set(err, EPROTO, "%zu bytes in a message without contents", len) : 0;
}

ssize_t dmig_wire_encode_query_result(enum dmig_ran ran, void *buf, size_t size)
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size);
	dmig_wire_put_u32(&p, (uint32_t)ran);
	return dmig_wire_put_done(&p);
}

int dmig_wire_decode_query_result(
	const void *payload, size_t len, enum dmig_ran *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	uint32_t ran = dmig_wire_get_u32(&g);
	if (ran != DMIG_RAN_NO && ran != DMIG_RAN_YES)
		dmig_wire_get_fail(&g, "neither yes nor no");
	/* Whoever forgets to look at the result must not run a second copy. */
	*ret = g.problem || ran ? DMIG_RAN_YES : DMIG_RAN_NO;
	return dmig_wire_get_done(&g, "QUERY_RESULT", err);
}
