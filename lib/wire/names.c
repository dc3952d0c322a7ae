/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire/messages.h"

#define NAME(type) [DMIG_MSG_##type] = #type
static const char *const names[] = {
	NAME(HELLO),
	NAME(PING),
	NAME(PONG),
	NAME(ABORT),
	NAME(CHECK),
	NAME(CHECK_RESULT),
	NAME(PREPARE),
	NAME(PREPARED),
	NAME(START),
	NAME(STARTED),
	NAME(FROZEN),
	NAME(STATE_END),
	NAME(READY),
	NAME(GO),
	NAME(RESUMED),
	NAME(FINISH),
	NAME(FINISHED),
	NAME(QUERY),
	NAME(QUERY_RESULT),
	NAME(STREAM_BEGIN),
	NAME(ENTRY),
	NAME(DATA),
	NAME(HOLE),
	NAME(ENTRY_END),
	NAME(STREAM_END),
	NAME(STREAM_DONE),
};

static const char *const kinds[] = {
	[DMIG_STREAM_IMAGE] = "image",
	[DMIG_STREAM_ROOTFS] = "rootfs",
	[DMIG_STREAM_VOLUME] = "volume",
	[DMIG_STREAM_LOG] = "log",
	[DMIG_STREAM_CRIU] = "criu",
	[DMIG_STREAM_BIND] = "bind",
};

static const char *look_up(const char *const *table, size_t n, size_t i)
{
	return i < n && table[i] ? table[i] : "unknown";
}

const char *dmig_wire_name(uint16_t type)
{
	return look_up(names, sizeof(names) / sizeof(names[0]), type);
}

const char *dmig_wire_stream_kind_name(enum dmig_stream_kind kind)
{
	return look_up(kinds, sizeof(kinds) / sizeof(kinds[0]), (size_t)kind);
}
