/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "migrate/control.h"
#include "migrate/control_server.h"
#include "migrate/dest.h"
#include "migrate/doubt.h"
#include "migrate/report_file.h"
#include "migrate/source.h"
#include "migrate/undo.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

/* A destination that was committed and lost its worker answers a source that asks for this long. */
#define ANSWER_QUERIES_MS 600000

/* A worker that dies as often as this in doubt would die for ever; a person decides then (dmigrate resolve). */
#define MAX_WORKERS 10
/* Reading a journal takes some microseconds; who holds it longer is recovering. */
#define JOURNAL_BUSY_MS 200
#define JOURNAL_POLL_US 1000

typedef int worker_fn(struct dmig_worker *w, void *opaque);

struct supervisor {
	enum dmig_side side;
	char id[DMIG_WIRE_ID_LEN + 1];
	struct dmig_journal *journal; /* the source's own; the destination opens it when its worker has died */
	struct dmig_control_server *control;
	int worker_sock, worker_pidfd, signals;
	pid_t worker;
	bool ended;
	int status; /* of waitpid, once ended */
};

static const char *request(const char *op, json_t *body, void *opaque)
{
	struct supervisor *s = opaque;
	bool cancel = !strcmp(op, "cancel"), resolve = !strcmp(op, "resolve");
	const char *where = json_string_value(json_object_get(body, "run_at"));
	json_t *last = dmig_control_server_last(s->control);
	const char *state = json_string_value(json_object_get(last, "state"));
	if (!cancel && !resolve)
		return "unknown request";
	if (cancel && json_is_true(json_object_get(last, "committed")))
		return "it is committed: the container runs at the destination already";
	if (resolve && (!state || strcmp(state, "unknown")))
		return "nothing to resolve: the state of this migration is known";
	if (resolve && (!where || (strcmp(where, "source") && strcmp(where, "destination"))))
		return "resolve needs \"source\" or \"destination\"";
	cleanup_free char *text = json_dumps(body, JSON_COMPACT);
	if (!text || s->worker_sock < 0 || send(s->worker_sock, text, strlen(text), MSG_NOSIGNAL) < 0)
		return "the worker of this migration does not listen";
	return NULL;
}

/* The destination learns its id from the worker's first words. */
static void learn_id(struct supervisor *s, json_t *msg)
{
	const char *id = json_string_value(json_object_get(msg, "id"));
	cleanup_error struct dmig_error *error = NULL;
	if (s->control || !id || strlen(id) != DMIG_WIRE_ID_LEN)
		return;
	memcpy(s->id, id, sizeof(s->id));
	if (dmig_control_server_new(s->id, request, s, &s->control, &error) < 0)
		log_error("%s", error->message);
}

static void hear_worker(struct supervisor *s)
{
	static char buf[DMIG_CONTROL_MAX_BYTES];
	ssize_t n = recv(s->worker_sock, buf, sizeof(buf), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close(steal_fd(&s->worker_sock));
		return;
	}
	json_t *msg = json_loadb(buf, (size_t)n, 0, NULL);
	learn_id(s, msg);
	if (s->control && json_is_object(msg))
		dmig_control_server_status(s->control, msg);
	else
		json_decref(msg);
}

/* We are subreaper of runc, placeholder and what they leave: nothing of it may stay a zombie. */
static void reap(struct supervisor *s)
{
	struct signalfd_siginfo info;
	while (read(s->signals, &info, sizeof(info)) == sizeof(info))
		;
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid <= 0)
			return;
		if (pid == s->worker) {
			s->ended = true;
			s->status = status;
		}
	}
}

static void loop(struct supervisor *s)
{
	while (!s->ended) {
		struct pollfd p[3 + DMIG_CONTROL_MAX_CLIENTS] = {
			{.fd = s->signals, .events = POLLIN}, {.fd = s->worker_sock, .events = POLLIN}};
		size_t n = s->control ? dmig_control_server_fill(s->control, p + 2) : 0;
		if (poll(p, 2 + n, -1) < 0 && errno != EINTR)
			return;
		if (p[1].revents)
			hear_worker(s);
		if (n)
			dmig_control_server_serve(s->control, p + 2, n);
		if (p[0].revents)
			reap(s);
	}
	while (s->worker_sock >= 0) { /* its last words may still be in the socket */
		if (dmig_poll_one(s->worker_sock, POLLIN, 0) != 1)
			break;
		hear_worker(s);
	}
	close(steal_fd(&s->worker_sock));
}

static int block_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The supervisor that would do this was killed. */
static void forget(struct dmig_worker *w)
{
	if (w->run_dir[0] && w->journal && dmig_journal_has(w->journal, "done") == 1)
		dmig_remove_tree(w->run_dir);
}

