/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_NET_NET_H
#define DMIG_NET_NET_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"
#include "wire/proto.h"

/*
 * Host-to-host transport: TCP with TLS 1.3 and a pre-shared key on every connection, and whole frames on top.
 * Thread rules: any thread may send (whole frames, a lock inside keeps them apart); one thread at a time receives.
 */
struct dmig_key; /* 32 random bytes and an identity */
int dmig_key_generate(struct dmig_key **ret, struct dmig_error **err);
/* Key file: one line "dmigrate-key-1 IDENTITY HEX". Refused unless a regular file of our uid with mode 0600 or 0400. */
int dmig_key_load(const char *path, struct dmig_key **ret, struct dmig_error **err);
int dmig_key_save(const struct dmig_key *key, const char *path, struct dmig_error **err); /* 0600, never overwrites */
int dmig_key_parse(const char *text, size_t len, struct dmig_key **ret, struct dmig_error **err);
char *dmig_key_format(const struct dmig_key *key); /* caller frees */
void dmig_key_free(struct dmig_key *key);

/* "host:port", "[v6]:port"; default_port used when none is given, 0 = required. Numeric or resolved by name. */
struct dmig_address {
	char host[256];
	uint16_t port;
};
int dmig_address_parse(const char *text, uint16_t default_port, struct dmig_address *ret, struct dmig_error **err);

struct dmig_conn;
/* Connect, handshake, TCP_NODELAY, close-on-exec. timeout_ms covers all of it. */
int dmig_conn_dial(const struct dmig_address *to, const struct dmig_key *key, int timeout_ms, struct dmig_conn **ret,
	struct dmig_error **err);
/* Take a connected stream socket (TCP, or a socketpair to an ssh tunnel). Takes ownership of fd, also on failure. */
int dmig_conn_client(int fd, const struct dmig_key *key, int timeout_ms, struct dmig_conn **ret, struct dmig_error **err);
int dmig_conn_server(int fd, const struct dmig_key *key, int timeout_ms, struct dmig_conn **ret, struct dmig_error **err);
void dmig_conn_free(struct dmig_conn *conn); /* closes */
/* Wake everybody blocked in this connection with -ECONNABORTED; any thread. */
void dmig_conn_shutdown(struct dmig_conn *conn);
/* "10.0.0.1:7788" of the peer or ourselves, for messages and for dialling data connections; lent. */
const char *dmig_conn_peer(const struct dmig_conn *conn);
/* Bind data connections to what the control connection used: address of the peer. */
int dmig_conn_peer_address(const struct dmig_conn *conn, struct dmig_address *ret);

/*
 * One whole frame. head and body are joined into one payload (body may be NULL): a caller need not copy bulk data.
 * Senders take turns in the order they came. After a failure other than -EMSGSIZE (payload above the limit, nothing was
 * sent) sending is over: -EPIPE, -ETIMEDOUT, -ECONNABORTED. Receiving may still bring the peer's ABORT.
 */
int dmig_conn_send(struct dmig_conn *conn, enum dmig_msg type, uint16_t flags, const void *head, size_t head_len,
	const void *body, size_t body_len, struct dmig_error **err);

/* A send that moves nothing for so long fails with -ETIMEDOUT. Default -1: it waits for the peer, or for a shutdown. */
void dmig_conn_set_send_timeout(struct dmig_conn *conn, int timeout_ms);

struct dmig_frame {
	uint16_t type, flags;
	uint32_t length;
	uint8_t *payload; /* lent: valid until the next receive on this connection */
};
/*
 * Wait until a whole frame is there or nothing has come for timeout_ms (-1: for ever): -ETIMEDOUT then, and nothing is
 * lost, the next call goes on, also in the middle of a frame. An oversized or broken frame is -EPROTO, a closed or lost
 * connection -EPIPE, one that was shut down here -ECONNABORTED: receiving is over then.
 */
int dmig_conn_recv(struct dmig_conn *conn, int timeout_ms, struct dmig_frame *ret, struct dmig_error **err);
/* Payload bytes so far, both directions, on the wire (with TLS and frame overhead: an estimate from record sizes). */
void dmig_conn_bytes(const struct dmig_conn *conn, uint64_t *ret_sent, uint64_t *ret_received);

/* Listen on address (host may be "" for all); port 0 or a range low-high: first free one. Non-blocking accept fd. */
int dmig_listen(const char *host, uint16_t low, uint16_t high, uint16_t *ret_port, struct dmig_error **err);
/* Accept one TCP connection, or -ETIMEDOUT. Plain fd, for dmig_conn_server(). */
int dmig_accept(int listen_fd, int timeout_ms, struct dmig_error **err);

#endif
