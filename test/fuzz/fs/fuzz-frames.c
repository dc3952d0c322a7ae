/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arbitrary frames as a stream of a tree, or of one file. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fs/ground.h"
#include "fuzz/fuzz.h"
#include "util/cleanup.h"

#define ONE_FILE 8

struct bytes {
	const uint8_t *data;
	size_t len;
	uint8_t *lent; /* exact size, so that a sanitizer sees a read behind it */
};

static int next_frame(void *opaque, struct dmig_frame *ret, struct dmig_error **err)
{
	struct bytes *b = opaque;
	struct dmig_frame_header h;
	if (b->len < sizeof(h))
		return dmig_error_set(err, EPIPE, "end of the input");
	int r = dmig_wire_decode_header(b->data, &h, err);
	if (r < 0)
		return r;
	b->data += sizeof(h);
	b->len -= sizeof(h);
	if (h.length > b->len)
		h.length = (uint32_t)b->len;
	free(b->lent);
	b->lent = malloc(h.length ? h.length : 1);
	assert(b->lent);
	memcpy(b->lent, b->data, h.length);
	b->data += h.length;
	b->len -= h.length;
	*ret = (struct dmig_frame){.type = h.type, .flags = h.flags, .length = h.length, .payload = b->lent};
	return 0;
}

static void receive_one_file(struct dmig_fs__input in)
{
	static int fd = -1;
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_tree_recv_opts opts = {0};
	if (fd < 0)
		fd = memfd_create("received", MFD_CLOEXEC);
	assert(fd >= 0 && ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	struct dmig_fs__receiver r = {.in = in, .opts = &opts, .stats = &stats};
	int result = dmig_fs__recv_file(&r, fd, &err);
	assert(result <= 0 && (result < 0) == (err != NULL));
	assert(result < 0 || lseek(fd, 0, SEEK_END) == (off_t)stats.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct bytes b = {.data = data + 1, .len = size - 1};
	struct dmig_fs__input in = {.recv = next_frame, .opaque = &b};
	if (*data & ONE_FILE)
		receive_one_file(in);
	else
		ground_receive(in, *data);
	free(b.lent);
	return 0;
}
