/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "criu/notify.h"
#include "runtime/placeholder.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/*
 * Plays dmigrated for the tests of the runtime: what a destination does with a target, one command per line
 * on stdin, one answer per line: "ok MILLISECONDS [value]" or "error ERRNO text". Reading from a person or a
 * script, it can be killed between any two steps.
 *
 *   target-driver CID RUN_DIR RUNC CRIU_DIR
 *     new | wait-started MS | pid | vacate | check
 *     restore IMAGES [sandbox=PATH] [external] [tcp-close] [tty=KEY]
 *     serve STAGE     answer CRIU's stages until STAGE is asked, and leave that one open
 *     answer RET      answer the open stage
 *     wait-restored MS | release | commit | undo | free
 *     recover | outcome MS | forget
 */
struct driver {
	const char *id, *run_dir;
	struct dmig_target_paths paths;
	struct dmig_target *target;
	struct dmig_notify *notify;
};

/* A restore without its memory takes a fraction of it; the machine may be loaded. */
#define STAGE_MS 20000

static int do_new(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	return dmig_target_new(d->id, "0123456789abcdef", &d->paths, &d->target, err);
}

static int do_wait_started(struct driver *d, char **words, struct dmig_error **err)
{
	return dmig_target_wait_started(d->target, atoi(words[1] ? words[1] : "10000"), err);
}

static int do_pid(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	(void)err;
	return dmig_target_pid(d->target);
}

static int do_vacate(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	return dmig_target_vacate(d->target, err);
}

static int do_check(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	return dmig_target_check(d->target, err);
}

static int do_restore(struct driver *d, char **words, struct dmig_error **err)
{
	cleanup_free char *socket = dmig_asprintf("%s/notify.sock", d->run_dir);
	struct dmig_restore_opts opts = {.images_dir = words[1], .notify_socket = socket, .log_level = 4};
	for (char **w = words + 2; *w; w++) {
		if (!strncmp(*w, "sandbox=", 8))
			opts.sandbox_key = *w + 8;
		else if (!strncmp(*w, "tty=", 4))
			opts.tty_key = *w + 4;
		else if (!strcmp(*w, "external"))
			opts.external_netns = true;
		else if (!strcmp(*w, "tcp-close"))
			opts.tcp_close = true;
	}
	int r = dmig_notify_new(socket, &d->notify, err);
	return r < 0 ? r : dmig_target_restore(d->target, &opts, err);
}

static int answer_stage(struct driver *d, const struct dmig_notify_event *ev, struct dmig_error **err)
{
	pid_t pid = 0;
	if (ev->stage == DMIG_CRIU_ROOT_HOST_PID) {
		int r = dmig_target_reap(d->target, &pid, err);
		if (r < 0)
			return r;
	}
	return dmig_notify_answer(d->notify, 0, pid, err);
}

static int do_serve(struct driver *d, char **words, struct dmig_error **err)
{
	for (;;) {
		struct dmig_notify_event ev;
		int r = dmig_notify_next(d->notify, STAGE_MS, dmig_target_event_fd(d->target), &ev, err);
		if (r == -ECANCELED) {
			dmig_error_freep(err);
			return dmig_target_check(d->target, err);
		}
		if (r < 0)
			return r;
		if (!strcmp(ev.name, words[1]))
			return 0;
		r = answer_stage(d, &ev, err);
		if (r < 0)
			return r;
	}
}

static int do_answer(struct driver *d, char **words, struct dmig_error **err)
{
	return dmig_notify_answer(d->notify, words[1] ? atoi(words[1]) : 0, 0, err);
}

static int do_wait_restored(struct driver *d, char **words, struct dmig_error **err)
{
	return dmig_target_wait_restored(d->target, atoi(words[1] ? words[1] : "10000"), err);
}

static int do_release(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	return dmig_target_release(d->target, err);
}

static int do_commit(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	return dmig_target_commit(d->target, err);
}

static int do_undo(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	dmig_notify_free(d->notify);
	d->notify = NULL;
	return dmig_target_undo(d->target, err);
}

static int do_free(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	(void)err;
	dmig_notify_free(d->notify);
	dmig_target_free(d->target);
	d->notify = NULL;
	d->target = NULL;
	return 0;
}

static int do_recover(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	return dmig_target_recover(d->id, err);
}

static int do_outcome(struct driver *d, char **words, struct dmig_error **err)
{
	return dmig_target_outcome(d->id, atoi(words[1] ? words[1] : "10000"), err);
}

static int do_forget(struct driver *d, char **words, struct dmig_error **err)
{
	(void)words;
	int r = dmig_target_record_remove(d->id);
	return r < 0 ? dmig_error_set(err, -r, "%s", strerror(-r)) : 0;
}

static const struct {
	const char *name;
	int (*run)(struct driver *d, char **words, struct dmig_error **err);
} commands[] = {
	{"new", do_new},
	{"wait-started", do_wait_started},
	{"pid", do_pid},
	{"vacate", do_vacate},
	{"check", do_check},
	{"restore", do_restore},
	{"serve", do_serve},
	{"answer", do_answer},
	{"wait-restored", do_wait_restored},
	{"release", do_release},
	{"commit", do_commit},
	{"undo", do_undo},
	{"free", do_free},
	{"recover", do_recover},
	{"outcome", do_outcome},
	{"forget", do_forget},
};

static void run_line(struct driver *d, char *line)
{
	char *words[16] = {NULL}, *save = NULL;
	size_t n = 0;
	cleanup_error struct dmig_error *err = NULL;
	for (char *w = strtok_r(line, " \n", &save); w && n < 15; w = strtok_r(NULL, " \n", &save))
		words[n++] = w;
	for (size_t i = 0; n && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, words[0]))
			continue;
		int64_t start = dmig_now_us();
		int r = commands[i].run(d, words, &err);
		double ms = (double)(dmig_now_us() - start) / 1000;
		if (r < 0)
			printf("error %d %s\n", -r, err ? err->message : "(no message)");
		else
			printf("ok %.2f %d\n", ms, r);
		return;
	}
	printf("error 22 unknown command\n");
}

int main(int argc, char **argv)
{
	char line[4096];
	if (argc != 5) {
		fprintf(stderr, "usage: target-driver CID RUN_DIR RUNC CRIU_DIR\n");
		return 2;
	}
	struct driver d = {.id = argv[1],
		.run_dir = argv[2],
		.paths = {.run_dir = argv[2], .runc = argv[3], .criu_dir = argv[4]}};
	dmig_log_to_fd(STDERR_FILENO, DMIG_LOG_DEBUG, "driver");
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	prctl(PR_SET_CHILD_SUBREAPER,
		1); /* for recover: the zombie of a dead owner comes to whoever is above it */
	while (fgets(line, sizeof(line), stdin))
		run_line(&d, line);
	dmig_notify_free(d.notify);
	dmig_target_free(d.target);
	return 0;
}
