/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_NOTIFY_WIRE_H
#define DMIG_CRIU_NOTIFY_WIRE_H

#include <stdint.h>

/*
 * The two packets between a CRIU and us, over one AF_UNIX SOCK_SEQPACKET socket. Both little-endian; a packet
 * is exactly one struct. CRIU's half is criu/include/notify-socket.h in criu-patches; the two must agree.
 *
 *   CRIU or hook --> request{action}          before each action-script stage
 *   CRIU or hook <-- answer{ret, value}       ret 0: go on; anything else, or end of file: the stage fails
 *
 * CRIU keeps one connection from its start to its end, so end of file means that CRIU is gone. dmigrate-hook
 * is a new process at every stage and uses a connection for that one stage: it says so by its own magic.
 */
#define DMIG_NOTIFY_MAGIC 0x314e5243u      /* "CRN1" */
#define DMIG_NOTIFY_MAGIC_HOOK 0x31485243u /* "CRH1": this connection carries one stage */
#define DMIG_NOTIFY_VERSION 1u
#define DMIG_NOTIFY_ACTION_BYTES 32 /* with its NUL */

/* Where dmigrate-hook finds the socket: CRIU starts an action script without arguments but with its own
 * environment. */
#define DMIG_NOTIFY_ENV "DMIGRATE_NOTIFY_SOCKET"

struct dmig_notify_request {
	uint32_t magic;
	uint32_t version;
	char action[DMIG_NOTIFY_ACTION_BYTES];
	int32_t root_pid; /* as CRIU sees it, 0: none yet */
	int32_t status;
};

struct dmig_notify_reply {
	uint32_t magic; /* always DMIG_NOTIFY_MAGIC */
	int32_t ret;
	int32_t value;
	uint32_t reserved;
};

_Static_assert(sizeof(struct dmig_notify_request) == 48, "request has holes");
_Static_assert(sizeof(struct dmig_notify_reply) == 16, "reply has holes");

#endif
