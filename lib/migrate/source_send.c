/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "migrate/source_internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* Within this the destination has put a stream on its disk, once it is sent. */
#define DONE_MS 600000

static int files_progress(const struct dmig_tree_stats *stats, void *opaque)
{
	struct source *s = opaque;
	dmig_worker_bytes(s->w, DMIG_BYTES_FILES, s->file_stats.bytes + stats->bytes);
	return dmig_stop_check(s->w->stop, NULL);
}

static int memory_progress(const struct dmig_tree_stats *stats, void *opaque)
{
	struct source *s = opaque;
	dmig_worker_bytes(s->w, DMIG_BYTES_MEMORY, stats->bytes);
	return dmig_stop_check(s->w->stop, NULL);
}

int source__send_log(struct source *s, struct dmig_conn *conn, struct dmig_error **err)
{
	struct dmig_tree_stats stats = {0};
	struct dmig_tree_send_opts opts = {.kind = DMIG_STREAM_LOG, .name = "", .compress = true};
	cleanup_fd int fd = open(s->log_path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 && errno == ENOENT)
		return 0; /* nothing was logged yet */
	if (fd < 0 || fstat(fd, &st) < 0)
		return dmig_error_set(err, errno, "cannot read the log %s: %m", s->log_path);
	if ((uint64_t)st.st_size < s->log_sent)
		s->log_sent = 0; /* rotated meanwhile: the new file is all new */
	if ((uint64_t)st.st_size == s->log_sent)
		return 0;
	int r = dmig_file_send(conn, fd, s->log_sent, &opts, &stats, err);
	r = dmig_stream_result(conn, r, DONE_MS, err);
	if (r < 0)
		return dmig_error_wrap(err, "sending the log");
	s->log_sent += stats.bytes;
	return 0;
}

static int send_tree(struct source *s, const char *path, const struct dmig_tree_send_opts *opts, struct dmig_error **err)
{
	struct dmig_tree_stats stats = {0};
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return dmig_error_set(err, errno, "cannot open %s: %m", path);
	int64_t start = dmig_now_us();
	int r = dmig_tree_send(s->files.conn, fd, opts, &stats, err);
	r = dmig_stream_result(s->files.conn, r, DONE_MS, err);
	if (r < 0)
		return dmig_error_wrap(err, "sending %s", path);
	dmig_timeline_step(s->w->timeline, opts->kind == DMIG_STREAM_ROOTFS ? "files: writable layer" : "files: volume",
		start, 0);
	s->file_stats.files += stats.files;
	s->file_stats.bytes += stats.bytes;
	s->file_stats.wire_bytes += stats.wire_bytes;
	s->file_stats.entries += stats.entries;
	return 0;
}

static enum dmig_bind_mode bind_mode(const struct source *s, const char *path)
{
	for (size_t i = 0; i < s->o->n_binds; i++)
		if (!strcmp(s->o->binds[i].path, path))
			return s->o->binds[i].mode;
	return DMIG_BIND_REFUSE;
}

static int send_mount(struct source *s, const struct dmig_mount *m, struct dmig_error **err)
{
	struct dmig_tree_send_opts opts = {
		.one_filesystem = true, .compress = true, .progress = files_progress, .opaque = s};
	if (m->type == DMIG_MOUNT_VOLUME && !m->shared && s->o->volumes == DMIG_VOLUMES_ALL) {
		opts.kind = DMIG_STREAM_VOLUME;
		opts.name = m->name;
		return send_tree(s, m->source, &opts, err);
	}
	if (m->type == DMIG_MOUNT_BIND && bind_mode(s, m->source) == DMIG_BIND_COPY) {
		opts.kind = DMIG_STREAM_BIND;
		opts.name = m->source;
		return send_tree(s, m->source, &opts, err);
	}
	return 0;
}

/* One volume may be mounted at several places of the container. */
static bool is_sent(const struct dmig_container *c, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (c->mounts[i].type == c->mounts[index].type && !strcmp(c->mounts[i].source, c->mounts[index].source))
			return true;
	return false;
}

