/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "migrate/control.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

/* Progress is for eyes: more often than this nobody sees. */
#define REPORT_INTERVAL_US 200000

static void tell(struct dmig_worker *w)
{
	w->reported_us = dmig_now_us();
	json_t *msg = json_deep_copy(w->status);
	json_object_set_new(msg, "t", json_string("status"));
	json_object_set_new(msg, "phase", json_string(dmig_phase_name(w->phase)));
	json_object_set_new(msg, "committed", json_boolean(w->committed));
	json_object_set_new(msg, "bytes", json_pack("{s:I,s:I,s:I,s:I}", "image", (json_int_t)w->bytes[DMIG_BYTES_IMAGE],
						  "files", (json_int_t)w->bytes[DMIG_BYTES_FILES], "memory",
						  (json_int_t)w->bytes[DMIG_BYTES_MEMORY], "total", (json_int_t)w->total));
	cleanup_free char *text = json_dumps(msg, JSON_COMPACT);
	json_decref(msg);
	/* A supervisor that does not read must not stop us: what does not fit is dropped. */
	if (text && w->supervisor >= 0)
		send(w->supervisor, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void heard(struct dmig_worker *w, const char *text, size_t len)
{
	json_t *msg = json_loadb(text, len, 0, NULL);
	const char *op = json_string_value(json_object_get(msg, "op"));
	if (op && !strcmp(op, "cancel"))
		dmig_stop_printf(w->stop, DMIG_ERR_CANCELLED, ECANCELED, "cancelled");
	if (op && !strcmp(op, "resolve")) {
		pthread_mutex_lock(&w->lock);
		json_object_set(w->status, "resolved", json_object_get(msg, "run_at"));
		pthread_mutex_unlock(&w->lock);
	}
	json_decref(msg);
}

static void *listen_to_supervisor(void *opaque)
{
	struct dmig_worker *w = opaque;
	char buf[4096];
	for (;;) {
		ssize_t n = recv(w->supervisor, buf, sizeof(buf), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		heard(w, buf, (size_t)n);
	}
	dmig_stop_printf(w->stop, DMIG_ERR_FAILED, EOWNERDEAD, "the supervisor on this side died");
	return NULL;
}

int dmig_worker_init(struct dmig_worker *w, enum dmig_side side, int supervisor, struct dmig_error **err)
{
	*w = (struct dmig_worker){.side = side, .supervisor = supervisor, .started_us = dmig_now_us()};
	pthread_mutex_init(&w->lock, NULL);
	w->stop = dmig_stop_new();
	w->timeline = dmig_timeline_new();
	w->status = json_pack("{s:s,s:s}", "side", dmig_side_name(side), "state", "running");
	if (!w->stop || !w->timeline || !w->status)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = pthread_create(&w->listener, NULL, listen_to_supervisor, w);
	if (r)
		return dmig_error_set(err, r, "cannot start a thread: %s", strerror(r));
	w->listening = true;
	return 0;
}

void dmig_worker_clear(struct dmig_worker *w)
{
	if (w->listening) {
		shutdown(w->supervisor, SHUT_RDWR);
		pthread_join(w->listener, NULL);
	}
	if (w->supervisor >= 0)
		close(w->supervisor);
	dmig_stop_free(w->stop);
	dmig_timeline_free(w->timeline);
	dmig_journal_free(w->journal);
	json_decref(w->status);
	pthread_mutex_destroy(&w->lock);
}

int dmig_worker_begin(struct dmig_worker *w, const char *id, struct dmig_error **err)
{
	snprintf(w->id, sizeof(w->id), "%s", id);
	snprintf(w->run_dir, sizeof(w->run_dir), "%s/%s", dmig_run_dir(), id);
	int r = dmig_mkdir_p(w->run_dir, 0700);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot create %s: %s", w->run_dir, strerror(-r));
	dmig_worker_set(w, "id", id);
	return 0;
}

void dmig_worker_set(struct dmig_worker *w, const char *field, const char *value)
{
	pthread_mutex_lock(&w->lock);
	json_object_set_new(w->status, field, value ? json_string(value) : json_null());
	tell(w);
	pthread_mutex_unlock(&w->lock);
}

void dmig_worker_phase(struct dmig_worker *w, enum dmig_phase phase)
{
	log_info("phase %s", dmig_phase_name(phase));
	pthread_mutex_lock(&w->lock);
	w->phase = phase;
	if (phase == DMIG_PHASE_DONE)
		dmig_timeline_end(w->timeline);
	else
		dmig_timeline_phase(w->timeline, dmig_phase_name(phase));
	tell(w);
	pthread_mutex_unlock(&w->lock);
}

void dmig_worker_committed(struct dmig_worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->committed = true;
	tell(w);
	pthread_mutex_unlock(&w->lock);
}

bool dmig_worker_is_committed(struct dmig_worker *w)
{
	pthread_mutex_lock(&w->lock);
	bool r = w->committed;
	pthread_mutex_unlock(&w->lock);
	return r;
}

void dmig_worker_state(struct dmig_worker *w, const char *state, const char *message)
{
	pthread_mutex_lock(&w->lock);
	json_object_set_new(w->status, "state", json_string(state));
	json_object_set_new(w->status, "message", message ? json_string(message) : json_null());
	tell(w);
	pthread_mutex_unlock(&w->lock);
}

void dmig_worker_bytes(struct dmig_worker *w, enum dmig_bytes_kind kind, uint64_t done)
{
	pthread_mutex_lock(&w->lock);
	w->bytes[kind] = done;
	if (dmig_now_us() - w->reported_us > REPORT_INTERVAL_US)
		tell(w);
	pthread_mutex_unlock(&w->lock);
}

void dmig_worker_total(struct dmig_worker *w, uint64_t total)
{
	pthread_mutex_lock(&w->lock);
	w->total = total;
	pthread_mutex_unlock(&w->lock);
}

bool dmig_worker_resolved_to(struct dmig_worker *w, enum dmig_side side)
{
	pthread_mutex_lock(&w->lock);
	const char *where = json_string_value(json_object_get(w->status, "resolved"));
	bool r = where && !strcmp(where, dmig_side_name(side));
	pthread_mutex_unlock(&w->lock);
	return r;
}
