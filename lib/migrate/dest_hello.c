/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "migrate/dest_internal.h"
#include "util/cleanup.h"
#include "util/io.h"

/* A peer that has proved the key says HELLO at once. */
#define HELLO_MS 5000

static int send_answer(struct dmig_conn *conn, const struct dmig_wire_hello *peer, int version, uint16_t data_port,
	struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_hello answer = *peer;
	answer.version_min = answer.version_max = (uint16_t)version;
	answer.data_port = data_port;
	answer.features = 0;
	ssize_t n = dmig_wire_encode_hello(&answer, buf, sizeof(buf));
	if (n < 0)
		return dmig_error_set(err, (int)-n, "hello");
	return dmig_conn_send(conn, DMIG_MSG_HELLO, 0, buf, (size_t)n, NULL, 0, err);
}

void dest__refuse(struct dmig_conn *conn, const struct dmig_error *why)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_status status = dmig_wire_status_of(why, DMIG_SIDE_DESTINATION);
	ssize_t n = dmig_wire_encode_abort(&status, buf, sizeof(buf));
	if (n > 0)
		dmig_conn_send(conn, DMIG_MSG_ABORT, 0, buf, (size_t)n, NULL, 0, NULL);
}

static int accept_hello(struct dmig_frame *f, const char *expected_id, struct dmig_wire_hello *ret,
	struct dmig_error **err)
{
	if (f->type != DMIG_MSG_HELLO)
		return dmig_error_set(err, EPROTO, "%s before HELLO", dmig_wire_name(f->type));
	int r = dmig_wire_decode_hello(f->payload, f->length, ret, err);
	if (r < 0)
		return r;
	if (expected_id && strcmp(expected_id, ret->id))
		return dmig_error_set(err, ENOENT, "this port serves another migration than %s", ret->id);
	return dmig_wire_accept_version(ret, err);
}

int dest__hello(struct dmig_conn *conn, const char *expected_id, uint16_t data_port, struct dmig_wire_hello *ret,
	struct dmig_error **err)
{
	struct dmig_frame f;
	struct dmig_error *why = NULL;
	int r = dmig_conn_recv(conn, HELLO_MS, &f, err);
	if (r < 0)
		return r;
	int version = accept_hello(&f, expected_id, ret, &why);
	if (version >= 0)
		return send_answer(conn, ret, version, data_port, err);
	dest__refuse(conn, why);
	if (err && !*err)
		*err = why;
	else
		dmig_error_free(why);
	return version;
}

void dest__boot_id(char ret[DMIG_BOOT_ID_BYTES])
{
	cleanup_free char *text = NULL;
	ret[0] = '\0';
	if (dmig_read_file("/proc/sys/kernel/random/boot_id", DMIG_BOOT_ID_BYTES, &text, NULL) == 0)
		snprintf(ret, DMIG_BOOT_ID_BYTES, "%.*s", (int)strcspn(text, "\n"), text);
}

/*
 * 1: nothing ran and nothing will; the decision falls here if it has not fallen yet. 0: it runs, or ran. -EAGAIN: it was
 * to run, but whether it does is not known yet: a source that believed it would end the only copy that is left. A source
 * that has sent GO was told READY, so there is a target in our journal; one without is of a migration that did not come
 * that far, or whose journal was forgotten, and nobody may take it for "nothing ran".
 */
static int who_runs(struct dmig_journal *j, struct dmig_error **err)
{
	if (dmig_journal_has(j, "resumed") == 1)
		return 0;
	if (dmig_journal_has(j, "revoked") == 1)
		return 1;
	if (dmig_journal_has(j, "target") != 1)
		return dmig_error_set(err, ENOENT, "nothing is known of migration %s that could be in doubt", dmig_journal_id(j));
	int r = dmig_journal_decide(j, "refused", "resuming", err);
	return r == 0 ? dmig_error_set(err, EAGAIN, "the container is coming up, or failed to") : r;
}

int dest__answer_query(struct dmig_conn *conn, struct dmig_journal *j, struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	int r = who_runs(j, err);
	if (r < 0)
		return r;
	ssize_t n = dmig_wire_encode_query_result(r == 1 ? DMIG_RAN_NO : DMIG_RAN_YES, buf, sizeof(buf));
	int sent = dmig_conn_send(conn, DMIG_MSG_QUERY_RESULT, 0, buf, (size_t)n, NULL, 0, err);
	return sent < 0 ? sent : r;
}
