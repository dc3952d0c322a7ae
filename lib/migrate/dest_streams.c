/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "migrate/dest_internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* A TCP connection whose peer does not finish the handshake is not one of ours. */
#define HANDSHAKE_MS 5000
/* Log files are Docker's: its own mode. */
#define LOG_MODE 0640

static int progress(const struct dmig_tree_stats *stats, void *opaque)
{
	struct dest *d = opaque;
	(void)stats;
	return dmig_stop_check(d->w->stop, NULL);
}

static int receive_log(struct dest *d, struct dmig_conn *conn, struct dmig_error **err)
{
	cleanup_free char *path = NULL;
	struct dmig_tree_recv_opts opts = {.progress = progress, .opaque = d};
	struct dmig_tree_stats stats = {0};
	if (!d->container)
		return dmig_error_set(err, EPROTO, "a log for a container that does not exist yet");
	int r = dmig_docker_log_file(d->docker, d->container, &path, err);
	if (r < 0)
		return r;
	cleanup_fd int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, LOG_MODE);
	if (fd < 0)
		return dmig_error_set(err, errno, "cannot write the log %s: %m", path);
	return dmig_file_recv(conn, fd, &opts, &stats, err);
}

static void add_stats(struct dest *d, struct dmig_tree_stats *sum, const struct dmig_tree_stats *stats)
{
	pthread_mutex_lock(&d->lock);
	sum->files += stats->files;
	sum->bytes += stats->bytes;
	sum->wire_bytes += stats->wire_bytes;
	sum->entries += stats->entries;
	pthread_mutex_unlock(&d->lock);
}

static int receive_rootfs(struct dest *d, struct dmig_conn *conn, struct dmig_error **err)
{
	struct dmig_tree_recv_opts opts = {.overlay = true, .progress = progress, .opaque = d};
	struct dmig_tree_stats stats = {0};
	int64_t start = dmig_now_us();
	if (!d->target || d->phase < DMIG_PHASE_STAGE)
		return dmig_error_set(err, EPROTO, "files for a container that is not started yet");
	int r = dmig_tree_recv(conn, dmig_target_root_fd(d->target), &opts, &stats, err);
	dmig_timeline_step(d->w->timeline, "receive writable layer", start, 0);
	add_stats(d, &d->files, &stats);
	return r;
}

/* The source names a volume as it is called there; here one that nobody named has another name at the same place. */
static const char *volume_place(const struct dest *d, const char *name)
{
	const struct dmig_container *there = dmig_spec_container(d->spec);
	for (size_t i = 0; i < there->n_mounts; i++)
		if (there->mounts[i].type == DMIG_MOUNT_VOLUME && there->mounts[i].name && !strcmp(there->mounts[i].name, name))
			return there->mounts[i].destination;
	return NULL;
}

static const char *volume_path(const struct dest *d, const char *name)
{
	const char *place = d->spec ? volume_place(d, name) : NULL;
	for (size_t i = 0; place && d->container && i < d->container->n_mounts; i++) {
		const struct dmig_mount *m = &d->container->mounts[i];
		if (m->type == DMIG_MOUNT_VOLUME && !m->shared && !strcmp(m->destination, place))
			return m->source;
	}
	return NULL;
}

static int receive_into(struct dest *d, struct dmig_conn *conn, const char *path, bool keep_extra, struct dmig_error **err)
{
	struct dmig_tree_recv_opts opts = {.keep_extra = keep_extra, .progress = progress, .opaque = d};
	struct dmig_tree_stats stats = {0};
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return dmig_error_set(err, errno, "cannot open %s: %m", path);
	int r = dmig_tree_recv(conn, fd, &opts, &stats, err);
	add_stats(d, &d->files, &stats);
	return r;
}

static int receive_volume(struct dest *d, struct dmig_conn *conn, const char *name, struct dmig_error **err)
{
	const char *path = volume_path(d, name);
	if (!path)
		return dmig_error_set(err, EPROTO, "volume %s is none of this container's", name);
	int64_t start = dmig_now_us();
	int r = receive_into(d, conn, path, false, err);
	dmig_timeline_step(d->w->timeline, "receive volume", start, 0);
	return r < 0 ? dmig_error_wrap(err, "volume %s", name) : 0;
}

