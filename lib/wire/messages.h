/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_WIRE_MESSAGES_H
#define DMIG_WIRE_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"
#include "wire/proto.h"

/*
 * Encode and decode of every message of proto.h. Pure: no I/O, no allocation.
 *
 *   ssize_t dmig_wire_encode_X(const struct dmig_wire_X *m, void *buf, size_t size)
 *	bytes written; -EMSGSIZE if they do not fit, -EINVAL for what the peer would refuse
 *   int dmig_wire_decode_X(const void *payload, size_t len, struct dmig_wire_X *ret, struct dmig_error **err)
 *	0; -EPROTO for anything that is not exactly right. Pointers in *ret lend from payload; strings end
 *with a NUL.
 *
 * The fields stand on the wire in the order of the comments, without padding.
 * DMIG_WIRE_SMALL bytes hold every message but ENTRY (DMIG_WIRE_MAX_PAYLOAD), JSON and the bytes of DATA.
 */
#define DMIG_WIRE_SMALL 4096

/* Name for logs: "ENTRY"; "message 77" is not invented, it is "unknown". */
const char *dmig_wire_name(uint16_t type);
const char *dmig_wire_stream_kind_name(enum dmig_stream_kind kind); /* "rootfs" */

/* Frame header: u32 length, u16 type, u16 flags. Decode takes exactly sizeof(struct dmig_frame_header) bytes.
 */
void dmig_wire_encode_header(
	const struct dmig_frame_header *h, uint8_t buf[sizeof(struct dmig_frame_header)]);
int dmig_wire_decode_header(const uint8_t buf[sizeof(struct dmig_frame_header)],
	struct dmig_frame_header *ret, struct dmig_error **err);

/*
 * u32 magic, u16 version_min, u16 version_max, u16 role, u16 data_port, u64 features, id[16].
 * The answer has version_min = version_max = the accepted one. Bytes behind are left to later versions and
 * ignored.
 */
struct dmig_wire_hello {
	uint16_t version_min, version_max;
	enum dmig_role role;
	uint16_t data_port; /* where the destination takes data connections; 0: the same port, or not said */
	uint64_t features;  /* DMIG_FEATURE_*: bits that are not known are ignored */
	char id[DMIG_WIRE_ID_LEN + 1];
};
ssize_t dmig_wire_encode_hello(const struct dmig_wire_hello *m, void *buf, size_t size);
int dmig_wire_decode_hello(
	const void *payload, size_t len, struct dmig_wire_hello *ret, struct dmig_error **err);
/* The highest version that both sides talk, or -EPROTONOSUPPORT with a message that names both ranges. */
int dmig_wire_accept_version(const struct dmig_wire_hello *peer, struct dmig_error **err);

/* PING, PONG: u64 seq, u64 clock_us. PONG repeats the seq and gives the clock of its own sender. */
struct dmig_wire_ping {
	uint64_t seq, clock_us;
};
ssize_t dmig_wire_encode_ping(const struct dmig_wire_ping *m, void *buf, size_t size);
int dmig_wire_decode_ping(
	const void *payload, size_t len, struct dmig_wire_ping *ret, struct dmig_error **err);

/*
 * ABORT, STREAM_DONE: u32 code, u8 class, u8 side, string message. code is a positive errno; 0 (with an empty
 * message) says "fine" and only STREAM_DONE may have it. Encode cleans the message so that it is one line of
 * UTF-8.
 */
struct dmig_wire_status {
	int code;
	enum dmig_error_class class; /* one that we do not know is read as DMIG_ERR_FAILED */
	enum dmig_side side;
	const char *message;
};
ssize_t dmig_wire_encode_abort(const struct dmig_wire_status *m, void *buf, size_t size);
int dmig_wire_decode_abort(
	const void *payload, size_t len, struct dmig_wire_status *ret, struct dmig_error **err);
ssize_t dmig_wire_encode_stream_done(const struct dmig_wire_status *m, void *buf, size_t size);
int dmig_wire_decode_stream_done(
	const void *payload, size_t len, struct dmig_wire_status *ret, struct dmig_error **err);
/* error NULL: fine. A side that the error does not know becomes `here`. Lends the message. */
struct dmig_wire_status dmig_wire_status_of(const struct dmig_error *error, enum dmig_side here);
/* The status as an error of ours: 0 if fine, else *err is filled (code, class, side, message) and -code
 * returned. */
int dmig_wire_status_error(const struct dmig_wire_status *m, struct dmig_error **err);

/* CHECK, CHECK_RESULT, PREPARE, FINISHED: the payload is the text. Here only its length and UTF-8 are
 * checked. NOT NUL-terminated. */
struct dmig_wire_json {
	const char *text;
	size_t len; /* 1 to DMIG_WIRE_MAX_JSON */
};
int dmig_wire_decode_json(
	const void *payload, size_t len, struct dmig_wire_json *ret, struct dmig_error **err);

/* Messages without a payload. */
int dmig_wire_decode_empty(const void *payload, size_t len, struct dmig_error **err);

/* QUERY_RESULT: u32 ran. */
enum dmig_ran {
	DMIG_RAN_NO = 0,  /* no task of the container ran here, and none will */
	DMIG_RAN_YES = 1, /* one ran, or will */
};
ssize_t dmig_wire_encode_query_result(enum dmig_ran ran, void *buf, size_t size);
int dmig_wire_decode_query_result(
	const void *payload, size_t len, enum dmig_ran *ret, struct dmig_error **err);

