/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

#include "format.h"
#include "migrate/control.h"
#include "progress.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/paths.h"

/* A dmigrated that is alive answers at once; its supervisor does no long work. */
#define ANSWER_TIMEOUT_MS 10000
/* Undoing takes well below a second, and up to 15 more until the other side has answered. */
#define OWNER_TIMEOUT_MS 60000
#define OWNER_POLL_US 5000
/* One Ctrl-C may reach us twice: from the terminal, and passed on by what started us (timeout, docker). */
#define SAME_KEY_MS 500

struct follower {
	struct dmig_watch *w;
	struct dmig_progress progress;
	int64_t cancelling_ms; /* since when; 0: it is not being cancelled */
};

int dmig_watch_signals(struct dmig_error **err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? dmig_error_set(err, errno, "signalfd: %m") : fd;
}

static const char *event_of(const json_t *obj)
{
	const char *name = json_string_value(json_object_get(obj, "event"));
	return name ? name : "";
}

/* 1 and *ret, or 0 at end of file. */
static int receive(int fd, int timeout_ms, json_t **ret, struct dmig_error **err)
{
	cleanup_free char *text = NULL;
	int r = dmig_control_recv(fd, timeout_ms, &text, err);
	if (r < 0 || !text)
		return r < 0 ? r : 0;
	*ret = json_loads(text, 0, NULL);
	return json_is_object(*ret)
		       ? 1
		       : dmig_error_set(err, EPROTO, "dmigrated sent something that is not an event");
}

int dmig_watch_request(const char *id, const char *request, json_t **ret, struct dmig_error **err)
{
	cleanup_fd int fd = -1;
	json_t *answer = NULL;
	int r = dmig_control_connect(id, &fd, err);
	if (r == 0)
		r = dmig_control_send(fd, request, err);
	if (r == 0)
		r = receive(fd, ANSWER_TIMEOUT_MS, &answer, err);
	if (r == 0)
		r = dmig_error_set(err, ECONNRESET, "migration %s ended before it answered", id);
	if (r > 0 && !strcmp(event_of(answer), "error")) {
		const char *message = json_string_value(json_object_get(answer, "message"));
		r = dmig_error_set(err, EBUSY, "%s", message ? message : "dmigrated refused");
	}
	if (r > 0 && ret)
		*ret = json_incref(answer);
	json_decref(answer);
	return r < 0 ? r : 0;
}

/* A worker whose supervisor was killed undoes alone; a killed one needs a moment to be gone. No event for
 * either. */
static void wait_for_owner(const char *id)
{
	int64_t deadline = dmig_now_ms() + OWNER_TIMEOUT_MS;
	while (dmig_recover_is_owned(id) && dmig_now_ms() < deadline)
		nanosleep(&(struct timespec){.tv_nsec = OWNER_POLL_US * 1000L}, NULL);
}

/* dmigrated is gone without a word: put things right, as any later command would, and see what it left. */
static int after_death(struct follower *f, json_t **ret_report, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL;
	cleanup_free char *text = NULL;
	dmig_progress_say(&f->progress, "dmigrated ended unexpectedly; recovering");
	wait_for_owner(f->w->id);
	if (dmig_recover(NULL, NULL, &e) == 0 && dmig_control_report(f->w->id, &text, &e) == 0)
		*ret_report = json_loads(text, 0, NULL);
	if (*ret_report)
		return DMIG_WATCH_REPORT;
	return dmig_error_set_class(err, DMIG_ERR_UNKNOWN, ECHILD,
		"dmigrated of migration %s ended without a report: %s; log: %s/log", f->w->id,
		e && e->message ? e->message : "its report cannot be read", dmig_state_dir());
}

static bool is_committed(const struct follower *f)
{
	return json_is_true(json_object_get(f->w->last, "committed"));
}

static int on_event(struct follower *f, json_t *event, json_t **ret_report)
{
	if (!strcmp(event_of(event), "end")) {
		*ret_report = json_incref(json_object_get(event, "report"));
		return 1;
	}
	if (!strcmp(event_of(event), "status")) {
		json_decref(f->w->last);
		f->w->last = json_incref(event);
		dmig_progress_update(&f->progress, event);
	}
	return 0;
}

/* What Ctrl-C means now. Returns how the watch ends, or -1 to go on. */
static int on_signal(struct follower *f)
{
	cleanup_error struct dmig_error *e = NULL;
	if (f->cancelling_ms && dmig_now_ms() - f->cancelling_ms < SAME_KEY_MS)
		return -1;
	if (f->cancelling_ms)
		return DMIG_WATCH_IMPATIENT;
	if (!f->w->owner || is_committed(f))
		return DMIG_WATCH_LEFT;
	if (dmig_watch_request(f->w->id, "{\"op\":\"cancel\"}", NULL, &e) == 0) {
		f->cancelling_ms = dmig_now_ms();
		dmig_progress_say(&f->progress, "Cancelling ...");
		return -1;
	}
	/* Too late (the commit was faster), or it has just ended: its own events will tell. */
	dmig_progress_say(&f->progress, "Cannot cancel: %s", e && e->message ? e->message : "no answer");
	return e && e->code == EBUSY ? DMIG_WATCH_LEFT : -1;
}

#define GO_ON 1 /* DMIG_WATCH_REPORT is 0, errors are negative */

static int on_readable(struct follower *f, int fd, json_t **ret_report, struct dmig_error **err)
{
	json_t *event = NULL;
	int r = receive(fd, 0, &event, err);
	if (r == 0)
		r = after_death(f, ret_report, err);
	else if (r > 0)
		r = on_event(f, event, ret_report) ? DMIG_WATCH_REPORT : GO_ON;
	json_decref(event);
	return r;
}

static int follow(struct follower *f, int fd, int signals, json_t **ret_report, struct dmig_error **err)
{
	for (;;) {
		struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
		struct signalfd_siginfo info;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return dmig_error_set(err, errno, "poll: %m");
		if (p[1].revents && read(signals, &info, sizeof(info)) == sizeof(info)) {
			int r = on_signal(f);
			if (r >= 0)
				return r;
		}
		if (p[0].revents) {
			int r = on_readable(f, fd, ret_report, err);
			if (r != GO_ON)
				return r;
		}
	}
}

/* Refused or done faster than we could connect: the stored report is the end. */
static int stored_report(const char *id, json_t **ret_report, struct dmig_error **err)
{
	cleanup_free char *text = NULL;
	int r = dmig_control_report(id, &text, err);
	if (r < 0)
		return r;
	*ret_report = json_loads(text, 0, NULL);
	return *ret_report ? DMIG_WATCH_REPORT
			   : dmig_error_set(err, EPROTO, "the report of %s is not JSON", id);
}

static bool went_well(const json_t *report)
{
	const char *result = json_string_value(json_object_get(report, "result"));
	return result && !strcmp(result, "ok");
}

int dmig_watch_run(struct dmig_watch *w, int signals, json_t **ret_report, struct dmig_error **err)
{
	struct follower f = {.w = w};
	cleanup_fd int fd = -1;
	*ret_report = NULL;
	dmig_progress_init(&f.progress, w->out);
	int r = dmig_control_connect(w->id, &fd, NULL);
	if (r == -ENOENT)
		return stored_report(w->id, ret_report, err);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot reach migration %s: %s", w->id, strerror(-r));
	r = dmig_control_send(fd, "{\"op\":\"watch\"}", err);
	if (r == 0)
		r = follow(&f, fd, signals, ret_report, err);
	dmig_progress_end(&f.progress, went_well(*ret_report), dmig_json_number(*ret_report, "total_ms", 0));
	return r;
}
