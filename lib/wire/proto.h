/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_WIRE_PROTO_H
#define DMIG_WIRE_PROTO_H

#include <stdint.h>

/*
 * The whole protocol between two hosts on one page. Nobody else knows bytes.
 *
 * Every connection is TLS 1.3 with a pre-shared key; inside it run frames:
 *   struct dmig_frame_header, then `length` bytes of payload.
 * All numbers are little-endian. The source dials. Connections:
 *   control: one. Messages in the order below, PING/PONG at any time.
 *   data:    one or more. Streams: BEGIN (ENTRY (DATA|HOLE)* ENTRY_END)* END, answered by STREAM_DONE.
 *
 *   source                                   destination
 *   HELLO (role control)            ->
 *                                   <-       HELLO (accepted version, id, data port)
 *   CHECK {container, options}      ->
 *                                   <-       CHECK_RESULT {blockers, warnings, image, missing layers, room}
 *   [stream IMAGE on a data connection]
 *   PREPARE                         ->       networks, volumes, image, container created
 *                                   <-       PREPARED
 *   [streams while the container runs: LOG]
 *   START                           ->       container started up to the waiting runtime
 *                                   <-       STARTED
 *   FROZEN                          ->       (freeze; streams ROOTFS, VOLUME, LOG, CRIU run beside it)
 *   STATE_END                       ->       all streams of the frozen state are sent
 *                                   <-       READY        everything restored, nothing runs
 *   GO                              ->       *** commit: from here the source never runs it again ***
 *                                   <-       RESUMED
 *   FINISH                          ->       source is done with the container
 *                                   <-       FINISHED {report of the destination}
 * Either side sends ABORT with a reason instead of its next message; before GO both undo, after GO it only informs.
 * After a lost connection between GO and RESUMED the source dials again, says HELLO with the same id, and sends
 * QUERY; the answer is QUERY_RESULT: did anything run, or will it?
 * While frozen, PING goes every 200 ms and 1 s of silence is death; before, 10 s.
 */
#define DMIG_WIRE_MAGIC 0x31474d44u /* "DMG1" */
#define DMIG_WIRE_VERSION 1	    /* we talk N and N-1 */
#define DMIG_WIRE_VERSION_MIN 1

/* Limits: what a peer may make us hold in memory at once. */
#define DMIG_WIRE_MAX_PAYLOAD (1u << 20)      /* bytes in one frame: 1 MiB keeps a PING behind it below 10 ms at 1 Gbit/s */
#define DMIG_WIRE_MAX_JSON (1u << 20)	      /* a container description; real ones are below 64 KiB */
#define DMIG_WIRE_MAX_PATH 4095		      /* PATH_MAX without its NUL */
#define DMIG_WIRE_MAX_XATTRS 64		      /* per file */
#define DMIG_WIRE_MAX_XATTR_VALUE (64u << 10) /* the kernel's XATTR_SIZE_MAX */
#define DMIG_WIRE_MAX_XATTR_NAME 255	      /* the kernel's XATTR_NAME_MAX */
#define DMIG_WIRE_MAX_STREAM_NAME 255
#define DMIG_WIRE_MAX_TEXT 2000 /* message of an ABORT: a few lines of a program's stderr */
#define DMIG_WIRE_ID_LEN 16 /* lower-case hexadecimal digits of a migration's id */

struct dmig_frame_header {
	uint32_t length; /* of the payload, at most DMIG_WIRE_MAX_PAYLOAD */
	uint16_t type;	 /* enum dmig_msg */
	uint16_t flags;	 /* DMIG_FRAME_* */
} __attribute__((packed));
#define DMIG_FRAME_LZ4 1 /* DATA: payload after its offset is an LZ4 block; the plain size is in the message */

enum dmig_msg {
	DMIG_MSG_HELLO = 1,
	DMIG_MSG_PING = 2,
	DMIG_MSG_PONG = 3,
	DMIG_MSG_ABORT = 4,
	DMIG_MSG_CHECK = 10,
	DMIG_MSG_CHECK_RESULT = 11,
	DMIG_MSG_PREPARE = 12,
	DMIG_MSG_PREPARED = 13,
	DMIG_MSG_START = 14,
	DMIG_MSG_STARTED = 15,
	DMIG_MSG_FROZEN = 16,
	DMIG_MSG_STATE_END = 17,
	DMIG_MSG_READY = 18,
	DMIG_MSG_GO = 19,
	DMIG_MSG_RESUMED = 20,
	DMIG_MSG_FINISH = 21,
	DMIG_MSG_FINISHED = 22,
	DMIG_MSG_QUERY = 23,
	DMIG_MSG_QUERY_RESULT = 24,
	DMIG_MSG_STREAM_BEGIN = 40,
	DMIG_MSG_ENTRY = 41,
	DMIG_MSG_DATA = 42,
	DMIG_MSG_HOLE = 43,
	DMIG_MSG_ENTRY_END = 44,
	DMIG_MSG_STREAM_END = 45,
	DMIG_MSG_STREAM_DONE = 46,
};

enum dmig_role { DMIG_ROLE_CONTROL = 1, DMIG_ROLE_DATA = 2 };

/* What a stream carries, and where its receiver puts it. */
enum dmig_stream_kind {
	DMIG_STREAM_IMAGE = 1,	/* tar for `docker load`, one ENTRY */
	DMIG_STREAM_ROOTFS = 2, /* the writable layer, to be applied through the merged tree */
	DMIG_STREAM_VOLUME = 3, /* name = volume */
	DMIG_STREAM_LOG = 4,	/* what `docker logs` shows */
	DMIG_STREAM_CRIU = 5,	/* CRIU's image folder */
	DMIG_STREAM_BIND = 6,	/* name = absolute path of a bind source to be copied */
};

#endif
