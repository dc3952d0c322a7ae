/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "criu/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criu/dump-internal.h"
#include "criu/internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/spawn.h"

/* ms for an abort when the caller just lets go: a rollback takes tens of ms. */
#define FREE_TIMEOUT_MS 5000
/* Bytes of runc's standard error that can be of use. */
#define MAX_STDERR (64u << 10)

static int gather_facts(
	const struct dmig_dump_opts *o, struct dmig_dump_facts *facts, struct dmig_error **err)
{
	if (o->external_netns) {
		char path[64];
		struct stat st;
		snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)o->init_pid);
		if (stat(path, &st) < 0)
			return dmig_error_set(err, errno, "cannot look at %s: %m", path);
		facts->netns_inode = st.st_ino;
	}
	if (!o->tty)
		return 0;
	int r = dmig_criu_tty(o->init_pid, &facts->tty, err);
	if (r == 0 && facts->tty.other_ptys)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, ENOTSUP,
			"the container has %u pseudo terminals besides its console", facts->tty.other_ptys);
	return r;
}

static int write_config(struct dmig_dump *d, const struct dmig_dump_opts *o, struct dmig_error **err)
{
	struct dmig_dump_facts facts = {.notify_path = d->notify_path,
		.has_notify_socket = d->features & DMIG_CRIU_HAS_NOTIFY_SOCKET,
		.has_inline_tmpfs = d->features & DMIG_CRIU_HAS_INLINE_TMPFS};
	cleanup_free char *text = NULL;
	int r = gather_facts(o, &facts, err);
	if (r == 0)
		r = dmig_criu__config(o, &facts, &text, err);
	if (r < 0)
		return r;
	cleanup_fd int fd = open(d->config_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : dmig_write_full(fd, text, strlen(text));
	return r < 0 ? dmig_error_set(err, -r, "cannot write %s: %s", d->config_path, strerror(-r)) : 0;
}

static int make_paths(struct dmig_dump *d, const struct dmig_dump_opts *o, struct dmig_error **err)
{
	d->notify_path = dmig_asprintf("%s/notify.sock", o->run_dir);
	d->config_path = dmig_asprintf("%s/criu.conf", o->run_dir);
	d->work_dir = dmig_asprintf("%s/criu-work", o->run_dir);
	d->log_path = dmig_asprintf("%s/criu-work/dump.log", o->run_dir);
	d->stderr_path = dmig_asprintf("%s/checkpoint.err", o->run_dir);
	if (!d->notify_path || !d->config_path || !d->work_dir || !d->log_path || !d->stderr_path)
		return dmig_error_set(err, ENOMEM, "out of memory");
	if (mkdir(d->work_dir, 0700) < 0 && errno != EEXIST)
		return dmig_error_set(err, errno, "cannot make %s: %m", d->work_dir);
	unlink(d->log_path); /* of an earlier try: its errors are not ours */
	return 0;
}

/*
 * Why each option is there:
 * --file-locks   CRIU refuses a container that holds file locks without it; a lock shared with a process
 * outside the container cannot be told apart, which is why `check` refuses shared volumes
 * --tcp-established   the point of the whole thing; with tcp-close it must not be given
 * --ext-unix-sk  only if asked for: the far end of such a socket stays behind and is lost
 * Not given: --shell-job (a container has its own session), --leave-running (the source must not run again),
 * link-remap (writes names into the container's file system).
 */
static int start_runc(struct dmig_dump *d, const struct dmig_dump_opts *o, struct dmig_error **err)
{
	const char *argv[16] = {o->runc, "--root", o->runc_root, "checkpoint", "--image-path", o->images_dir,
		"--work-path", d->work_dir, "--file-locks"};
	size_t n = 9;
	if (!o->tcp_close)
		argv[n++] = "--tcp-established";
	if (o->ext_unix_sk)
		argv[n++] = "--ext-unix-sk";
	argv[n++] = o->container_id;

	const char *path = getenv("PATH");
	cleanup_free char *path_var = dmig_asprintf("PATH=%s%s%s", o->criu_dir ? o->criu_dir : "",
		o->criu_dir ? ":" : "", path ? path : "/usr/sbin:/usr/bin:/sbin:/bin");
	cleanup_free char *config_var = dmig_asprintf("CRIU_CONFIG_FILE=%s", d->config_path);
	cleanup_free char *hook_var = dmig_asprintf("%s=%s", DMIG_NOTIFY_ENV, d->notify_path);
	if (!path_var || !config_var || !hook_var)
		return dmig_error_set(err, ENOMEM, "out of memory");
	cleanup_fd int errors = open(d->stderr_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (errors < 0)
		return dmig_error_set(err, errno, "cannot write %s: %m", d->stderr_path);
	const char *env[] = {path_var, config_var, hook_var, NULL};
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	s.argv = argv;
	s.env = env;
	s.stderr_fd = errors;
	d->runc = dmig_spawn(&s, &d->pidfd, err);
	return d->runc < 0 ? d->runc : 0;
}

int dmig_dump_start(const struct dmig_dump_opts *o, struct dmig_dump **ret, struct dmig_error **err)
{
	struct dmig_dump *d = calloc(1, sizeof(*d));
	if (!d)
		return dmig_error_set(err, ENOMEM, "out of memory");
	d->pidfd = -1;
	d->runc = -1;
	int r = d->features = dmig_criu_probe(o->criu_dir, NULL, err);
	if (r >= 0)
		r = make_paths(d, o, err);
	if (r == 0)
		r = dmig_freezer_open(o->init_pid, &d->freezer, err);
	if (r == 0)
		r = write_config(d, o, err);
	if (r == 0)
		r = dmig_notify_new(d->notify_path, &d->notify, err);
	if (r == 0)
		r = start_runc(d, o, err);
	if (r < 0) {
		dmig_dump_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

struct dmig_notify *dmig_dump_notify(struct dmig_dump *d)
{
	return d->notify;
}

pid_t dmig_dump_pid(const struct dmig_dump *d)
{
	return d->runc;
}

int dmig_dump_pidfd(const struct dmig_dump *d)
{
	return d->pidfd;
}

const char *dmig_dump_log(const struct dmig_dump *d)
{
	return d->log_path;
}

enum dmig_criu_stage dmig_dump_freeze_stage(const struct dmig_dump *d)
{
	return d->features & DMIG_CRIU_HAS_POST_FREEZE ? DMIG_CRIU_POST_FREEZE : DMIG_CRIU_NETWORK_LOCK;
}

/* "why (runc: its last line)" */
static int failure(struct dmig_dump *d, struct dmig_error **err)
{
	cleanup_free char *criu = dmig_criu_log_errors(d->log_path);
	cleanup_free char *runc = NULL;
	dmig_read_file(d->stderr_path, MAX_STDERR, &runc, NULL);
	for (char *p = runc; p && *p; p++)
		if (*p == '\n')
			*p = p[1] ? ';' : '\0';
	const char *said = runc && *runc ? runc : "nothing";
	if (WIFSIGNALED(d->status))
		return dmig_error_set(err, EIO, "runc checkpoint was killed by signal %d; CRIU said: %s",
			WTERMSIG(d->status), criu ? criu : "no error");
	return dmig_error_set(err, EIO, "%s (runc checkpoint failed with exit code %d and said: %s)",
		criu ? criu : "CRIU did not log an error", WEXITSTATUS(d->status), said);
}

int dmig_dump_wait(struct dmig_dump *d, int timeout_ms, struct dmig_error **err)
{
	if (!d->ended) {
		int status = dmig_wait_pid(d->runc, d->pidfd, timeout_ms);
		if (status == -ETIMEDOUT)
			return dmig_error_set(
				err, ETIMEDOUT, "runc checkpoint still runs after %d ms", timeout_ms);
		if (status < 0)
			return dmig_error_set(
				err, -status, "cannot wait for runc checkpoint: %s", strerror(-status));
		d->status = status;
		d->ended = true;
	}
	if (d->status == 0)
		return 0;
	/* runc may have been killed alone: CRIU must not wait for us with the tasks stopped. */
	dmig_dump__end_criu(d, FREE_TIMEOUT_MS, NULL);
	return failure(d, err);
}

int dmig_dump_abort(struct dmig_dump *d, int timeout_ms, struct dmig_error **err)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	int r = dmig_dump__end_criu(d, timeout_ms, err);
	if (d->ended)
		return r;
	/* Without CRIU it has nothing left to do. */
	int64_t left = deadline - dmig_now_ms();
	int status = dmig_wait_pid(d->runc, d->pidfd, left > 0 ? (int)left : 0);
	if (status == -ETIMEDOUT) {
		kill(d->runc, SIGKILL);
		status = dmig_wait_pid(d->runc, d->pidfd, -1);
		if (r == 0)
			r = dmig_error_set(
				err, ETIMEDOUT, "runc did not end within %d ms and was killed", timeout_ms);
	}
	d->status = status;
	d->ended = true;
	return r;
}

void dmig_dump_free(struct dmig_dump *d)
{
	if (!d)
		return;
	if (d->runc > 0 && !d->ended) {
		cleanup_error struct dmig_error *err = NULL;
		if (dmig_dump_abort(d, FREE_TIMEOUT_MS, &err) < 0)
			log_warn("dump: %s", err ? err->message : "abort failed");
	}
	dmig_notify_free(d->notify);
	dmig_freezer_free(d->freezer);
	dmig_closep(&d->pidfd);
	free(d->notify_path);
	free(d->config_path);
	free(d->work_dir);
	free(d->log_path);
	free(d->stderr_path);
	free(d);
}
