/* SPDX-License-Identifier: GPL-2.0-or-later */
/* "host:port" of a user or of a peer's answer. */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_address a;
	if (size < 1)
		return 0;
	char *text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (dmig_address_parse(text, data[0], &a, NULL) == 0) {
		assert(a.port > 0);
		assert(strlen(a.host) > 0 && strlen(a.host) < sizeof(a.host));
		assert(!strpbrk(a.host, "/@[] \n"));
	}
	free(text);
	return 0;
}
