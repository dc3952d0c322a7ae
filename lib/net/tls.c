/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/internal.h"

/*
 * TLS 1.3 and a pre-shared key with (EC)DHE, nothing else: no certificate can take part, a stolen key does
 * not open recorded traffic. AES-128-GCM first: the fastest with AES instructions; ChaCha20 for machines
 * without. Both go with SHA-256, the hash that an external key is bound to.
 */
#define PRIORITY                                                                                             \
	"NONE:+VERS-TLS1.3:+AES-128-GCM:+CHACHA20-POLY1305:+AEAD:+MAC-ALL:+SIGN-ALL:+ECDHE-PSK:+COMP-NULL:"  \
	"+GROUP-X25519:+GROUP-SECP256R1:%DISABLE_TLS13_COMPAT_MODE"

static int tls_failed(const char *what, int code, struct dmig_error **err)
{
	return dmig_error_set(
		err, code == GNUTLS_E_MEMORY_ERROR ? ENOMEM : EIO, "%s: %s", what, gnutls_strerror(code));
}

/*
 * The server looks up the name of the key that the client says it has. Any other than ours is unknown: 1 lets
 * GnuTLS go on with a random key, so that a wrong name looks like a wrong key from outside.
 */
static int server_key(gnutls_session_t session, const gnutls_datum_t *name, gnutls_datum_t *ret_key)
{
	const struct dmig_conn *conn = gnutls_session_get_ptr(session);
	const char *identity = conn->key->identity;
	if (name->size != strlen(identity) || memcmp(name->data, identity, name->size))
		return 1;
	ret_key->data = gnutls_malloc(NET_KEY_LEN);
	if (!ret_key->data)
		return -1;
	memcpy(ret_key->data, conn->key->secret, NET_KEY_LEN);
	ret_key->size = NET_KEY_LEN;
	return 0;
}

static int set_server(struct dmig_conn *conn)
{
	int r = gnutls_psk_allocate_server_credentials(&conn->server_cred);
	if (r < 0)
		return r;
	gnutls_psk_set_server_credentials_function2(conn->server_cred, server_key);
	return gnutls_credentials_set(conn->session, GNUTLS_CRD_PSK, conn->server_cred);
}

static int set_client(struct dmig_conn *conn)
{
	const gnutls_datum_t secret = {.data = conn->key->secret, .size = NET_KEY_LEN};
	int r = gnutls_psk_allocate_client_credentials(&conn->client_cred);
	if (r < 0)
		return r;
	r = gnutls_psk_set_client_credentials(
		conn->client_cred, conn->key->identity, &secret, GNUTLS_PSK_KEY_RAW);
	if (r < 0)
		return r;
	return gnutls_credentials_set(conn->session, GNUTLS_CRD_PSK, conn->client_cred);
}

int dmig_net__tls_setup(
	struct dmig_conn *conn, const struct dmig_key *key, bool server, struct dmig_error **err)
{
	unsigned flags = GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS |
			 (server ? GNUTLS_SERVER : GNUTLS_CLIENT);
	conn->key = malloc(sizeof(*conn->key));
	if (!conn->key)
		return dmig_error_set(err, ENOMEM, "out of memory");
	*conn->key = *key;
	int r = gnutls_init(&conn->session, flags);
	if (r < 0)
		return tls_failed("cannot set up TLS", r, err);
	gnutls_session_set_ptr(conn->session, conn);
	r = gnutls_priority_set_direct(conn->session, PRIORITY, NULL);
	if (r >= 0)
		r = server ? set_server(conn) : set_client(conn);
	if (r < 0)
		return tls_failed("cannot set up TLS", r, err);
	gnutls_transport_set_ptr(conn->session, conn);
	gnutls_transport_set_vec_push_function(conn->session, dmig_net__push);
	gnutls_transport_set_pull_function(conn->session, dmig_net__pull);
	gnutls_transport_set_pull_timeout_function(conn->session, dmig_net__pull_timeout);
	/* Time limits are ours: GnuTLS never waits. */
	gnutls_handshake_set_timeout(conn->session, GNUTLS_INDEFINITE_TIMEOUT);
	return 0;
}

/* Belt and braces: that the priorities did what we think. */
static int check_session(struct dmig_conn *conn, struct dmig_error **err)
{
	bool good = gnutls_protocol_get_version(conn->session) == GNUTLS_TLS1_3 &&
		    gnutls_auth_get_type(conn->session) == GNUTLS_CRD_PSK &&
		    gnutls_kx_get(conn->session) == GNUTLS_KX_ECDHE_PSK;
	if (good && conn->server_cred) {
		const char *name = gnutls_psk_server_get_username(conn->session);
		good = name && !strcmp(name, conn->key->identity);
	}
	return good ? 0 : dmig_error_set(err, EPROTO, "%s did not use our key", conn->peer);
}

static int handshake_failed(struct dmig_conn *conn, int code, struct dmig_error **err)
{
	if (code == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		const char *alert = gnutls_alert_get_name(gnutls_alert_get(conn->session));
		return dmig_error_set(
			err, EACCES, "%s does not accept our key (%s)", conn->peer, alert ? alert : "alert");
	}
	/* Let the other side know why; its buffer is empty, so this does not wait. */
	conn->in_send = true;
	gnutls_alert_send_appropriate(conn->session, code);
	dmig_net__flush(conn, dmig_net__deadline(0), -1, NULL);
	bool other_key = code == GNUTLS_E_INSUFFICIENT_CREDENTIALS || code == GNUTLS_E_NO_CIPHER_SUITES ||
			 code == GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER || code == GNUTLS_E_DECRYPTION_FAILED ||
			 code == GNUTLS_E_NO_COMMON_KEY_SHARE;
	return dmig_error_set(err, other_key ? EACCES : EPROTO, "%s %s (%s)", conn->peer,
		other_key ? "does not have our key" : "does not speak our TLS", gnutls_strerror(code));
}

int dmig_net__tls_handshake(struct dmig_conn *conn, int64_t deadline, struct dmig_error **err)
{
	for (;;) {
		conn->in_send = true;
		int code = gnutls_handshake(conn->session);
		conn->in_send = false;
		if (code < 0 && gnutls_error_is_fatal(code))
			return handshake_failed(conn, code, err);
		int r = dmig_net__flush(conn, deadline, -1, err);
		if (r < 0)
			return r;
		if (code >= 0)
			return check_session(conn, err);
		if (conn->in_pos < conn->in_len)
			continue;
		r = dmig_net__fill(conn, deadline, err);
		if (r < 0)
			return r;
	}
}

void dmig_net__tls_bye(struct dmig_conn *conn)
{
	if (conn->out_len || conn->send_error || atomic_load(&conn->aborted))
		return;
	conn->in_send = true;
	gnutls_bye(conn->session, GNUTLS_SHUT_WR);
	dmig_net__flush(conn, dmig_net__deadline(0), -1, NULL);
	conn->in_send = false;
}

void dmig_net__tls_free(struct dmig_conn *conn)
{
	if (conn->session)
		gnutls_deinit(conn->session);
	if (conn->client_cred)
		gnutls_psk_free_client_credentials(conn->client_cred);
	if (conn->server_cred)
		gnutls_psk_free_server_credentials(conn->server_cred);
	dmig_key_free(conn->key);
}
