/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A frame header, then the payload of a message of a stream (ENTRY has its own target). */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "wire/messages.h"

static uint8_t again[DMIG_WIRE_SMALL];

/* What was decoded encodes to the same bytes. */
#define TRY(name)                                                                                            \
	static void try_##name(const uint8_t *payload, size_t len)                                           \
	{                                                                                                    \
		struct dmig_wire_##name m;                                                                   \
		if (dmig_wire_decode_##name(payload, len, &m, NULL) < 0)                                     \
			return;                                                                              \
		assert(dmig_wire_encode_##name(&m, again, sizeof(again)) == (ssize_t)len);                   \
		assert(memcmp(again, payload, len) == 0);                                                    \
	}
TRY(stream_begin)
TRY(hole)
TRY(entry_end)
TRY(stream_end)

static void try_data(const uint8_t *payload, size_t len, uint16_t flags)
{
	struct dmig_wire_data m;
	if (dmig_wire_decode_data(payload, len, flags, &m, NULL) < 0)
		return;
	assert((const uint8_t *)m.bytes + m.len == payload + len);
	assert(m.plain_len > 0 && m.plain_len <= DMIG_WIRE_MAX_DATA && m.len <= m.plain_len);
	assert((int64_t)(m.offset + m.plain_len) > 0);
	assert(dmig_wire_encode_data(&m, again, sizeof(again)) == DMIG_WIRE_DATA_HEAD);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_frame_header h;
	if (size < sizeof(h) || dmig_wire_decode_header(data, &h, NULL) < 0)
		return 0;
	data += sizeof(h);
	size -= sizeof(h);
	switch (h.type) {
	case DMIG_MSG_STREAM_BEGIN:
		try_stream_begin(data, size);
		break;
	case DMIG_MSG_DATA:
		try_data(data, size, h.flags);
		break;
	case DMIG_MSG_HOLE:
		try_hole(data, size);
		break;
	case DMIG_MSG_ENTRY_END:
		try_entry_end(data, size);
		break;
	case DMIG_MSG_STREAM_END:
		try_stream_end(data, size);
		break;
	}
	return 0;
}
