/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Peers that do not play by the rules: a relay between two good ends, and bare GnuTLS with or without the
 * key. */
#include "net_test.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#define KEY_LINE "dmigrate-key-1 name 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OUR_PRIORITY                                                                                         \
	"NONE:+VERS-TLS1.3:+AES-128-GCM:+AEAD:+MAC-ALL:+SIGN-ALL:+ECDHE-PSK:+COMP-NULL:+GROUP-X25519"

static uint8_t secret[32];

static struct dmig_key *test_key(void)
{
	struct dmig_error *err = NULL;
	struct dmig_key *key;
	assert_ok(dmig_key_parse(KEY_LINE, strlen(KEY_LINE), &key, &err), err);
	for (size_t i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)(i % 16 * 0x11);
	return key;
}

struct raw {
	gnutls_session_t session;
	gnutls_psk_client_credentials_t psk;
	gnutls_certificate_credentials_t cert;
	int fd;
};

static void raw_client(struct raw *raw, int fd, const char *priority)
{
	const gnutls_datum_t datum = {.data = secret, .size = sizeof(secret)};
	*raw = (struct raw){.fd = fd};
	assert_int_equal(gnutls_init(&raw->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL), 0);
	assert_int_equal(gnutls_priority_set_direct(raw->session, priority, NULL), 0);
	assert_int_equal(gnutls_psk_allocate_client_credentials(&raw->psk), 0);
	assert_int_equal(gnutls_psk_set_client_credentials(raw->psk, "name", &datum, GNUTLS_PSK_KEY_RAW), 0);
	assert_int_equal(gnutls_credentials_set(raw->session, GNUTLS_CRD_PSK, raw->psk), 0);
	gnutls_transport_set_int(raw->session, fd);
	gnutls_handshake_set_timeout(raw->session, PATIENCE);
}

static void raw_free(struct raw *raw)
{
	gnutls_deinit(raw->session);
	if (raw->psk)
		gnutls_psk_free_client_credentials(raw->psk);
	if (raw->cert)
		gnutls_certificate_free_credentials(raw->cert);
	close(raw->fd);
}

/* Handshake of a raw client with our server: result of the server. */
static int raw_connect(struct raw *raw, const char *priority, struct dmig_conn **ret_server)
{
	struct dmig_key *key = test_key();
	pthread_t thread;
	int fds[2], r;
	unix_pair(fds);
	struct server_start s = {.fd = fds[1], .key = key};
	raw_client(raw, fds[0], priority);
	assert_int_equal(pthread_create(&thread, NULL, server_main, &s), 0);
	do
		r = gnutls_handshake(raw->session);
	while (r < 0 && !gnutls_error_is_fatal(r));
	if (r < 0)
		shutdown(raw->fd, SHUT_RDWR);
	assert_int_equal(pthread_join(thread, NULL), 0);
	dmig_error_free(s.err);
	dmig_key_free(key);
	*ret_server = s.conn;
	return s.result;
}

static void wrong_kinds_of_tls(void **state)
{
	(void)state;
	static const char *const priorities[] = {
		/* older protocol, key without Diffie-Hellman, certificates, another hash */
		"NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-PSK",
		"NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+PSK",
		"NORMAL:-VERS-ALL:+VERS-TLS1.3",
		"NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-PSK:-CIPHER-ALL:+AES-256-GCM",
	};
	for (size_t i = 0; i < sizeof(priorities) / sizeof(priorities[0]); i++) {
		struct dmig_conn *server = NULL;
		struct raw raw;
		int r = raw_connect(&raw, priorities[i], &server);
		assert_true(r == -EPROTO || r == -EACCES);
		assert_null(server);
		raw_free(&raw);
	}
}

static void good_raw_peer(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_conn *server;
	struct dmig_frame f;
	struct raw raw;
	static const uint8_t two[] = {1, 0, 0, 0, 10, 0, 0, 0, 'a', 0, 0, 0, 0, 19, 0, 0, 0};
	assert_int_equal(raw_connect(&raw, OUR_PRIORITY, &server), 0);
	/* Two frames in one record, then one byte to a record. */
	assert_int_equal(gnutls_record_send(raw.session, two, sizeof(two)), sizeof(two));
	for (size_t i = 0; i < sizeof(two); i++)
		assert_int_equal(gnutls_record_send(raw.session, two + i, 1), 1);
	for (int i = 0; i < 2; i++) {
		assert_ok(dmig_conn_recv(server, PATIENCE, &f, &err), err);
		assert_int_equal(f.type, DMIG_MSG_CHECK);
		assert_int_equal(f.payload[0], 'a');
		assert_ok(dmig_conn_recv(server, PATIENCE, &f, &err), err);
		assert_int_equal(f.type, DMIG_MSG_GO);
	}
	raw_free(&raw);
	dmig_conn_free(server);
}

static void bad_header(const uint8_t header[8])
{
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_conn *server;
	struct dmig_frame f;
	struct raw raw;
	assert_int_equal(raw_connect(&raw, OUR_PRIORITY, &server), 0);
	assert_int_equal(gnutls_record_send(raw.session, header, 8), 8);
	assert_fails(dmig_conn_recv(server, PATIENCE, &f, &err), err, EPROTO);
	assert_fails(dmig_conn_recv(server, PATIENCE, &f, &err), err, EPROTO);
	/* It can still be told. */
	assert_ok(dmig_conn_send(server, DMIG_MSG_ABORT, 0, "x", 1, NULL, 0, &err), err);
	raw_free(&raw);
	dmig_conn_free(server);
}

