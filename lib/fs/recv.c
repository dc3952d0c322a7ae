/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/internal.h"
#include "util/cleanup.h"
#include "util/io.h"

static int init(struct dmig_fs__receiver *r, int root_fd, struct dmig_error **err)
{
	r->root_fd = root_fd;
	r->fd = -1;
	r->next_report = DMIG_FS_PROGRESS_STEP;
	dmig_fs__parent_init(&r->parent, root_fd);
	dmig_fs__parent_init(&r->linked, root_fd);
	r->times = dmig_fs__times_new();
	r->copy = malloc(DMIG_WIRE_MAX_PAYLOAD);
	r->plain = malloc(DMIG_WIRE_MAX_DATA);
	r->sum = dmig_sum_new();
	*r->stats = (struct dmig_tree_stats){0};
	return r->times && r->copy && r->plain && r->sum ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

static void release(struct dmig_fs__receiver *r)
{
	if (!r->borrowed_fd)
		dmig_closep(&r->fd);
	dmig_fs__parent_close(&r->parent);
	dmig_fs__parent_close(&r->linked);
	dmig_fs__times_free(r->times);
	free(r->copy);
	free(r->plain);
	dmig_sum_free(r->sum);
}

static int broken(struct dmig_error **err, const char *what)
{
	return dmig_error_set(err, EPROTO, "broken stream: %s", what);
}

static int on_entry(struct dmig_fs__receiver *r, const struct dmig_frame *frame, struct dmig_error **err)
{
	if (r->in_file)
		return broken(err, "ENTRY within a file");
	memcpy(r->copy, frame->payload, frame->length); /* the frame is gone when the contents come */
	int k = dmig_wire_decode_entry(r->copy, frame->length, &r->entry, err);
	if (k < 0)
		return k;
	r->stats->entries++;
	r->pos = 0;
	r->hole_last = false;
	dmig_sum_reset(r->sum);
	if (r->borrowed_fd && (r->rooted || r->entry.type != DMIG_ENTRY_FILE || *r->entry.path))
		return broken(err, "not a stream of one file");
	r->in_file = r->entry.type == DMIG_ENTRY_FILE;
	if (!r->borrowed_fd)
		return dmig_fs__apply(r, err);
	r->rooted = true;
	return 0;
}

/* DATA and HOLE follow each other without gaps, within the size that was announced. */
static int check_range(
	const struct dmig_fs__receiver *r, uint64_t offset, uint64_t len, struct dmig_error **err)
{
	if (!r->in_file)
		return broken(err, "contents without a file");
	if (offset != r->pos)
		return broken(err, "contents out of order");
	if (!(r->entry.flags & DMIG_ENTRY_SIZE_UNKNOWN) && len > r->entry.size - r->pos)
		return broken(err, "more contents than announced");
	return 0;
}

static int write_data(struct dmig_fs__receiver *r, const void *bytes, size_t len, struct dmig_error **err)
{
	int k = r->borrowed_fd ? dmig_write_full(r->fd, bytes, len)
			       : dmig_pwrite_full(r->fd, bytes, len, r->pos);
	return k < 0 ? dmig_fs__fail(err, -k, "write", r->entry.path) : 0;
}

static int on_data(struct dmig_fs__receiver *r, const struct dmig_frame *frame, struct dmig_error **err)
{
	struct dmig_wire_data data;
	int k = dmig_wire_decode_data(frame->payload, frame->length, frame->flags, &data, err);
	if (k == 0)
		k = check_range(r, data.offset, data.plain_len, err);
	if (k < 0)
		return k;
	const void *bytes = data.bytes;
	if (frame->flags & DMIG_FRAME_LZ4) {
		if (dmig_lz4_decompress(data.bytes, data.len, r->plain, data.plain_len) < 0)
			return broken(err, "contents that do not unpack");
		bytes = r->plain;
	}
	k = write_data(r, bytes, data.plain_len, err);
	if (k < 0)
		return k;
	dmig_sum_add(r->sum, bytes, data.plain_len);
	r->pos += data.plain_len;
	r->hole_last = false;
	r->stats->bytes += data.plain_len;
	if (r->stats->bytes < r->next_report)
		return 0;
	r->next_report = r->stats->bytes + DMIG_FS_PROGRESS_STEP;
	return dmig_fs__progress(r->opts->progress, r->opts->opaque, r->stats, err);
}

static int on_hole(struct dmig_fs__receiver *r, const struct dmig_frame *frame, struct dmig_error **err)
{
	struct dmig_wire_hole hole;
	int k = dmig_wire_decode_hole(frame->payload, frame->length, &hole, err);
	if (k == 0)
		k = check_range(r, hole.offset, hole.len, err);
	if (k < 0)
		return k;
	if (r->borrowed_fd)
		return broken(err, "HOLE in a stream of one file");
	r->pos += hole.len;
	r->hole_last = true;
	return 0;
}

static int close_file(struct dmig_fs__receiver *r, struct dmig_error **err)
{
	if (r->hole_last && ftruncate(r->fd, (off_t)r->pos) < 0)
		return dmig_fs__fail(err, errno, "set the size of", r->entry.path);
	struct dmig_fs__object o = {.fd = r->fd};
	int k = dmig_fs__attrs_apply(&o, &r->entry, r->existed || r->parent.default_acl, err);
	if (k < 0)
		return k;
	return close(steal_fd(&r->fd)) < 0 ? dmig_fs__fail(err, errno, "write", r->entry.path) : 0;
}

static int on_entry_end(struct dmig_fs__receiver *r, const struct dmig_frame *frame, struct dmig_error **err)
{
	struct dmig_wire_entry_end end;
	int k = dmig_wire_decode_entry_end(frame->payload, frame->length, &end, err);
	if (k < 0)
		return k;
	if (!r->in_file)
		return broken(err, "ENTRY_END without a file");
	if (end.size != r->pos)
		return broken(err, "contents of another length than told");
	if (end.sum != dmig_sum_get(r->sum))
		return dmig_fs__fail(err, EBADMSG, "trust the contents of", r->entry.path);
	k = r->borrowed_fd ? 0 : close_file(r, err);
	if (k < 0)
		return k;
	r->in_file = false;
	r->stats->files++;
	r->next_report = r->stats->bytes + DMIG_FS_PROGRESS_STEP;
	return dmig_fs__progress(r->opts->progress, r->opts->opaque, r->stats, err);
}

static int on_stream_end(struct dmig_fs__receiver *r, const struct dmig_frame *frame, struct dmig_error **err)
{
	struct dmig_wire_stream_end end;
	int k = dmig_wire_decode_stream_end(frame->payload, frame->length, &end, err);
	if (k < 0)
		return k;
	if (r->in_file || !r->rooted)
		return broken(err, "it ends in its middle");
	if (end.entries != r->stats->entries || end.files != r->stats->files || end.bytes != r->stats->bytes)
		return broken(err, "something is missing");
	return 0;
}

static int on_frame(struct dmig_fs__receiver *r, const struct dmig_frame *frame, struct dmig_error **err)
{
	switch (frame->type) {
	case DMIG_MSG_ENTRY:
		return on_entry(r, frame, err);
	case DMIG_MSG_DATA:
		return on_data(r, frame, err);
	case DMIG_MSG_HOLE:
		return on_hole(r, frame, err);
	case DMIG_MSG_ENTRY_END:
		return on_entry_end(r, frame, err);
	case DMIG_MSG_STREAM_END:
		return on_stream_end(r, frame, err);
	default:
		return dmig_fs__unexpected(frame, err);
	}
}

static int recv_frames(struct dmig_fs__receiver *r, struct dmig_error **err)
{
	struct dmig_frame frame = {0};
	int k = 0;
	while (k == 0 && frame.type != DMIG_MSG_STREAM_END) {
		k = r->in.recv(r->in.opaque, &frame, err);
		if (k < 0)
			break;
		r->stats->wire_bytes += sizeof(struct dmig_frame_header) + frame.length;
		k = on_frame(r, &frame, err);
	}
	return k;
}

static int sync_all(int root_fd, struct dmig_error **err)
{
	cleanup_fd int fd = dmig_fs__open_folder(root_fd, "", 0); /* root_fd may be an O_PATH descriptor */
	return fd < 0 || syncfs(fd) < 0
		       ? dmig_error_set(err, errno, "cannot write to the disk: %s", strerror(errno))
		       : 0;
}

int dmig_fs__recv_tree(struct dmig_fs__receiver *r, int root_fd, struct dmig_error **err)
{
	int k = init(r, root_fd, err);
	if (k == 0)
		k = recv_frames(r, err);
	if (k == 0)
		k = dmig_fs__times_apply(r->times, &r->parent, err);
	if (k == 0 && r->opts->sync)
		k = sync_all(root_fd, err);
	release(r);
	return k;
}

int dmig_fs__recv_file(struct dmig_fs__receiver *r, int fd, struct dmig_error **err)
{
	int k = init(r, -1, err);
	r->fd = fd;
	r->borrowed_fd = true;
	if (k == 0)
		k = recv_frames(r, err);
	if (k == 0 && r->opts->sync && fsync(fd) < 0 && errno != EINVAL &&
		errno != EROFS) /* a pipe has no disk */
		k = dmig_error_set(err, errno, "cannot write to the disk: %s", strerror(errno));
	release(r);
	return k;
}

int dmig_tree_recv(struct dmig_conn *conn, int root_fd, const struct dmig_tree_recv_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err)
{
	struct dmig_tree_stats own;
	struct dmig_fs__receiver r = {
		.in = dmig_fs__input_from(conn), .opts = opts, .stats = stats ? stats : &own};
	return dmig_fs__recv_tree(&r, root_fd, err);
}
