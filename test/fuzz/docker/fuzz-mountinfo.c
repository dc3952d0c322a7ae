/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "docker/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *upper = NULL;
	int r = dmig_docker__mountinfo_upper((const char *)data, size, &upper);
	assert(r == 0 ? upper != NULL : !upper);
	free(upper);
	return 0;
}
