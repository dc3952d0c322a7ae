/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/internal.h"

/* Bytes below which LZ4 is not tried: what it saves is less than the frame around it. */
#define WORTH_PACKING 256

int dmig_fs__progress(
	dmig_tree_progress_fn *fn, void *opaque, const struct dmig_tree_stats *stats, struct dmig_error **err)
{
	if (fn && fn(stats, opaque) != 0)
		return dmig_error_set_class(err, DMIG_ERR_CANCELLED, ECANCELED, "stopped");
	return 0;
}

static int send_data(struct dmig_fs__sender *s, uint64_t offset, size_t len, struct dmig_error **err)
{
	uint8_t head[DMIG_WIRE_DATA_HEAD];
	struct dmig_wire_data data = {.offset = offset, .plain_len = (uint32_t)len};
	ssize_t head_len = dmig_wire_encode_data(&data, head, sizeof(head));
	if (head_len < 0)
		return dmig_error_set(err, (int)-head_len, "cannot encode DATA");
	size_t packed = 0;
	if (s->opts->compress && len >= WORTH_PACKING)
		packed = dmig_lz4_compress(s->plain, len, s->packed, DMIG_FS_CHUNK);
	int r = s->out.send(s->out.opaque, DMIG_MSG_DATA, packed ? DMIG_FRAME_LZ4 : 0, head, (size_t)head_len,
		packed ? s->packed : s->plain, packed ? packed : len, err);
	if (r < 0)
		return r;
	dmig_sum_add(s->sum, s->plain, len);
	s->stats->bytes += len;
	s->stats->wire_bytes += sizeof(struct dmig_frame_header) + (size_t)head_len + (packed ? packed : len);
	if (s->stats->bytes < s->next_report)
		return 0;
	s->next_report = s->stats->bytes + DMIG_FS_PROGRESS_STEP;
	return dmig_fs__progress(s->opts->progress, s->opts->opaque, s->stats, err);
}

static int send_hole(struct dmig_fs__sender *s, uint64_t offset, uint64_t len, struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_hole hole = {.offset = offset, .len = len};
	ssize_t n = dmig_wire_encode_hole(&hole, buf, sizeof(buf));
	return dmig_fs__send_frame(s, DMIG_MSG_HOLE, buf, n, err);
}

static int send_entry_end(struct dmig_fs__sender *s, uint64_t size, struct dmig_error **err)
{
	uint8_t buf[DMIG_WIRE_SMALL];
	struct dmig_wire_entry_end end = {.sum = dmig_sum_get(s->sum), .size = size};
	ssize_t n = dmig_wire_encode_entry_end(&end, buf, sizeof(buf));
	int r = dmig_fs__send_frame(s, DMIG_MSG_ENTRY_END, buf, n, err);
	if (r < 0)
		return r;
	s->stats->files++;
	s->next_report = s->stats->bytes + DMIG_FS_PROGRESS_STEP;
	return dmig_fs__progress(s->opts->progress, s->opts->opaque, s->stats, err);
}

/* Bytes *pos..stop of fd, *pos following; short where the file has become shorter. */
static int send_range(struct dmig_fs__sender *s, int fd, const char *path, uint64_t start, uint64_t *pos,
	uint64_t stop, struct dmig_error **err)
{
	while (*pos < stop) {
		size_t want = stop - *pos < DMIG_FS_CHUNK ? (size_t)(stop - *pos) : DMIG_FS_CHUNK;
		ssize_t n = pread(fd, s->plain, want, (off_t)*pos);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return dmig_fs__fail(err, errno, "read", path);
		if (n == 0)
			return 0;
		int r = send_data(s, *pos - start, (size_t)n, err);
		if (r < 0)
			return r;
		*pos += (uint64_t)n;
	}
	return 0;
}

/*
 * Where data begins and ends from pos on, within end. Filesystems that know no holes, and files without one,
 * are a single range of data.
 */
static void next_range(int fd, bool holes, uint64_t pos, uint64_t end, uint64_t *ret_data, uint64_t *ret_stop)
{
	*ret_data = pos;
	*ret_stop = end;
	if (!holes)
		return;
	off_t data = lseek(fd, (off_t)pos, SEEK_DATA);
	if (data < 0 && errno == ENXIO) {
		*ret_data = end;
		return;
	}
	if (data < 0)
		return;
	*ret_data = (uint64_t)data < end ? (uint64_t)data : end;
	off_t stop = lseek(fd, data, SEEK_HOLE);
	if (stop >= 0 && (uint64_t)stop < end)
		*ret_stop = (uint64_t)stop;
}

int dmig_fs__send_content(struct dmig_fs__sender *s, int fd, const char *path, uint64_t start, uint64_t end,
	bool holes, struct dmig_error **err)
{
	uint64_t pos = start, data, stop;
	int r = 0;
	dmig_sum_reset(s->sum);
	if (end - start > DMIG_FS_CHUNK)
		posix_fadvise(fd, (off_t)start, 0, POSIX_FADV_SEQUENTIAL);
	while (r == 0 && pos < end) {
		next_range(fd, holes, pos, end, &data, &stop);
		if (data > pos) {
			r = send_hole(s, pos - start, data - pos, err);
			pos = data;
			continue;
		}
		r = send_range(s, fd, path, start, &pos, stop, err);
		if (r == 0 && pos < stop)
			break; /* truncated meanwhile, in a tree that others write to */
	}
	return r < 0 ? r : send_entry_end(s, pos - start, err);
}

int dmig_fs__send_pipe(struct dmig_fs__sender *s, int fd, struct dmig_error **err)
{
	uint64_t pos = 0;
	dmig_sum_reset(s->sum);
	for (;;) {
		ssize_t n = read(fd, s->plain, DMIG_FS_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return dmig_error_set(err, errno, "cannot read from a pipe: %s", strerror(errno));
		if (n == 0)
			return send_entry_end(s, pos, err);
		int r = send_data(s, pos, (size_t)n, err);
		if (r < 0)
			return r;
		pos += (uint64_t)n;
	}
}
