/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A peer that has the key and means ill.
 *
 *	evil-peer source HOST:PORT KEY WORD...		says HELLO as a source, then WORDs
 *	evil-peer destination PORT KEY WORD...		takes one connection, answers HELLO, then WORDs
 *
 * WORD: NUMBER sends an empty message of that type, NUMBER=TEXT one with TEXT, NUMBER*N N of them; @NUMBER waits for a
 * message of that type; "wait" until the other side closes.
 * Exit code 0: the other side has closed or said ABORT, whose text is printed; 1: it took everything, 2: cannot even try.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/net.h"
#include "util/io.h"
#include "wire/messages.h"

#define TIMEOUT_MS 30000 /* of one step: a testbed on a busy machine */

static struct dmig_conn *control;

static void __attribute__((noreturn)) end(int code, const char *what, struct dmig_error *e)
{
	printf("%s: %s\n", what, e ? e->message : "");
	exit(code);
}

static void say_hello(struct dmig_conn *conn, enum dmig_role role, const char *id, uint16_t port)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_error *e = NULL;
	struct dmig_wire_hello hello = {.version_min = DMIG_WIRE_VERSION_MIN, .version_max = DMIG_WIRE_VERSION, .role = role,
		.data_port = port};
	snprintf(hello.id, sizeof(hello.id), "%s", id);
	ssize_t n = dmig_wire_encode_hello(&hello, buf, sizeof(buf));
	if (n < 0 || dmig_conn_send(conn, DMIG_MSG_HELLO, 0, buf, (size_t)n, NULL, 0, &e) < 0)
		end(2, "hello", e);
}

/* The next message that is no heartbeat; answers pings. */
static void next(struct dmig_frame *f)
{
	struct dmig_error *e = NULL;
	do {
		if (dmig_conn_recv(control, TIMEOUT_MS, f, &e) < 0)
			end(e && e->code == ETIMEDOUT ? 1 : 0, "closed", e);
		if (f->type == DMIG_MSG_PING)
			dmig_conn_send(control, DMIG_MSG_PONG, 0, f->payload, f->length, NULL, 0, NULL);
	} while (f->type == DMIG_MSG_PING || f->type == DMIG_MSG_PONG);
	if (f->type == DMIG_MSG_ABORT)
		end(0, "abort", NULL);
}

static void wait_for(unsigned type)
{
	struct dmig_frame f;
	do
		next(&f);
	while (f.type != type);
}

static void say(const char *word)
{
	char *rest;
	struct dmig_error *e = NULL;
	unsigned type = (unsigned)strtoul(word, &rest, 10);
	unsigned times = *rest == '*' ? (unsigned)strtoul(rest + 1, NULL, 10) : 1;
	const char *text = *rest == '=' ? rest + 1 : "";
	while (times-- > 0)
		if (dmig_conn_send(control, (enum dmig_msg)type, 0, text, strlen(text), NULL, 0, &e) < 0)
			end(0, "closed", e);
}

static void connect_source(const char *where, const struct dmig_key *key)
{
	struct dmig_address at;
	struct dmig_error *e = NULL;
	if (dmig_address_parse(where, 0, &at, &e) < 0 || dmig_conn_dial(&at, key, TIMEOUT_MS, &control, &e) < 0)
		end(2, where, e);
	char id[DMIG_WIRE_ID_LEN + 1]; /* a new one each time: an old one is only allowed to ask */
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)dmig_now_us());
	say_hello(control, DMIG_ROLE_CONTROL, id, 0);
	wait_for(DMIG_MSG_HELLO);
}

static void serve_source(const char *where, const struct dmig_key *key)
{
	struct dmig_error *e = NULL;
	struct dmig_frame f;
	struct dmig_wire_hello hello;
	uint16_t port;
	int listener = dmig_listen("", (uint16_t)atoi(where), (uint16_t)atoi(where), &port, &e);
	if (listener < 0)
		end(2, where, e);
	puts("listening");
	fflush(stdout);
	int fd = dmig_accept(listener, TIMEOUT_MS, &e);
	if (fd < 0 || dmig_conn_server(fd, key, TIMEOUT_MS, &control, &e) < 0)
		end(2, "accept", e);
	if (dmig_conn_recv(control, TIMEOUT_MS, &f, &e) < 0 || dmig_wire_decode_hello(f.payload, f.length, &hello, &e) < 0)
		end(2, "hello", e);
	say_hello(control, DMIG_ROLE_CONTROL, hello.id, port);
}

int main(int argc, char **argv)
{
	struct dmig_key *key = NULL;
	struct dmig_error *e = NULL;
	if (argc < 4 || dmig_key_load(argv[3], &key, &e) < 0)
		end(2, "usage", e);
	if (!strcmp(argv[1], "source"))
		connect_source(argv[2], key);
	else
		serve_source(argv[2], key);
	for (int i = 4; i < argc; i++) {
		if (argv[i][0] == '@')
			wait_for((unsigned)atoi(argv[i] + 1));
		else if (!strcmp(argv[i], "wait"))
			wait_for(0);
		else
			say(argv[i]);
	}
	end(1, "it took everything", NULL);
}
