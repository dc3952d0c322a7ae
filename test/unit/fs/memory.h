/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_UNIT_FS_MEMORY_H
#define DMIG_TEST_UNIT_FS_MEMORY_H

#include "fs/internal.h"

/* A stream that is kept in memory between its sender and its receiver, so that a test can look at it or
 * damage it. */
struct memory {
	uint8_t *data; /* frames with their headers */
	size_t len, cap, pos;
};

struct dmig_fs__output memory_output(struct memory *m);
/* Ends with -EPIPE. The payload is in a buffer of its own and exact size: a sanitizer sees a read behind it.
 */
struct dmig_fs__input memory_input(struct memory *m);
void memory_free(struct memory *m);
/* The next frame without its contents; false at the end. */
bool memory_next(struct memory *m, struct dmig_frame *ret);

int memory_send(struct memory *m, int root_fd, const struct dmig_tree_send_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err);
/* Skips the STREAM_BEGIN that stands in front. */
int memory_recv(struct memory *m, int root_fd, const struct dmig_tree_recv_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err);
/* One folder into another through memory; asserts that both work and agree on the numbers. */
void memory_move(int from_fd, const struct dmig_tree_send_opts *send_opts, int to_fd,
	const struct dmig_tree_recv_opts *recv_opts);

/* Append one frame by hand. */
void memory_put(struct memory *m, enum dmig_msg type, uint16_t flags, const void *payload, size_t len);
void memory_put_entry(struct memory *m, const struct dmig_wire_entry *entry);
void memory_put_data(struct memory *m, uint64_t offset, const void *data, uint32_t len);
void memory_put_entry_end(struct memory *m, uint64_t sum, uint64_t size);
void memory_put_end(struct memory *m, uint64_t entries, uint64_t files, uint64_t bytes);

#endif
