/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <lz4.h>

#include "codec/codec.h"

_Static_assert(DMIG_LZ4_MAX <= LZ4_MAX_INPUT_SIZE, "lengths fit into the int of LZ4");

/* One part in this many must be saved, or the other side decompresses for nothing. */
#define WORTH 16

size_t dmig_lz4_compress(const void *src, size_t len, void *dst, size_t size)
{
	size_t target = len - len / WORTH;
	if (len < WORTH || len > DMIG_LZ4_MAX)
		return 0;
	if (target > size)
		target = size;
	/* A small dst makes LZ4 give up as soon as it is full. */
	int n = LZ4_compress_default(src, dst, (int)len, (int)target);
	return n > 0 ? (size_t)n : 0;
}

int dmig_lz4_decompress(const void *src, size_t len, void *dst, size_t plain_len)
{
	if (len == 0 || len > DMIG_LZ4_MAX || plain_len == 0 || plain_len > DMIG_LZ4_MAX)
		return -EPROTO;
	int n = LZ4_decompress_safe(src, dst, (int)len, (int)plain_len);
	return n >= 0 && (size_t)n == plain_len ? 0 : -EPROTO;
}