/* u16 kind, string name. VOLUME: one component; BIND: absolute path; the others: any text. */
struct dmig_wire_stream_begin {
	enum dmig_stream_kind kind;
	const char *name;
};
ssize_t dmig_wire_encode_stream_begin(const struct dmig_wire_stream_begin *m, void *buf, size_t size);
int dmig_wire_decode_stream_begin(
	const void *payload, size_t len, struct dmig_wire_stream_begin *ret, struct dmig_error **err);

enum dmig_entry_type {
	DMIG_ENTRY_FILE = 1,
	DMIG_ENTRY_FOLDER = 2,
	DMIG_ENTRY_SYMLINK = 3,
	DMIG_ENTRY_CHAR = 4,
	DMIG_ENTRY_BLOCK = 5,
	DMIG_ENTRY_FIFO = 6,
	DMIG_ENTRY_SOCKET = 7,
	DMIG_ENTRY_HARDLINK = 8, /* another name of an earlier entry: path and hardlink, all else is 0 */
	DMIG_ENTRY_WHITEOUT = 9, /* overlay: the name is gone: path only */
};
#define DMIG_ENTRY_OPAQUE 1       /* FOLDER of an overlay: what lies below it is hidden */
#define DMIG_ENTRY_SIZE_UNKNOWN 2 /* FILE read from a pipe: size is 0, ENTRY_END tells */

struct dmig_wire_xattr {
	const char *name;
	const void *value;
	uint32_t len;
};
struct dmig_wire_time {
	int64_t sec;
	uint32_t nsec; /* below 1e9 */
};
/*
 * u16 type, u16 flags, u32 mode, u32 uid, u32 gid, u64 rdev, u64 size, 2 x {u64 sec, u32 nsec} (mtime,
 * atime), string path, string target, string hardlink, u16 count, count x {string name, u32 len, value}.
 */
struct dmig_wire_entry {
	enum dmig_entry_type type;
	uint16_t flags; /* DMIG_ENTRY_OPAQUE, ... */
	uint32_t mode;  /* 07777 */
	uint32_t uid, gid;
	uint64_t rdev; /* CHAR and BLOCK: major << 32 | minor, else 0 */
	uint64_t size; /* FILE, else 0 */
	struct dmig_wire_time mtime, atime;
	const char
		*path; /* relative; "" is the root: of FOLDER the tree's own, of FILE a stream of one file */
	const char *target;   /* SYMLINK: any 1 to 4095 bytes, else "" */
	const char *hardlink; /* HARDLINK: path of the earlier entry, else "" */
	uint16_t n_xattrs;
	struct dmig_wire_xattr xattrs[DMIG_WIRE_MAX_XATTRS];
};
ssize_t dmig_wire_encode_entry(const struct dmig_wire_entry *m, void *buf, size_t size);
int dmig_wire_decode_entry(
	const void *payload, size_t len, struct dmig_wire_entry *ret, struct dmig_error **err);

/* u64 offset, u32 plain_len, then the bytes: plain_len of them, or with DMIG_FRAME_LZ4 fewer, one LZ4 block.
 */
#define DMIG_WIRE_DATA_HEAD 12                                           /* bytes before the contents */
/* Plain bytes, compressed or not. */
#define DMIG_WIRE_MAX_DATA (DMIG_WIRE_MAX_PAYLOAD - DMIG_WIRE_DATA_HEAD)
struct dmig_wire_data {
	uint64_t offset;    /* offset + plain_len stays within a signed 64-bit number */
	uint32_t plain_len; /* 1 to DMIG_WIRE_MAX_DATA */
	const void *bytes;  /* only decode */
	uint32_t len;       /* only decode */
};
/* The head alone: the bytes follow as body of dmig_conn_send(). */
ssize_t dmig_wire_encode_data(const struct dmig_wire_data *m, void *buf, size_t size);
/* flags are those of the frame. */
int dmig_wire_decode_data(
	const void *payload, size_t len, uint16_t flags, struct dmig_wire_data *ret, struct dmig_error **err);

/* u64 offset, u64 len: zeros that are not sent. */
struct dmig_wire_hole {
	uint64_t offset, len; /* len > 0, the sum as in DATA */
};
ssize_t dmig_wire_encode_hole(const struct dmig_wire_hole *m, void *buf, size_t size);
int dmig_wire_decode_hole(
	const void *payload, size_t len, struct dmig_wire_hole *ret, struct dmig_error **err);

/* u64 sum, u64 size. After every FILE. sum: XXH3 of the plain bytes of its DATA in the order sent; holes do
 * not count. */
struct dmig_wire_entry_end {
	uint64_t sum, size;
};
ssize_t dmig_wire_encode_entry_end(const struct dmig_wire_entry_end *m, void *buf, size_t size);
int dmig_wire_decode_entry_end(
	const void *payload, size_t len, struct dmig_wire_entry_end *ret, struct dmig_error **err);

/* u64 entries, u64 files, u64 bytes: what was sent; the receiver compares. */
struct dmig_wire_stream_end {
	uint64_t entries, files, bytes;
};
ssize_t dmig_wire_encode_stream_end(const struct dmig_wire_stream_end *m, void *buf, size_t size);
int dmig_wire_decode_stream_end(
	const void *payload, size_t len, struct dmig_wire_stream_end *ret, struct dmig_error **err);

#endif
