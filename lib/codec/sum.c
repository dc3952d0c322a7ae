/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <xxhash.h>

#include "codec/codec.h"

/* The state needs 64-byte alignment, which only its own allocator gives: the opaque type is that state
 * itself. */
static XXH3_state_t *state_of(struct dmig_sum *sum)
{
	return (XXH3_state_t *)sum;
}

struct dmig_sum *dmig_sum_new(void)
{
	struct dmig_sum *sum = (struct dmig_sum *)XXH3_createState();
	if (sum)
		dmig_sum_reset(sum);
	return sum;
}

void dmig_sum_free(struct dmig_sum *sum)
{
	XXH3_freeState(state_of(sum));
}

void dmig_sum_reset(struct dmig_sum *sum)
{
	XXH3_64bits_reset(state_of(sum));
}

void dmig_sum_add(struct dmig_sum *sum, const void *data, size_t len)
{
	if (len)
		XXH3_64bits_update(state_of(sum), data, len);
}

uint64_t dmig_sum_get(const struct dmig_sum *sum)
{
	return XXH3_64bits_digest((const XXH3_state_t *)sum);
}

uint64_t dmig_sum_of(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}
