/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contents of a key file: what is taken comes out the same. */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_key *key = NULL;
	if (dmig_key_parse((const char *)data, size, &key, NULL) < 0)
		return 0;
	char *text = dmig_key_format(key);
	size_t len = strlen(text);
	assert(len == size || len == size + 1); /* the last newline may be missing */
	assert(memcmp(text, data, len - 1) == 0);
	free(text);
	dmig_key_free(key);
	return 0;
}
