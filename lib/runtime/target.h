/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_TARGET_H
#define DMIG_RUNTIME_TARGET_H

#include <stdint.h>

/*
 * Between dmigrate-runc (and its restore helper), and the dmigrated that owns an uncommitted target.
 * Socket: /run/dmigrate/target/CID.sock, AF_UNIX SOCK_SEQPACKET, peers are uid 0 on both ends. One message is
 * one packet: struct dmig_target_msg, then `length` bytes; descriptors by SCM_RIGHTS. Numbers in host order.
 *
 * Record: /var/lib/dmigrate/targets/CID, one line: "uncommitted MIGRATION-ID".
 * No record: the container is an ordinary one and dmigrate-runc only executes the real runc.
 * With a record the wrapper NEVER falls through to a plain create or start: that would start a fresh copy
 * beside the live source. Nobody listening on the socket = the migration is dead.
 *
 *  who              message           answer (time limit)                   end of file means
 *  wrapper create   CREATE argv, fds  CREATED pid | FAILED text (60 s)      dead: create fails
 *  helper of start  START own pid     STARTED pid | FAILED text (10 s)      dead: start fails
 *  wrapper kill     KILL signal       OK action | FAILED text (10 s)        dead: clean up, tombstone
 *  wrapper delete   DELETE force      OK action | FAILED text (10 s)        dead: clean up, real runc
 *  wrapper exec     EXEC_WAIT         OK action | FAILED text (10 s)        dead: fail
 *  state, ps        STATE             STATE pid, json | OK PASS (2 s)       dead: real runc
 *
 * The helper stays connected after STARTED:
 *  dmigrated to helper                         helper to dmigrated
 *  GO number of arguments, strings, stdio fds
 *                                              RESTORED exit code: runc restore has ended
 *  RELEASE: do not kill any more               OK
 *  OK: committed                               - (exits)
 *  FAILED text: undo                           TOMBSTONE errno: all is dead, Docker sees it; exits
 * Until RELEASE the helper is armed: end of file makes it end what was restored, put runc's state folder back
 * and make the tombstone. After RELEASE it only sees runc to its end. docs/design/runtime.md has every death.
 */
#define DMIG_TARGET_MAGIC 0x31544d44u /* "DMT1" */
#define DMIG_TARGET_MAX_BYTES 65536   /* strings of one call: Docker's are below 2 KiB */
#define DMIG_TARGET_MAX_FDS 4         /* stdio and one to spare */

/* Milliseconds a wrapper waits. Docker's prestart hooks make create the slow one: 0.3 s on a busy host. */
#define DMIG_TARGET_CREATE_MS 60000
#define DMIG_TARGET_ANSWER_MS 10000
#define DMIG_TARGET_STATE_MS 2000

enum dmig_target_type {
	DMIG_TARGET_CREATE = 1,
	DMIG_TARGET_CREATED,
	DMIG_TARGET_START,
	DMIG_TARGET_STARTED,
	DMIG_TARGET_GO,
	DMIG_TARGET_RESTORED,
	DMIG_TARGET_RELEASE,
	DMIG_TARGET_TOMBSTONE,
	DMIG_TARGET_KILL,
	DMIG_TARGET_DELETE,
	DMIG_TARGET_EXEC_WAIT,
	DMIG_TARGET_STATE,
	DMIG_TARGET_OK,
	DMIG_TARGET_FAILED,
	DMIG_TARGET_TYPES, /* not a type: how many there are */
};

/* Value of OK to a wrapper: what it does next. */
enum dmig_target_action {
	DMIG_TARGET_DONE = 0,        /* nothing, success */
	DMIG_TARGET_PASS = 1,        /* execute the real runc with the same arguments */
	DMIG_TARGET_DO_TOMBSTONE = 2 /* the helper is dead: make the tombstone yourself */
};

struct dmig_target_msg {
	uint32_t magic;
	uint32_t type; /* enum dmig_target_type */
	/*
	 * CREATED, START, STARTED, STATE: pid. KILL: signal. DELETE: force. OK: action. RESTORED: exit code.
	 * TOMBSTONE: errno. GO: number of arguments, the strings behind them are environment.
	 */
	int32_t value;
	uint32_t length; /* bytes that follow: NUL-terminated strings (CREATE, GO) or text (FAILED, STATE) */
};

#endif
