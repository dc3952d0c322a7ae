/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/fs/memory.h"

#include <errno.h>

#include "support/test.h"

/* In front of the frames while one is lent: its payload alone. */
static uint8_t *lent;

static void append(struct memory *m, const void *data, size_t len)
{
	while (m->cap - m->len < len) {
		m->cap = m->cap ? m->cap * 2 : 1 << 20;
		m->data = realloc(m->data, m->cap);
		assert_non_null(m->data);
	}
	if (len)
		memcpy(m->data + m->len, data, len);
	m->len += len;
}

static int send(void *opaque, enum dmig_msg type, uint16_t flags, const void *head, size_t head_len,
	const void *body, size_t body_len, struct dmig_error **err)
{
	(void)err;
	struct dmig_frame_header h = {
		.length = (uint32_t)(head_len + body_len), .type = (uint16_t)type, .flags = flags};
	uint8_t header[sizeof(h)];
	assert_true(head_len + body_len <= DMIG_WIRE_MAX_PAYLOAD);
	dmig_wire_encode_header(&h, header);
	append(opaque, header, sizeof(header));
	append(opaque, head, head_len);
	append(opaque, body, body_len);
	return 0;
}

static int recv(void *opaque, struct dmig_frame *ret, struct dmig_error **err)
{
	struct memory *m = opaque;
	struct dmig_frame_header h;
	if (m->len - m->pos < sizeof(h))
		return dmig_error_set(err, EPIPE, "end of the memory");
	int r = dmig_wire_decode_header(m->data + m->pos, &h, err);
	if (r < 0)
		return r;
	if (h.length > m->len - m->pos - sizeof(h))
		return dmig_error_set(err, EPIPE, "end of the memory");
	free(lent);
	lent = malloc(h.length ? h.length : 1);
	assert_non_null(lent);
	memcpy(lent, m->data + m->pos + sizeof(h), h.length);
	*ret = (struct dmig_frame){.type = h.type, .flags = h.flags, .length = h.length, .payload = lent};
	m->pos += sizeof(h) + h.length;
	return 0;
}

struct dmig_fs__output memory_output(struct memory *m)
{
	return (struct dmig_fs__output){.send = send, .opaque = m};
}

struct dmig_fs__input memory_input(struct memory *m)
{
	return (struct dmig_fs__input){.recv = recv, .opaque = m};
}

void memory_free(struct memory *m)
{
	free(m->data);
	free(lent);
	lent = NULL;
	*m = (struct memory){0};
}

bool memory_next(struct memory *m, struct dmig_frame *ret)
{
	return recv(m, ret, NULL) == 0;
}

int memory_send(struct memory *m, int root_fd, const struct dmig_tree_send_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err)
{
	return dmig_fs__send_tree(
		&(struct dmig_fs__sender){.out = memory_output(m), .opts = opts, .stats = stats}, root_fd,
		err);
}

int memory_recv(struct memory *m, int root_fd, const struct dmig_tree_recv_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err)
{
	struct dmig_frame begin;
	assert_true(memory_next(m, &begin));
	assert_int_equal(begin.type, DMIG_MSG_STREAM_BEGIN);
	return dmig_fs__recv_tree(
		&(struct dmig_fs__receiver){.in = memory_input(m), .opts = opts, .stats = stats}, root_fd,
		err);
}

void memory_move(int from_fd, const struct dmig_tree_send_opts *send_opts, int to_fd,
	const struct dmig_tree_recv_opts *recv_opts)
{
	struct memory m = {0};
	struct dmig_tree_stats sent, received;
	cleanup_error struct dmig_error *err = NULL;
	assert_ok(memory_send(&m, from_fd, send_opts, &sent, &err), err);
	assert_ok(memory_recv(&m, to_fd, recv_opts, &received, &err), err);
	assert_int_equal(sent.wire_bytes, m.len);
	assert_int_equal(received.files, sent.files);
	assert_int_equal(received.entries, sent.entries);
	assert_int_equal(received.bytes, sent.bytes);
	memory_free(&m);
}

void memory_put(struct memory *m, enum dmig_msg type, uint16_t flags, const void *payload, size_t len)
{
	send(m, type, flags, payload, len, NULL, 0, NULL);
}

void memory_put_entry(struct memory *m, const struct dmig_wire_entry *entry)
{
	uint8_t *buf = malloc(DMIG_WIRE_MAX_PAYLOAD);
	assert_non_null(buf);
	ssize_t n = dmig_wire_encode_entry(entry, buf, DMIG_WIRE_MAX_PAYLOAD);
	assert_true(n > 0);
	memory_put(m, DMIG_MSG_ENTRY, 0, buf, (size_t)n);
	free(buf);
}

void memory_put_data(struct memory *m, uint64_t offset, const void *data, uint32_t len)
{
	uint8_t head[DMIG_WIRE_DATA_HEAD];
	assert_int_equal(dmig_wire_encode_data(&(struct dmig_wire_data){.offset = offset, .plain_len = len},
				 head, sizeof(head)),
		sizeof(head));
	send(m, DMIG_MSG_DATA, 0, head, sizeof(head), data, len, NULL);
}

void memory_put_entry_end(struct memory *m, uint64_t sum, uint64_t size)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	ssize_t n = dmig_wire_encode_entry_end(
		&(struct dmig_wire_entry_end){.sum = sum, .size = size}, buf, sizeof(buf));
	assert_true(n > 0);
	memory_put(m, DMIG_MSG_ENTRY_END, 0, buf, (size_t)n);
}

void memory_put_end(struct memory *m, uint64_t entries, uint64_t files, uint64_t bytes)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_stream_end end = {.entries = entries, .files = files, .bytes = bytes};
	ssize_t n = dmig_wire_encode_stream_end(&end, buf, sizeof(buf));
	assert_true(n > 0);
	memory_put(m, DMIG_MSG_STREAM_END, 0, buf, (size_t)n);
}