/* Only paths that the check has allowed: d->binds, made from the same list. */
static int receive_bind(struct dest *d, struct dmig_conn *conn, const char *path, struct dmig_error **err)
{
	for (size_t i = 0; d->binds && d->binds[i]; i++)
		if (!strcmp(d->binds[i], path))
			return receive_into(d, conn, path, false, err);
	return dmig_error_set(err, EPROTO, "bind mount %s was not agreed on", path);
}

static int receive_criu(struct dest *d, struct dmig_conn *conn, struct dmig_error **err)
{
	/* descriptors.json is there already, and runc may be reading it */
	struct dmig_tree_recv_opts opts = {.keep_extra = true, .progress = progress, .opaque = d};
	struct dmig_tree_stats stats = {0};
	if (!d->images_dir)
		return dmig_error_set(err, EPROTO, "state for a container that is not started yet");
	cleanup_fd int fd = open(d->images_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return dmig_error_set(err, errno, "cannot open %s: %m", d->images_dir);
	int64_t start = dmig_now_us();
	int r = dmig_tree_recv(conn, fd, &opts, &stats, err);
	dmig_timeline_step(d->w->timeline, "receive CRIU images", start, 0);
	add_stats(d, &d->memory, &stats);
	return r;
}

struct load {
	struct dest *d;
	int fd;
	struct dmig_error *error;
};

static void *load_thread(void *opaque)
{
	struct load *load = opaque;
	struct dmig_docker *docker = NULL; /* a client of our own: one thread each */
	if (dmig_docker_open(&docker, &load->error) == 0)
		dmig_docker_image_load(docker, load->fd, &load->error);
	dmig_docker_free(docker);
	close(load->fd); /* what is still written gets EPIPE */
	return NULL;
}

static int receive_image(struct dest *d, struct dmig_conn *conn, struct dmig_error **err)
{
	struct dmig_tree_recv_opts opts = {.progress = progress, .opaque = d};
	struct dmig_tree_stats stats = {0};
	struct load load = {.d = d};
	pthread_t thread;
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return dmig_error_set(err, errno, "pipe: %m");
	load.fd = p[0];
	int r = pthread_create(&thread, NULL, load_thread, &load);
	if (r) {
		close(p[0]);
		close(p[1]);
		return dmig_error_set(err, r, "cannot start a thread: %s", strerror(r));
	}
	r = dmig_file_recv(conn, p[1], &opts, &stats, err);
	close(p[1]);
	pthread_join(thread, NULL);
	if (load.error && err) { /* the engine's word says more than our broken pipe */
		dmig_error_freep(err);
		*err = steal_ptr(&load.error);
		r = -(*err)->code;
	}
	dmig_error_free(load.error);
	return r;
}

static int receive(struct dest *d, struct dmig_conn *conn, const struct dmig_stream *stream, struct dmig_error **err)
{
	log_debug("stream %s %s", dmig_wire_stream_kind_name(stream->kind), stream->name);
	switch (stream->kind) {
	case DMIG_STREAM_IMAGE:
		return receive_image(d, conn, err);
	case DMIG_STREAM_ROOTFS:
		return receive_rootfs(d, conn, err);
	case DMIG_STREAM_VOLUME:
		return receive_volume(d, conn, stream->name, err);
	case DMIG_STREAM_LOG:
		return receive_log(d, conn, err);
	case DMIG_STREAM_CRIU:
		return receive_criu(d, conn, err);
	case DMIG_STREAM_BIND:
		return receive_bind(d, conn, stream->name, err);
	}
	return dmig_error_set(err, EPROTO, "unknown stream");
}

static void serve_streams(struct dest *d, struct dmig_conn *conn)
{
	struct dmig_stream stream;
	cleanup_error struct dmig_error *error = NULL;
	int r;
	while ((r = dmig_stream_next(conn, &stream, &error)) == 0) {
		r = receive(d, conn, &stream, &error);
		if (r < 0)
			dmig_error_side(error, DMIG_SIDE_DESTINATION);
		/* On failure the sender hears the reason on this connection, and everybody by ABORT. */
		dmig_stream_done(conn, r < 0 ? error : NULL, NULL);
		if (r < 0)
			break;
	}
	if (r < 0 && r != -EPIPE && error)
		dmig_stop_now(d->w->stop, steal_ptr(&error));
}

static void serve_query(struct dest *d, struct dmig_conn *conn)
{
	struct dmig_frame f;
	cleanup_error struct dmig_error *error = NULL;
	if (dmig_conn_recv(conn, HANDSHAKE_MS, &f, &error) < 0 || f.type != DMIG_MSG_QUERY)
		return;
	int r = dest__answer_query(conn, d->w->journal, &error);
	log_info("source asked who runs: %s", r == 1 ? "nothing ran" : r == 0 ? "it runs here" : "cannot say");
	if (r == 1)
		dmig_stop_printf(d->w->stop, DMIG_ERR_FAILED, ECONNABORTED, "the source lost the connection and goes on");
}

struct data_thread {
	struct dest *d;
	size_t slot;
	int fd;
};

static struct dmig_conn *greet(struct dest *d, int fd, enum dmig_role *ret_role)
{
	struct dmig_conn *conn = NULL;
	struct dmig_wire_hello hello;
	cleanup_error struct dmig_error *error = NULL;
	int r = dmig_conn_server(fd, d->o->key, HANDSHAKE_MS, &conn, &error);
	if (r == 0)
		r = dest__hello(conn, d->w->id, d->o->port, &hello, &error);
	if (r < 0) {
		log_warn("data connection refused: %s", error ? error->message : strerror(-r));
		dmig_conn_free(conn);
		return NULL;
	}
	*ret_role = hello.role;
	return conn;
}

static void *data_thread(void *opaque)
{
	struct data_thread *t = opaque;
	struct dest *d = t->d;
	enum dmig_role role;
	struct dmig_conn *conn = greet(d, t->fd, &role);
	if (conn) {
		pthread_mutex_lock(&d->lock);
		d->conns[t->slot] = conn; /* dest__stop_streams() can now wake us */
		pthread_mutex_unlock(&d->lock);
		if (role == DMIG_ROLE_DATA)
			serve_streams(d, conn);
		else
			serve_query(d, conn);
		pthread_mutex_lock(&d->lock);
		d->conns[t->slot] = NULL;
		pthread_mutex_unlock(&d->lock);
		dmig_conn_free(conn);
	}
	free(t);
	return NULL;
}

static void start_data_thread(struct dest *d, int fd)
{
	struct data_thread *t = calloc(1, sizeof(*t));
	pthread_mutex_lock(&d->lock);
	size_t slot = d->n_threads;
	bool ok = t && slot < MAX_DATA_THREADS;
	if (ok) {
		*t = (struct data_thread){d, slot, fd};
		ok = pthread_create(&d->threads[slot], NULL, data_thread, t) == 0;
		if (ok)
			d->n_threads++;
	}
	pthread_mutex_unlock(&d->lock);
	if (!ok) {
		log_warn("too many data connections: one is refused");
		free(t);
		close(fd);
	}
}

static void *acceptor(void *opaque)
{
	struct dest *d = opaque;
	for (;;) {
		struct pollfd p[2] = {{.fd = d->o->listen_fd, .events = POLLIN}, {.fd = d->accept_stop, .events = POLLIN}};
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			break;
		if (!p[0].revents)
			continue;
		int fd = dmig_accept(d->o->listen_fd, 0, NULL);
		if (fd >= 0)
			start_data_thread(d, fd);
	}
	return NULL;
}

int dest__start_acceptor(struct dest *d, struct dmig_error **err)
{
	d->accept_stop = eventfd(0, EFD_CLOEXEC);
	if (d->accept_stop < 0)
		return dmig_error_set(err, errno, "eventfd: %m");
	int r = pthread_create(&d->acceptor, NULL, acceptor, d);
	if (r)
		return dmig_error_set(err, r, "cannot start a thread: %s", strerror(r));
	d->accepting = true;
	return 0;
}

void dest__stop_streams(struct dest *d)
{
	uint64_t one = 1;
	if (!d->accepting)
		return;
	if (write(d->accept_stop, &one, sizeof(one)) < 0)
		log_error("eventfd: %m");
	pthread_join(d->acceptor, NULL);
	d->accepting = false;
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_threads; i++)
		if (d->conns[i])
			dmig_conn_shutdown(d->conns[i]);
	pthread_mutex_unlock(&d->lock);
	for (size_t i = 0; i < d->n_threads; i++)
		pthread_join(d->threads[i], NULL);
	d->n_threads = 0;
	close(d->accept_stop);
}
