/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "migrate/dest_internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* What each kind of stream may be written to, and when. Runs in data threads, beside the phases. */

/* Log files are Docker's: its own mode. */
#define LOG_MODE 0640
/* What an incoming container's memory leaves free in /run: systemd, Docker and containerd need some MiB there. */
#define RESERVE_BYTES (32u << 20)

static int progress(const struct dmig_tree_stats *stats, void *opaque)
{
	struct dest *d = opaque;
	(void)stats;
	return dmig_stop_check(d->w->stop, NULL);
}

/* What is there already for a stream to go to. */
struct place {
	enum dmig_phase phase;
	const struct dmig_container *container;
	struct dmig_target *target;
	const char *images_dir;
	bool needs_image;
};

static struct place look(struct dest *d)
{
	pthread_mutex_lock(&d->lock);
	struct place p = {.phase = d->phase,
		.container = d->container,
		.target = d->target,
		.images_dir = d->images_dir,
		.needs_image = d->phase == DMIG_PHASE_CHECK && !d->refused && !d->image_id};
	pthread_mutex_unlock(&d->lock);
	return p;
}

static int receive_log(struct dest *d, struct dmig_conn *conn, struct dmig_error **err)
{
	cleanup_free char *path = NULL;
	struct dmig_tree_recv_opts opts = {.progress = progress, .opaque = d};
	struct dmig_tree_stats stats = {0};
	struct place place = look(d);
	if (!place.container)
		return dmig_error_set(err, EPROTO, "a log for a container that does not exist yet");
	int r = dmig_docker_log_file(d->docker, place.container, &path, err);
	if (r < 0)
		return r;
	cleanup_fd int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, LOG_MODE);
	if (fd < 0)
		return dmig_error_set(err, errno, "cannot write the log %s: %m", path);
	return dmig_file_recv(conn, fd, &opts, &stats, err);
}

/* Images lie in memory that the whole host shares: its other services need some of /run, too. */
static int images_progress(const struct dmig_tree_stats *stats, void *opaque)
{
	struct dest *d = opaque;
	struct statvfs fs;
	if (statvfs(d->w->run_dir, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < RESERVE_BYTES)
		return -ENOSPC;
	return progress(stats, opaque);
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
	struct place place = look(d);
	if (!place.target || place.phase < DMIG_PHASE_STAGE || place.phase > DMIG_PHASE_FREEZE)
		return dmig_error_set(err, EPROTO, "files for a container that is not started yet, or runs");
	int r = dmig_tree_recv(conn, dmig_target_root_fd(place.target), &opts, &stats, err);
	dmig_timeline_step(d->w->timeline, "receive writable layer", start, 0);
	add_stats(d, &d->files, &stats);
	return r;
}

/* The source names a volume as it is called there; here one that nobody named has another name at the same place. */
static const char *volume_place(const struct dmig_container *there, const char *name)
{
	for (size_t i = 0; i < there->n_mounts; i++)
		if (there->mounts[i].type == DMIG_MOUNT_VOLUME && there->mounts[i].name && !strcmp(there->mounts[i].name, name))
			return there->mounts[i].destination;
	return NULL;
}

/* c: the container here; its description was read long before it was made. */
static const char *volume_path(const struct dest *d, const struct dmig_container *c, const char *name)
{
	const char *place = c ? volume_place(dmig_spec_container(d->spec), name) : NULL;
	for (size_t i = 0; place && i < c->n_mounts; i++) {
		const struct dmig_mount *m = &c->mounts[i];
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
	struct place place = look(d);
	const char *path = place.phase <= DMIG_PHASE_FREEZE ? volume_path(d, place.container, name) : NULL;
	if (!path)
		return dmig_error_set(err, EPROTO, "volume %s is none of this container's", name);
	int64_t start = dmig_now_us();
	int r = receive_into(d, conn, path, false, err);
	dmig_timeline_step(d->w->timeline, "receive volume", start, 0);
	return r < 0 ? dmig_error_wrap(err, "volume %s", name) : 0;
}

/*
 * The peer's own list of --bind options says nothing about what is allowed here: only sources of bind mounts that the
 * container was created with, for those went through --allow.
 */
static bool is_bind_source(struct dest *d, const char *path)
{
	struct place place = look(d);
	bool asked = false, mounted = false;
	if (place.phase > DMIG_PHASE_FREEZE || !place.container)
		return false;
	for (size_t i = 0; d->binds && d->binds[i]; i++)
		asked = asked || !strcmp(d->binds[i], path);
	for (size_t i = 0; i < place.container->n_mounts; i++) {
		const struct dmig_mount *m = &place.container->mounts[i];
		mounted = mounted || (m->type == DMIG_MOUNT_BIND && m->source && !strcmp(m->source, path));
	}
	return asked && mounted;
}

static int receive_bind(struct dest *d, struct dmig_conn *conn, const char *path, struct dmig_error **err)
{
	if (is_bind_source(d, path))
		return receive_into(d, conn, path, false, err);
	return dmig_error_set(err, EPROTO, "bind mount %s was not agreed on", path);
}

static int receive_criu(struct dest *d, struct dmig_conn *conn, struct dmig_error **err)
{
	/* descriptors.json is there already, and runc may be reading it */
	struct dmig_tree_recv_opts opts = {.keep_extra = true, .progress = images_progress, .opaque = d};
	struct dmig_tree_stats stats = {0};
	struct place place = look(d);
	if (!place.images_dir || place.phase < DMIG_PHASE_STAGE || place.phase > DMIG_PHASE_FREEZE)
		return dmig_error_set(err, EPROTO, "state for a container that does not wait for it");
	cleanup_fd int fd = open(place.images_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return dmig_error_set(err, errno, "cannot open %s: %m", place.images_dir);
	int64_t start = dmig_now_us();
	int r = dmig_tree_recv(conn, fd, &opts, &stats, err);
	if (r == -ECANCELED && images_progress(&stats, d) == -ENOSPC) {
		if (err)
			dmig_error_freep(err);
		r = dmig_error_set(err, ENOSPC, "%s has no room for the container's memory", d->w->run_dir);
	}
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
	if (!look(d).needs_image)
		return dmig_error_set(err, EPROTO, "an image that was not asked for");
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

static int receive_kind(struct dest *d, struct dmig_conn *conn, const struct dmig_stream *stream, struct dmig_error **err)
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

/* One stream of a kind at a time: two that write to the same tree would each undo the other's names. */
int dest__receive(struct dest *d, struct dmig_conn *conn, const struct dmig_stream *stream, struct dmig_error **err)
{
	unsigned bit = 1u << ((unsigned)stream->kind & 31);
	pthread_mutex_lock(&d->lock);
	bool busy = d->receiving & bit;
	d->receiving |= bit;
	pthread_mutex_unlock(&d->lock);
	if (busy)
		return dmig_error_set(err, EPROTO, "two streams of the same kind at once: %s",
			dmig_wire_stream_kind_name(stream->kind));
	int r = receive_kind(d, conn, stream, err);
	pthread_mutex_lock(&d->lock);
	d->receiving &= ~bit;
	pthread_mutex_unlock(&d->lock);
	return r;
}