static void worker_main(struct supervisor *s, pid_t supervisor, int sock, worker_fn *fn, void *opaque)
{
	struct dmig_worker w;
	cleanup_error struct dmig_error *error = NULL;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	dmig_control_server_leave(s->control);
	dmig_closep(&s->signals);
	if (dmig_worker_init(&w, s->side, sock, &error) < 0) {
		log_error("%s", error->message);
		_exit(DMIG_EXIT_INTERNAL);
	}
	int code = fn(&w, opaque);
	if (getppid() != supervisor)
		forget(&w);
	_exit(code);
}

static int start_worker(struct supervisor *s, worker_fn *fn, void *opaque, struct dmig_error **err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return dmig_error_set(err, errno, "socketpair: %m");
	s->ended = false;
	pid_t supervisor = getpid();
	s->worker = fork();
	if (s->worker < 0) {
		close(pair[0]);
		close(pair[1]);
		return dmig_error_set(err, errno, "fork: %m");
	}
	if (s->worker == 0) {
		close(pair[0]);
		worker_main(s, supervisor, pair[1], fn, opaque);
	}
	close(pair[1]);
	s->worker_sock = pair[0];
	return 0;
}

static bool died(const struct supervisor *s)
{
	return !WIFEXITED(s->status);
}

static void set_died(const struct supervisor *s, struct dmig_error **err)
{
	dmig_error_set(err, EOWNERDEAD, "the worker of the %s died (signal %d)", dmig_side_name(s->side),
		WIFSIGNALED(s->status) ? WTERMSIG(s->status) : 0);
	dmig_error_side(*err, s->side);
}

static int finish(struct supervisor *s, int code)
{
	cleanup_free char *text = NULL;
	json_t *report = NULL;
	if (s->id[0] && dmig_control_report(s->id, &text, NULL) == 0)
		report = json_loads(text, 0, NULL);
	if (s->control) {
		dmig_control_server_end(s->control, report ? report : json_object());
		dmig_control_server_free(s->control);
	} else {
		json_decref(report);
	}
	if (s->id[0]) {
		cleanup_free char *dir = dmig_asprintf("%s/%s", dmig_run_dir(), s->id);
		if (dir && (code == DMIG_EXIT_OK || !s->journal || dmig_journal_has(s->journal, "done") == 1))
			dmig_remove_tree(dir);
	}
	dmig_journal_free(s->journal);
	return code;
}

/* ---------------------------------------------------------------- source */

struct source_start {
	const struct dmig_options *options;
	int ready_fd; /* of the supervisor, which alone speaks there */
	struct dmig_journal *journal;
	bool doubt;
};

static int source_worker(struct dmig_worker *w, void *opaque)
{
	struct source_start *start = opaque;
	cleanup_error struct dmig_error *error = NULL;
	dmig_closep(&start->ready_fd);
	if (dmig_worker_begin(w, start->options->id, &error) < 0) {
		log_error("%s", error->message);
		return DMIG_EXIT_INTERNAL;
	}
	w->journal = start->journal;
	dmig_worker_set(w, "destination", start->options->destination);
	return start->doubt ? dmig_source_doubt_run(w, start->options) : dmig_source_run(w, start->options);
}

/* It had done all and died at the report: nothing may be done again. */
static int died_after_all(struct supervisor *s)
{
	bool committed = dmig_journal_has(s->journal, "committed") == 1;
	cleanup_error struct dmig_error *error = NULL;
	if (!committed)
		set_died(s, &error);
	dmig_report_write(s->id, dmig_report_minimal(s->id, error, committed));
	return committed ? DMIG_EXIT_OK : DMIG_EXIT_FAILED;
}

/* Before the commit: everything back. In doubt or after it: another worker asks the destination and finishes. */
static int after_source_death(struct supervisor *s, struct source_start *start)
{
	cleanup_error struct dmig_error *error = NULL;
	for (int tries = 0; died(s); tries++) {
		log_error("worker died, status %x", (unsigned)s->status);
		if (dmig_journal_has(s->journal, "done") == 1)
			return died_after_all(s);
		if (dmig_journal_has(s->journal, "in-doubt") == 0) {
			set_died(s, &error);
			if (dmig_undo_run(s->journal, NULL) < 0)
				log_error("not everything could be put back");
			dmig_report_write(s->id, dmig_report_minimal(s->id, error, 0));
			return DMIG_EXIT_FAILED;
		}
		start->doubt = true;
		if (tries == MAX_WORKERS || start_worker(s, source_worker, start, &error) < 0)
			return DMIG_EXIT_UNKNOWN;
		loop(s);
	}
	return WEXITSTATUS(s->status);
}

static void say_ready(int fd, const struct dmig_error *error)
{
	const char *text = error ? error->message : "R";
	if (fd >= 0) {
		dmig_write_full(fd, text, strlen(text));
		close(fd);
	}
}

