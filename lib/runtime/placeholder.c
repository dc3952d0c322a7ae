/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/placeholder.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

static void poke(int eventfd)
{
	ssize_t ignored = write(eventfd, &(uint64_t){1}, sizeof(uint64_t));
	(void)ignored;
}

void dmig_target__set_stage(struct dmig_target *t, enum dmig_target_stage stage)
{
	t->stage = stage;
	pthread_cond_broadcast(&t->changed);
	poke(t->wake_fd);
}

void dmig_target__trouble(struct dmig_target *t, enum dmig_error_class class, int code, const char *fmt, ...)
{
	if (t->trouble || t->stage >= STAGE_COMMITTED)
		return;
	cleanup_free char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	int r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0)
		text = NULL;
	dmig_error_set_class(&t->trouble, class, code, "%s", text ? text : "out of memory");
	log_warn("target %.12s: %s", t->id, text ? text : "out of memory");
	pthread_cond_broadcast(&t->changed);
	poke(t->wake_fd);
	poke(t->event_fd);
}

int dmig_target__copy_trouble(const struct dmig_target *t, struct dmig_error **err)
{
	return dmig_error_set_class(err, t->trouble->class, t->trouble->code, "%s", t->trouble->message);
}

void dmig_target__close_stdio(struct dmig_target *t)
{
	for (int i = 0; i < 3; i++)
		dmig_closep(&t->stdio[i]);
}

int dmig_target__wait_change(struct dmig_target *t, int64_t deadline_ms)
{
	struct timespec ts = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
	return -pthread_cond_timedwait(&t->changed, &t->lock, &ts);
}

void dmig_target__reap_zombie(struct dmig_target *t)
{
	if (t->reaped || t->stage < STAGE_CREATED)
		return;
	pid_t r;
	do
		r = waitpid(t->info.pid, NULL, WNOHANG);
	while (r < 0 && errno == EINTR);
	t->reaped = r == t->info.pid || (r < 0 && errno == ECHILD);
}

static void free_fields(struct dmig_target *t)
{
	int *const fds[] = {&t->listen_fd, &t->wake_fd, &t->event_fd, &t->pidfd, &t->netns_fd, &t->root_fd,
		&t->devpts_slave};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		dmig_closep(fds[i]);
	dmig_target__close_stdio(t);
	for (size_t i = 0; i < t->n_conns; i++)
		dmig_closep(&t->conns[i].fd);
	dmig_target_info_clear(&t->info);
	dmig_error_free(t->trouble);
	char *const strings[] = {t->id, t->run_dir, t->runc, t->criu_dir, t->socket_path, t->log, t->devpts};
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		free(strings[i]);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static struct dmig_target *alloc_target(void)
{
	struct dmig_target *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->listen_fd = t->wake_fd = t->event_fd = t->pidfd = t->netns_fd = t->root_fd = t->devpts_slave =
		t->helper = -1;
	for (int i = 0; i < 3; i++)
		t->stdio[i] = -1;
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->changed, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

static int fill(
	struct dmig_target *t, const char *id, const struct dmig_target_paths *paths, struct dmig_error **err)
{
	t->id = strdup(id);
	t->run_dir = strdup(paths->run_dir);
	t->runc = strdup(paths->runc);
	t->criu_dir = paths->criu_dir ? strdup(paths->criu_dir) : NULL;
	t->socket_path = dmig_target_run_path(id, ".sock");
	if (!t->id || !t->run_dir || !t->runc || !t->socket_path || (paths->criu_dir && !t->criu_dir))
		return dmig_error_set(err, ENOMEM, "out of memory");
	t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->wake_fd < 0 || t->event_fd < 0)
		return dmig_error_set(err, errno, "eventfd: %m");
	t->listen_fd = dmig_unix_listen(t->socket_path);
	if (t->listen_fd < 0)
		return dmig_error_set(err, -t->listen_fd, "cannot listen at %s: %s", t->socket_path,
			strerror(-t->listen_fd));
	return 0;
}

/* The thread takes no signals: those are the caller's. */
static int start_thread(struct dmig_target *t, struct dmig_error **err)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int r = pthread_create(&t->thread, NULL, dmig_target__serve, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r ? dmig_error_set(err, r, "cannot start a thread: %s", strerror(r)) : 0;
}

int dmig_target_new(const char *container_id, const char *migration_id, const struct dmig_target_paths *paths,
	struct dmig_target **ret, struct dmig_error **err)
{
	/* The record first: whatever happens from here, the wrapper does not start a fresh copy. */
	int r = dmig_target_record_write(container_id, migration_id, err);
	if (r < 0)
		return r;
	struct dmig_target *t = alloc_target();
	if (!t)
		return dmig_error_set(err, ENOMEM, "out of memory");
	r = fill(t, container_id, paths, err);
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		r = dmig_error_set(err, errno, "cannot become a subreaper: %m");
	if (r == 0)
		r = start_thread(t, err);
	if (r < 0) {
		free_fields(t);
		return r;
	}
	*ret = t;
	return 0;
}

void dmig_target_free(struct dmig_target *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	poke(t->wake_fd);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	if (t->devpts)
		dmig_devpts_drop(t->devpts);
	if (t->stage != STAGE_COMMITTED)
		unlink(t->socket_path);
	free_fields(t);
}

int dmig_target_wait_started(struct dmig_target *t, int timeout_ms, struct dmig_error **err)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	int r = 0;
	pthread_mutex_lock(&t->lock);
	while (r == 0 && !t->trouble && t->stage < STAGE_STARTED)
		r = dmig_target__wait_change(t, deadline);
	if (t->trouble)
		r = dmig_target__copy_trouble(t, err);
	else if (r < 0)
		r = dmig_error_set(err, -r, "Docker did not start the container within %d ms", timeout_ms);
	pthread_mutex_unlock(&t->lock);
	return r;
}

int dmig_target_check(struct dmig_target *t, struct dmig_error **err)
{
	pthread_mutex_lock(&t->lock);
	int r = t->trouble ? dmig_target__copy_trouble(t, err) : 0;
	pthread_mutex_unlock(&t->lock);
	return r;
}

int dmig_target_event_fd(const struct dmig_target *t)
{
	return t->event_fd;
}

pid_t dmig_target_pid(const struct dmig_target *t)
{
	return t->info.pid;
}

int dmig_target_netns_fd(const struct dmig_target *t)
{
	return t->netns_fd;
}

int dmig_target_root_fd(const struct dmig_target *t)
{
	return t->root_fd;
}