static int send_files(struct source *s, struct dmig_error **err)
{
	struct dmig_tree_send_opts rootfs = {.kind = DMIG_STREAM_ROOTFS,
		.name = "",
		.overlay = true,
		.one_filesystem = true,
		.compress = true,
		.progress = files_progress,
		.opaque = s};
	int r = send_tree(s, s->upper, &rootfs, err);
	for (size_t i = 0; r == 0 && i < s->container->n_mounts; i++)
		if (!is_sent(s->container, i))
			r = send_mount(s, &s->container->mounts[i], err);
	if (r == 0 && s->log_path)
		r = source__send_log(s, s->files.conn, err);
	return r;
}

static void *files_thread(void *opaque)
{
	struct source *s = opaque;
	s->files.start_us = dmig_now_us();
	if (send_files(s, &s->files.error) < 0) {
		struct dmig_error *copy = NULL;
		dmig_error_set_class(&copy, s->files.error->class, s->files.error->code, "%s", s->files.error->message);
		if (copy)
			copy->side = s->files.error->side;
		dmig_stop_now(s->w->stop, copy); /* the dump need not go on */
	}
	s->files.end_us = dmig_now_us();
	return NULL;
}

int source__start_files(struct source *s, struct dmig_error **err)
{
	int r = pthread_create(&s->files.thread, NULL, files_thread, s);
	if (r)
		return dmig_error_set(err, r, "cannot start a thread: %s", strerror(r));
	s->files.running = true;
	return 0;
}

/* A destination that says nothing any more would keep a thread waiting on its stream for minutes. */
static void *break_streams(void *opaque)
{
	struct source *s = opaque;
	struct pollfd p[] = {{.fd = dmig_stop_fd(s->w->stop), .events = POLLIN}, {.fd = s->breaker_end, .events = POLLIN}};
	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	if (p[0].revents) {
		dmig_conn_shutdown(s->files.conn);
		dmig_conn_shutdown(s->images.conn);
	}
	return NULL;
}

int source__watch_streams(struct source *s, struct dmig_error **err)
{
	s->breaker_end = eventfd(0, EFD_CLOEXEC);
	if (s->breaker_end < 0)
		return dmig_error_set(err, errno, "eventfd: %m");
	int r = pthread_create(&s->breaker, NULL, break_streams, s);
	s->breaking = r == 0;
	return r ? dmig_error_set(err, r, "cannot start a thread: %s", strerror(r)) : 0;
}

void source__unwatch_streams(struct source *s)
{
	uint64_t one = 1;
	if (!s->breaking)
		return;
	s->breaking = false;
	if (write(s->breaker_end, &one, sizeof(one)) < 0)
		log_error("eventfd: %m");
	pthread_join(s->breaker, NULL);
	close(s->breaker_end);
}

int source__join(struct sender *sender, struct dmig_error **err)
{
	if (!sender->running)
		return 0;
	if (!err)
		dmig_conn_shutdown(sender->conn); /* undo: it need not come to its end */
	pthread_join(sender->thread, NULL);
	sender->running = false;
	if (!sender->error)
		return 0;
	int code = -sender->error->code;
	if (err && !*err)
		*err = steal_ptr(&sender->error);
	else
		dmig_error_freep(&sender->error);
	return code;
}

int source__send_images(struct source *s, struct dmig_error **err)
{
	struct dmig_tree_send_opts opts = {
		.kind = DMIG_STREAM_CRIU, .name = "", .compress = true, .progress = memory_progress, .opaque = s};
	cleanup_fd int fd = open(s->images_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return dmig_error_set(err, errno, "cannot open %s: %m", s->images_dir);
	int64_t start = dmig_now_us();
	int r = dmig_tree_send(s->images.conn, fd, &opts, &s->memory_stats, err);
	r = dmig_stream_result(s->images.conn, r, DONE_MS, err);
	dmig_timeline_step(s->w->timeline, "send CRIU images", start, 0);
	return r < 0 ? dmig_error_wrap(err, "sending the state") : 0;
}
