/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "wire/check.h"
#include "wire/cursor.h"
#include "wire/messages.h"

static const char *stream_problem(const struct dmig_wire_stream_begin *m)
{
	const char *name = m->name ? m->name : "";
	if (m->kind < DMIG_STREAM_IMAGE || m->kind > DMIG_STREAM_BIND)
		return "unknown kind of stream";
	if (!dmig_wire_text_ok(name, strlen(name)))
		return "name is not plain text";
	if (m->kind == DMIG_STREAM_VOLUME && (!dmig_wire_path_ok(name) || strchr(name, '/')))
		return "not the name of a volume";
	if (m->kind == DMIG_STREAM_BIND && !dmig_wire_absolute_path_ok(name))
		return "not an absolute path";
	return NULL;
}

ssize_t dmig_wire_encode_stream_begin(const struct dmig_wire_stream_begin *m, void *buf, size_t size)
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size);
	if (stream_problem(m))
		dmig_wire_put_fail(&p, EINVAL);
	dmig_wire_put_u16(&p, (uint16_t)m->kind);
	dmig_wire_put_string(&p, m->name, DMIG_WIRE_MAX_STREAM_NAME);
	return dmig_wire_put_done(&p);
}

int dmig_wire_decode_stream_begin(
	const void *payload, size_t len, struct dmig_wire_stream_begin *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	ret->kind = (enum dmig_stream_kind)dmig_wire_get_u16(&g);
	ret->name = dmig_wire_get_string(&g, DMIG_WIRE_MAX_STREAM_NAME);
	const char *problem = stream_problem(ret);
	if (problem)
		dmig_wire_get_fail(&g, problem);
	return dmig_wire_get_done(&g, "STREAM_BEGIN", err);
}

/* DATA and HOLE: something, and within what off_t can say. */
static bool range_ok(uint64_t offset, uint64_t len)
{
	return len > 0 && offset <= INT64_MAX && len <= INT64_MAX - offset;
}

ssize_t dmig_wire_encode_data(const struct dmig_wire_data *m, void *buf, size_t size)
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size);
	if (!range_ok(m->offset, m->plain_len) || m->plain_len > DMIG_WIRE_MAX_DATA)
		dmig_wire_put_fail(&p, EINVAL);
	dmig_wire_put_u64(&p, m->offset);
	dmig_wire_put_u32(&p, m->plain_len);
	return dmig_wire_put_done(&p);
}

int dmig_wire_decode_data(
	const void *payload, size_t len, uint16_t flags, struct dmig_wire_data *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	ret->offset = dmig_wire_get_u64(&g);
	ret->plain_len = dmig_wire_get_u32(&g);
	if (len > DMIG_WIRE_MAX_PAYLOAD)
		dmig_wire_get_fail(&g, "too long");
	ret->len = (uint32_t)dmig_wire_get_left(&g);
	ret->bytes = dmig_wire_get_bytes(&g, ret->len);
	if (!range_ok(ret->offset, ret->plain_len) || ret->plain_len > DMIG_WIRE_MAX_DATA)
		dmig_wire_get_fail(&g, "bad range");
	if (flags & DMIG_FRAME_LZ4 ? ret->len == 0 || ret->len >= ret->plain_len : ret->len != ret->plain_len)
		dmig_wire_get_fail(&g, "length of the contents does not fit");
	return dmig_wire_get_done(&g, "DATA", err);
}

ssize_t dmig_wire_encode_hole(const struct dmig_wire_hole *m, void *buf, size_t size)
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size);
	if (!range_ok(m->offset, m->len))
		dmig_wire_put_fail(&p, EINVAL);
	dmig_wire_put_u64(&p, m->offset);
	dmig_wire_put_u64(&p, m->len);
	return dmig_wire_put_done(&p);
}

int dmig_wire_decode_hole(
	const void *payload, size_t len, struct dmig_wire_hole *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	ret->offset = dmig_wire_get_u64(&g);
	ret->len = dmig_wire_get_u64(&g);
	if (!range_ok(ret->offset, ret->len))
		dmig_wire_get_fail(&g, "bad range");
	return dmig_wire_get_done(&g, "HOLE", err);
}

ssize_t dmig_wire_encode_entry_end(const struct dmig_wire_entry_end *m, void *buf, size_t size)
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size);
	if (m->size > INT64_MAX)
		dmig_wire_put_fail(&p, EINVAL);
	dmig_wire_put_u64(&p, m->sum);
	dmig_wire_put_u64(&p, m->size);
	return dmig_wire_put_done(&p);
}

int dmig_wire_decode_entry_end(
	const void *payload, size_t len, struct dmig_wire_entry_end *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	ret->sum = dmig_wire_get_u64(&g);
	ret->size = dmig_wire_get_u64(&g);
	if (ret->size > INT64_MAX)
		dmig_wire_get_fail(&g, "bad size");
	return dmig_wire_get_done(&g, "ENTRY_END", err);
}

ssize_t dmig_wire_encode_stream_end(const struct dmig_wire_stream_end *m, void *buf, size_t size)
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size);
	dmig_wire_put_u64(&p, m->entries);
	dmig_wire_put_u64(&p, m->files);
	dmig_wire_put_u64(&p, m->bytes);
	return dmig_wire_put_done(&p);
}

int dmig_wire_decode_stream_end(
	const void *payload, size_t len, struct dmig_wire_stream_end *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	ret->entries = dmig_wire_get_u64(&g);
	ret->files = dmig_wire_get_u64(&g);
	ret->bytes = dmig_wire_get_u64(&g);
	return dmig_wire_get_done(&g, "STREAM_END", err);
}
