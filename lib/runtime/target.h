/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_TARGET_H
#define DMIG_RUNTIME_TARGET_H

#include <stdint.h>

/*
 * Between dmigrate-runc (and its restore helper), and the dmigrated that owns an uncommitted target.
 * Socket: /run/dmigrate/target/CID.sock, AF_UNIX SOCK_SEQPACKET, peers are uid 0 on both ends. One message = one packet:
 * struct dmig_target_msg, then `length` bytes; descriptors by SCM_RIGHTS. Numbers in host order (one machine).
 *
 * Record: /var/lib/dmigrate/targets/CID, one line: "uncommitted MIGRATION-ID" | "draining MIGRATION-ID".
 * No record: the container is an ordinary one and dmigrate-runc only executes the real runc.
 * With a record the wrapper NEVER falls through to a plain create or start: that would start a fresh copy beside the
 * live source. Nobody listening on the socket = the migration is dead: create/start fail, kill/delete clean up.
 *
 *  who                message          answer (time limit)                end of file means
 *  wrapper `create`   CREATE args+fds  CREATED pid | FAILED text (30 s)   migration dead: fail
 *  helper of `start`  START            GO args+fds | FAILED text (none)   dead: tombstone, exit
 *    then             RESTORED status  -                                  (runc restore has ended: 0 or its exit code)
 *    on failure       TOMBSTONE        TOMBSTONE (zombie reaped, 5 s)     make the tombstone anyway
 *  wrapper `kill`     KILL signal      OK | FAILED (5 s)                  dead: tombstone by the wrapper
 *  wrapper `exec`     EXEC_WAIT        OK | FAILED (10 s)                 fail
 *  wrapper `state`    STATE            STATE json (2 s)                   synthesize "created"
 */
#define DMIG_TARGET_MAGIC 0x31544d44u /* "DMT1" */
#define DMIG_TARGET_MAX_BYTES 65536   /* arguments of one runc call: Docker's are below 2 KiB */
#define DMIG_TARGET_SOCKET_DIR "/run/dmigrate/target"
#define DMIG_TARGET_RECORD_DIR "/var/lib/dmigrate/targets"

enum dmig_target_type {
	DMIG_TARGET_CREATE = 1,
	DMIG_TARGET_CREATED,
	DMIG_TARGET_START,
	DMIG_TARGET_GO,
	DMIG_TARGET_RESTORED,
	DMIG_TARGET_TOMBSTONE,
	DMIG_TARGET_KILL,
	DMIG_TARGET_EXEC_WAIT,
	DMIG_TARGET_STATE,
	DMIG_TARGET_OK,
	DMIG_TARGET_FAILED,
};

struct dmig_target_msg {
	uint32_t magic;
	uint32_t type;	 /* enum dmig_target_type */
	int32_t value;	 /* CREATED: pid; KILL: signal; RESTORED: exit code */
	uint32_t length; /* bytes that follow: NUL-separated arguments (CREATE, GO) or text (FAILED, STATE) */
};

#endif
