/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_NET_INTERNAL_H
#define DMIG_NET_INTERNAL_H

#include <gnutls/gnutls.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "net/net.h"

/* --- key.c --- */
#define NET_KEY_LEN 32      /* bytes: as strong as the hash the key goes through */
#define NET_IDENTITY_MAX 64 /* characters: letters, digits and . _ - */
struct dmig_key {
	char identity[NET_IDENTITY_MAX + 1];
	uint8_t secret[NET_KEY_LEN];
};

/* --- a moment to give up at: CLOCK_MONOTONIC milliseconds, -1 never --- */
int64_t dmig_net__deadline(int timeout_ms);
int dmig_net__left(int64_t deadline); /* for poll(2): 0 when over */

/* --- resolve.c: list for freeaddrinfo(), within the deadline; numeric hosts need no thread and no name
 * server --- */
int dmig_net__resolve(const char *host, uint16_t port, int flags, int64_t deadline, struct addrinfo **ret,
	struct dmig_error **err);

/* --- address.c --- */
/* "10.0.0.1:7788", "[fe80::1]:7788"; IPv4 in IPv6 is shown as IPv4. -EAFNOSUPPORT for what is not IP. */
int dmig_net__address_of(const struct sockaddr *sa, socklen_t len, struct dmig_address *ret);
char *dmig_net__address_text(const struct dmig_address *a);

/*
 * A connection. Between the socket and GnuTLS stand two buffers of ours, so that GnuTLS never waits: it is
 * called with the session lock held, only computes, and whoever needs the network waits outside, woken by the
 * socket or by wake_fd.
 *
 *   sender:   turn -> [lock: gnutls_record_send -> push -> out] ... -> flush: out -> socket
 *   receiver: fill: socket -> in -> [lock: pull <- in, gnutls_record_recv -> frame]
 *
 * One lock for both directions because TLS 1.3 changes keys (after 2^24 records, or when the peer asks) in
 * code that works on state shared by both. It is held for one record, some microseconds. Order: turn, then
 * session lock.
 */
#define NET_RECORD 16384u     /* plain bytes in one TLS record: the most that TLS allows */
#define NET_FLUSH (64u << 10) /* send at this many bytes: few system calls, still in the cache */
/* A record and its overhead always fit behind NET_FLUSH - 1 bytes. */
#define NET_OUT (NET_FLUSH + 2 * NET_RECORD)
#define NET_IN (64u << 10)

struct dmig_conn {
	int fd;
	int wake_fd;         /* eventfd, readable for good once shut down */
	atomic_bool aborted; /* set before wake_fd is written */
	atomic_int send_timeout_ms;
	char *peer;
	struct dmig_address peer_address; /* port 0: not TCP */

	pthread_mutex_t session_lock; /* guards every call on session, and in_send */
	gnutls_session_t session;
	gnutls_psk_client_credentials_t client_cred;
	gnutls_psk_server_credentials_t server_cred;
	struct dmig_key *key; /* own copy, for the server's callback */
	bool in_send; /* push may write to out: the caller has the turn, or nobody else is there yet */

	/* FIFO for senders: a plain mutex would let a thread with bulk data starve a PING. */
	pthread_mutex_t turn_lock; /* guards the two tickets */
	pthread_cond_t turn_moved;
	uint64_t next_ticket, now_served;
	/* Owned by whoever has the turn. */
	uint8_t *out;
	size_t out_len;
	int send_error; /* negative errno: sending is over */
	uint8_t *stage; /* NET_RECORD bytes: start of a frame put together */

	/* Owned by the receiving thread. */
	uint8_t *in;
	size_t in_pos, in_len;
	uint8_t header[sizeof(struct dmig_frame_header)];
	struct dmig_frame_header frame; /* valid when have >= sizeof(header) */
	size_t have;                    /* bytes of the frame so far, header included */
	uint8_t *payload;               /* DMIG_WIRE_MAX_PAYLOAD bytes */
	int recv_error;                 /* negative errno: receiving is over */

	atomic_uint_least64_t sent, received;
};

/* --- tls.c --- */
int dmig_net__tls_setup(
	struct dmig_conn *conn, const struct dmig_key *key, bool server, struct dmig_error **err);
int dmig_net__tls_handshake(struct dmig_conn *conn, int64_t deadline, struct dmig_error **err);
void dmig_net__tls_bye(struct dmig_conn *conn); /* best effort, does not wait */
void dmig_net__tls_free(struct dmig_conn *conn);

/* --- io.c --- */
ssize_t dmig_net__push(gnutls_transport_ptr_t ptr, const giovec_t *iov, int n);
ssize_t dmig_net__pull(gnutls_transport_ptr_t ptr, void *buf, size_t len);
int dmig_net__pull_timeout(gnutls_transport_ptr_t ptr, unsigned ms);
/*
 * Move out to the socket, or something from the socket to in (which must be empty). 0, -ECONNABORTED, -EPIPE
 * with a message, or -ETIMEDOUT: nothing could be moved until the deadline (flush: renewed by progress if
 * renew_ms >= 0).
 */
int dmig_net__flush(struct dmig_conn *conn, int64_t deadline, int renew_ms, struct dmig_error **err);
int dmig_net__fill(struct dmig_conn *conn, int64_t deadline, struct dmig_error **err);
int dmig_net__aborted(struct dmig_error **err);

#endif
