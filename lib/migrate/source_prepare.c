/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "migrate/control.h"
#include "migrate/source_internal.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

/* The destination creates networks, volumes and the container; Docker takes seconds for it when it is busy. */
#define PREPARE_MS 120000
/* Docker's start up to the waiting runtime: mounts, network, shim. */
#define START_MS 60000
/* Descriptors of a container's stdio in runc's state.json: three short strings. */
#define MAX_STATE_BYTES (4u << 20)

static int image_progress(const struct dmig_tree_stats *stats, void *opaque)
{
	struct source *s = opaque;
	dmig_worker_bytes(s->w, DMIG_BYTES_IMAGE, stats->bytes);
	return dmig_stop_check(s->w->stop, NULL);
}

/* A file without a name below our state folder: images can be larger than memory. */
static int spool_file(struct dmig_error **err)
{
	int fd = open(dmig_state_dir(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : dmig_error_set(err, errno, "no temporary file in %s: %m", dmig_state_dir());
}

static int send_image(struct source *s, size_t have, struct dmig_error **err)
{
	cleanup_fd int spool = spool_file(err);
	struct dmig_tree_send_opts opts = {
		.kind = DMIG_STREAM_IMAGE, .name = "", .compress = true, .progress = image_progress, .opaque = s};
	if (spool < 0)
		return spool;
	int r = dmig_docker_image_save(s->docker, s->container->image_id, have, spool, err);
	if (r < 0)
		return dmig_error_wrap(err, "saving image %s", s->container->image_name);
	off_t size = lseek(spool, 0, SEEK_END);
	if (size > 0)
		dmig_worker_total(s->w, (uint64_t)size);
	lseek(spool, 0, SEEK_SET);
	r = dmig_file_send(s->images.conn, spool, 0, &opts, &s->image_stats, err);
	r = dmig_stream_result(s->images.conn, r, PREPARE_MS, err);
	return r < 0 ? dmig_error_wrap(err, "sending image %s", s->container->image_name) : 0;
}

int source__prepare(struct source *s, struct dmig_error **err)
{
	int r = source__dial(s, DMIG_ROLE_DATA, s->data_port, 5000, &s->files.conn, err);
	if (r == 0)
		r = source__dial(s, DMIG_ROLE_DATA, s->data_port, 5000, &s->images.conn, err);
	if (r < 0)
		return r;
	r = source__watch_streams(s, err);
	if (r < 0)
		return r;
	json_t *image = json_object_get(s->check_result, "image");
	if (!json_is_true(json_object_get(image, "present"))) {
		json_int_t have = json_integer_value(json_object_get(image, "have"));
		json_int_t count = json_integer_value(json_object_get(image, "count"));
		r = send_image(s, have > 0 ? (size_t)have : 0, err);
		s->layers_sent = count > have ? (uint64_t)(count - have) : 0;
	}
	if (r == 0)
		r = dmig_peer_send(s->peer, DMIG_MSG_PREPARE, err);
	return r < 0 ? r : dmig_peer_expect(s->peer, DMIG_MSG_PREPARED, PREPARE_MS, err);
}

static int find_log(struct source *s, struct dmig_error **err)
{
	cleanup_error struct dmig_error *why = NULL;
	int r = dmig_docker_log_file(s->docker, s->container, &s->log_path, &why);
	if (r == -EOPNOTSUPP) {
		json_array_append_new(s->warnings, json_sprintf("logs: history stays at the source: %s", why->message));
		return 0;
	}
	if (r < 0 && err && !*err)
		*err = steal_ptr(&why);
	return r;
}

/* The descriptors that the container's init was started with: the restoring runtime needs them before the images. */
static json_t *stdio_descriptors(struct source *s, struct dmig_error **err)
{
	cleanup_free char *path = dmig_asprintf("%s/%s/state.json", s->runc_root, s->container->id);
	cleanup_free char *text = NULL;
	int r = path ? dmig_read_file(path, MAX_STATE_BYTES, &text, NULL) : -ENOMEM;
	json_t *state = r == 0 ? json_loads(text, 0, NULL) : NULL;
	json_t *list = json_object_get(state, "external_descriptors");
	if (!json_is_array(list) || json_array_size(list) != 3) {
		dmig_error_set(err, EINVAL, "runc's state %s does not name the container's descriptors", path ? path : "");
		json_decref(state);
		return NULL;
	}
	json_incref(list);
	json_decref(state);
	return list;
}

/* How the dump names the container's terminal, so that the restore can give it the new one; "" for none. */
static int terminal_key(struct source *s, char *ret, size_t size, struct dmig_error **err)
{
	struct dmig_criu_tty tty;
	*ret = '\0';
	if (!s->container->tty)
		return 0;
	int r = dmig_criu_tty(s->container->pid, &tty, err);
	if (r == 0)
		snprintf(ret, size, "tty[%" PRIx64 ":%" PRIx64 "]", tty.rdev, tty.dev);
	return r;
}

int source__stage(struct source *s, struct dmig_error **err)
{
	int r = find_log(s, err);
	if (r == 0 && s->log_path)
		r = source__send_log(s, s->files.conn, err);
	if (r < 0)
		return r;
	char tty[64];
	r = terminal_key(s, tty, sizeof(tty), err);
	json_t *descriptors = r == 0 ? stdio_descriptors(s, err) : NULL;
	if (!descriptors)
		return r < 0 ? r : -EINVAL;
	r = dmig_peer_send_json(s->peer, DMIG_MSG_START, json_pack("{s:o,s:s}", "descriptors", descriptors, "tty", tty), err);
	return r < 0 ? r : dmig_peer_expect(s->peer, DMIG_MSG_STARTED, START_MS, err);
}