static int open_source(struct supervisor *s, const struct dmig_options *o, struct dmig_error **err)
{
	cleanup_free char *dir = dmig_asprintf("%s/%s", dmig_run_dir(), o->id);
	int r = dir ? dmig_mkdir_p(dir, 0700) : -ENOMEM;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot create %s/%s: %s", dmig_run_dir(), o->id, strerror(-r));
	memcpy(s->id, o->id, sizeof(s->id));
	r = dmig_journal_create(o->id, &s->journal, err);
	if (r == 0)
		r = dmig_journal_add(s->journal, json_pack("{s:s,s:s,s:s,s:s}", "rec", "begin", "side", "source", "container",
							 o->container, "peer", o->destination), err);
	if (r < 0 && s->journal) { /* a full disk: nothing has begun */
		cleanup_free char *state = dmig_asprintf("%s/%s", dmig_state_dir(), o->id);
		dmig_journal_free(s->journal);
		s->journal = NULL;
		if (state)
			dmig_remove_tree(state);
	}
	if (r == 0)
		r = dmig_control_server_new(o->id, request, s, &s->control, err);
	return r;
}

int dmig_supervise_source(const struct dmig_options *o, int ready_fd)
{
	struct supervisor s = {.side = DMIG_SIDE_SOURCE, .worker_sock = -1};
	struct source_start start = {.options = o, .ready_fd = ready_fd};
	cleanup_error struct dmig_error *error = NULL;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	s.signals = block_signals();
	int r = open_source(&s, o, &error);
	start.journal = s.journal;
	if (r == 0)
		r = start_worker(&s, source_worker, &start, &error);
	say_ready(steal_fd(&start.ready_fd), error);
	if (r < 0)
		return finish(&s, DMIG_EXIT_INTERNAL);
	loop(&s);
	return finish(&s, after_source_death(&s, &start));
}

/* ---------------------------------------------------------------- destination */

struct dest_start {
	struct dmig_dest_opts opts;
	const char *id;
	struct dmig_journal *journal; /* only for answering queries */
};

static int dest_worker(struct dmig_worker *w, void *opaque)
{
	struct dest_start *start = opaque;
	if (start->id)
		snprintf(w->id, sizeof(w->id), "%s", start->id);
	return dmig_dest_run(w, &start->opts);
}

static int query_worker(struct dmig_worker *w, void *opaque)
{
	struct dest_start *start = opaque;
	snprintf(w->id, sizeof(w->id), "%s", start->id);
	w->journal = start->journal;
	return dmig_dest_answer_queries(w, &start->opts, ANSWER_QUERIES_MS) < 0 ? DMIG_EXIT_INTERNAL : DMIG_EXIT_OK;
}

/* Another command that looks after the dead may have it open for a moment. */
static int open_journal(struct supervisor *s, struct dmig_error **err)
{
	int64_t deadline = dmig_now_ms() + JOURNAL_BUSY_MS;
	int r;
	while ((r = dmig_journal_open(s->id, &s->journal, NULL)) == -EBUSY && dmig_now_ms() < deadline)
		nanosleep(&(struct timespec){.tv_nsec = JOURNAL_POLL_US * 1000L}, NULL);
	return r == 0 ? 0 : dmig_journal_open(s->id, &s->journal, err);
}

static int after_dest_death(struct supervisor *s, struct dest_start *start)
{
	cleanup_error struct dmig_error *error = NULL;
	if (!died(s))
		return WEXITSTATUS(s->status);
	log_error("worker died, status %x", (unsigned)s->status);
	if (!s->id[0] || open_journal(s, &error) < 0)
		return DMIG_EXIT_FAILED; /* it had not begun */
	cleanup_error struct dmig_error *left = NULL;
	int runs = dmig_dest_settle(s->journal, &left);
	if (runs < 0)
		log_error("not everything could be put back or finished: %s", left ? left->message : "?");
	set_died(s, &error);
	dmig_report_write(s->id, runs == 1 ? dmig_report_minimal(s->id, NULL, 1) : dmig_report_minimal(s->id, error, 0));
	/* The source may ask: a listener answers from the journal, without one the port stays open. */
	start->id = s->id;
	start->journal = s->journal;
	if (start->opts.control_fd < 0 && start_worker(s, query_worker, start, NULL) == 0)
		loop(s);
	return DMIG_EXIT_OK;
}

int dmig_supervise_dest(const struct dmig_supervise_dest *o)
{
	struct supervisor s = {.side = DMIG_SIDE_DESTINATION, .worker_sock = -1};
	struct dest_start start = {.id = o->id,
		.opts = {.key = o->key,
			.allow = o->allow,
			.control_fd = o->control_fd,
			.listen_fd = o->listen_fd,
			.port = o->port}};
	cleanup_error struct dmig_error *error = NULL;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	s.signals = block_signals();
	if (start_worker(&s, dest_worker, &start, &error) < 0) {
		log_error("%s", error->message);
		return DMIG_EXIT_INTERNAL;
	}
	if (o->control_fd >= 0)
		close(o->control_fd); /* only the worker holds it: when it dies the source sees that at once */
	loop(&s);
	return finish(&s, after_dest_death(&s, &start));
}