static void bad_headers(void **state)
{
	(void)state;
	static const uint8_t above[8] = {1, 0, 16, 0, 42}, huge[8] = {255, 255, 255, 255, 42},
			     flags[8] = {0, 0, 0, 0, 2, 0, 4};
	bad_header(above);
	bad_header(huge);
	bad_header(flags);
}

static void new_keys_on_the_way(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_conn *server;
	struct dmig_frame f;
	struct raw raw;
	static const uint8_t go[] = {0, 0, 0, 0, 19, 0, 0, 0};
	uint8_t back[8];
	assert_int_equal(raw_connect(&raw, OUR_PRIORITY, &server), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(gnutls_session_key_update(raw.session, i % 2 ? GNUTLS_KU_PEER : 0), 0);
		assert_int_equal(gnutls_record_send(raw.session, go, sizeof(go)), sizeof(go));
		assert_ok(dmig_conn_recv(server, PATIENCE, &f, &err), err);
		assert_int_equal(f.type, DMIG_MSG_GO);
		assert_ok(dmig_conn_send(server, DMIG_MSG_GO, 0, NULL, 0, NULL, 0, &err), err);
		ssize_t n;
		do
			n = gnutls_record_recv(raw.session, back, sizeof(back));
		while (n == GNUTLS_E_AGAIN);
		assert_int_equal(n, 8);
		assert_memory_equal(back, go, 8);
	}
	raw_free(&raw);
	dmig_conn_free(server);
}

static void too_many_new_keys(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_conn *server;
	struct dmig_frame f;
	struct raw raw;
	assert_int_equal(raw_connect(&raw, OUR_PRIORITY, &server), 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(gnutls_session_key_update(raw.session, 0), 0);
	assert_fails(dmig_conn_recv(server, PATIENCE, &f, &err), err, EPROTO);
	raw_free(&raw);
	dmig_conn_free(server);
}

static void noise_instead_of_tls(void **state)
{
	(void)state;
	struct dmig_key *key = test_key();
	static const char *const noise[] = {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2p1\r\n",
		"\x16\x03\x03\xff\xff", "\x16\x03\x01\x00\x04\x01\x00\x00\x00",
		"\x15\x03\x03\x00\x02\x02\x28", "\x17\x03\x03\x00\x01z"};
	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
		cleanup_error struct dmig_error *err = NULL;
		struct dmig_conn *conn;
		int fds[2];
		unix_pair(fds);
		size_t len = i < 2 ? strlen(noise[i]) : i == 2 ? 5 : i == 3 ? 9 : i == 4 ? 7 : 6;
		assert_int_equal(dmig_write_full(fds[1], noise[i], len), 0);
		shutdown(fds[1], SHUT_WR);
		int r = dmig_conn_server(fds[0], key, PATIENCE, &conn, &err);
		assert_true(r == -EPROTO || r == -EPIPE || r == -EACCES);
		assert_non_null(err);
		close(fds[1]);
	}
	dmig_key_free(key);
}

/* --- a server that has no key but a certificate --- */
static void self_signed(gnutls_certificate_credentials_t cred)
{
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	const uint8_t serial = 1;
	assert_int_equal(gnutls_x509_privkey_init(&key), 0);
	assert_int_equal(gnutls_x509_privkey_generate(
				 key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
		0);
	assert_int_equal(gnutls_x509_crt_init(&crt), 0);
	assert_int_equal(gnutls_x509_crt_set_version(crt, 3), 0);
	assert_int_equal(gnutls_x509_crt_set_serial(crt, &serial, 1), 0);
	assert_int_equal(gnutls_x509_crt_set_activation_time(crt, 0), 0);
	assert_int_equal(gnutls_x509_crt_set_expiration_time(crt, -1), 0);
	assert_int_equal(gnutls_x509_crt_set_key(crt, key), 0);
	assert_int_equal(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), 0);
	assert_true(gnutls_certificate_set_x509_key(cred, &crt, 1, key) >= 0);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
}

static void *cert_server_main(void *opaque)
{
	struct raw *raw = opaque;
	int r;
	do
		r = gnutls_handshake(raw->session);
	while (r < 0 && !gnutls_error_is_fatal(r));
	shutdown(raw->fd, SHUT_RDWR);
	return NULL;
}

static void certificate_is_no_key(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_key *key = test_key();
	struct dmig_conn *conn = NULL;
	pthread_t thread;
	int fds[2];
	unix_pair(fds);
	struct raw raw = {.fd = fds[1]};
	assert_int_equal(gnutls_init(&raw.session, GNUTLS_SERVER | GNUTLS_NO_SIGNAL), 0);
	assert_int_equal(gnutls_priority_set_direct(raw.session, "NORMAL", NULL), 0);
	assert_int_equal(gnutls_certificate_allocate_credentials(&raw.cert), 0);
	self_signed(raw.cert);
	assert_int_equal(gnutls_credentials_set(raw.session, GNUTLS_CRD_CERTIFICATE, raw.cert), 0);
	gnutls_transport_set_int(raw.session, raw.fd);
	assert_int_equal(pthread_create(&thread, NULL, cert_server_main, &raw), 0);
	int r = dmig_conn_client(fds[0], key, PATIENCE, &conn, &err);
	assert_true(r == -EACCES || r == -EPROTO || r == -EPIPE);
	assert_null(conn);
	assert_int_equal(pthread_join(thread, NULL), 0);
	raw_free(&raw);
	dmig_key_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_kinds_of_tls),
		cmocka_unit_test(good_raw_peer),
		cmocka_unit_test(bad_headers),
		cmocka_unit_test(new_keys_on_the_way),
		cmocka_unit_test(too_many_new_keys),
		cmocka_unit_test(noise_instead_of_tls),
		cmocka_unit_test(certificate_is_no_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
