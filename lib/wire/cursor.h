/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_WIRE_CURSOR_H
#define DMIG_WIRE_CURSOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * Write and read little-endian values one behind the other. The first thing that goes wrong sticks: later
 * calls do nothing (get returns 0 and ""), and the _done() function tells it. So a codec is a plain list of
 * calls.
 */
struct dmig_wire_put {
	uint8_t *buf; /* borrowed */
	size_t cap, len;
	int error; /* 0, or a positive errno: EMSGSIZE (does not fit), EINVAL (not a value the peer would
		      accept) */
};

void dmig_wire_put_init(struct dmig_wire_put *p, void *buf, size_t cap);
void dmig_wire_put_u8(struct dmig_wire_put *p, uint8_t v);
void dmig_wire_put_u16(struct dmig_wire_put *p, uint16_t v);
void dmig_wire_put_u32(struct dmig_wire_put *p, uint32_t v);
void dmig_wire_put_u64(struct dmig_wire_put *p, uint64_t v);
void dmig_wire_put_bytes(struct dmig_wire_put *p, const void *data, size_t len);
/* u16 length, bytes, a NUL that the length does not count: so the reader can lend a C string. NULL is "". */
void dmig_wire_put_string(struct dmig_wire_put *p, const char *s, size_t max);
void dmig_wire_put_fail(struct dmig_wire_put *p, int error);
/* Bytes written, or -errno. */
ssize_t dmig_wire_put_done(const struct dmig_wire_put *p);

struct dmig_wire_get {
	const uint8_t *data; /* borrowed */
	size_t len, pos;
	const char *problem; /* static text, NULL while all is well */
};

void dmig_wire_get_init(struct dmig_wire_get *g, const void *data, size_t len);
uint8_t dmig_wire_get_u8(struct dmig_wire_get *g);
uint16_t dmig_wire_get_u16(struct dmig_wire_get *g);
uint32_t dmig_wire_get_u32(struct dmig_wire_get *g);
uint64_t dmig_wire_get_u64(struct dmig_wire_get *g);
/* Lent from the buffer; "" after a failure. */
const void *dmig_wire_get_bytes(struct dmig_wire_get *g, size_t len);
const char *dmig_wire_get_string(struct dmig_wire_get *g, size_t max);
size_t dmig_wire_get_left(const struct dmig_wire_get *g);
void dmig_wire_get_fail(struct dmig_wire_get *g, const char *problem);
/* 0 if all was well and nothing is left over; else -EPROTO with "WHAT: problem". */
int dmig_wire_get_done(struct dmig_wire_get *g, const char *what, struct dmig_error **err);

#endif
