/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CODEC_CODEC_H
#define DMIG_CODEC_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * LZ4 blocks and XXH3 sums. No state is shared: any thread, any time.
 */

/* A block is at most this long, plain or compressed. */
#define DMIG_LZ4_MAX (1u << 24)

/*
 * Bytes written to dst, or 0 if the block would not shrink by at least 1/16 or not fit into size: send it
 * plain then. dst of len bytes is always enough.
 */
size_t dmig_lz4_compress(const void *src, size_t len, void *dst, size_t size);
/* src is hostile. dst gets exactly plain_len bytes, or the result is -EPROTO and dst holds garbage. */
int dmig_lz4_decompress(const void *src, size_t len, void *dst, size_t plain_len);

/* XXH3, 64 bits, seed 0: finds damage, not an attacker (TLS does that). */
struct dmig_sum;
struct dmig_sum *dmig_sum_new(void); /* NULL: out of memory */
void dmig_sum_free(struct dmig_sum *sum);
void dmig_sum_reset(struct dmig_sum *sum);
void dmig_sum_add(struct dmig_sum *sum, const void *data, size_t len);
uint64_t dmig_sum_get(const struct dmig_sum *sum); /* of all that was added; more may follow */
uint64_t dmig_sum_of(const void *data, size_t len);

static inline void dmig_sum_freep(struct dmig_sum **sum)
{
	dmig_sum_free(*sum);
	*sum = NULL;
}
#define cleanup_sum __attribute__((cleanup(dmig_sum_freep)))

#endif
