/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A frame as it comes from the network: header, then the payload of a control message. */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "wire/check.h"
#include "wire/messages.h"

static uint8_t again[DMIG_WIRE_SMALL];

static void try_hello(const uint8_t *payload, size_t len)
{
	struct dmig_wire_hello m;
	if (dmig_wire_decode_hello(payload, len, &m, NULL) < 0)
		return;
	ssize_t n = dmig_wire_encode_hello(&m, again, sizeof(again));
	assert(n > 0 && (size_t)n <= len && memcmp(again, payload, (size_t)n) == 0);
	dmig_wire_accept_version(&m, NULL);
}

static void try_ping(const uint8_t *payload, size_t len)
{
	struct dmig_wire_ping m;
	if (dmig_wire_decode_ping(payload, len, &m, NULL) < 0)
		return;
	assert(dmig_wire_encode_ping(&m, again, sizeof(again)) == (ssize_t)len &&
		memcmp(again, payload, len) == 0);
}

static void try_status(const uint8_t *payload, size_t len, bool done)
{
	struct dmig_wire_status m;
	struct dmig_error *err = NULL;
	if ((done ? dmig_wire_decode_stream_done : dmig_wire_decode_abort)(payload, len, &m, NULL) < 0)
		return;
	assert(dmig_wire_text_ok(m.message, strlen(m.message)));
	assert(done || m.code > 0);
	assert(dmig_wire_status_error(&m, &err) == -m.code);
	dmig_error_free(err);
	ssize_t n = (done ? dmig_wire_encode_stream_done : dmig_wire_encode_abort)(&m, again, sizeof(again));
	assert(n == (ssize_t)len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_frame_header h;
	struct dmig_wire_json json;
	enum dmig_ran ran;
	if (size < sizeof(h) || dmig_wire_decode_header(data, &h, NULL) < 0)
		return 0;
	assert(h.length <= DMIG_WIRE_MAX_PAYLOAD && dmig_wire_name(h.type));
	data += sizeof(h);
	size -= sizeof(h);
	switch (h.type) {
	case DMIG_MSG_HELLO:
		try_hello(data, size);
		break;
	case DMIG_MSG_PING:
		try_ping(data, size);
		break;
	case DMIG_MSG_ABORT:
		try_status(data, size, false);
		break;
	case DMIG_MSG_STREAM_DONE:
		try_status(data, size, true);
		break;
	case DMIG_MSG_QUERY_RESULT:
		dmig_wire_decode_query_result(data, size, &ran, NULL);
		break;
	default:
		dmig_wire_decode_json(data, size, &json, NULL);
	}
	return 0;
}
