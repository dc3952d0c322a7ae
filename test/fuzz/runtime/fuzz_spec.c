/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config.json and state.json as an image or a user may have influenced them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "runtime/bigint.h"
#include "runtime/spec.h"

static char *resolve(const char *path, void *opaque)
{
	(void)opaque;
	return strdup(path);
}

static void run_bigint(const char *text, size_t size)
{
	char *wrapped = dmig_bigint_wrap(text, size);
	if (!wrapped)
		return;
	char *back = dmig_bigint_unwrap(wrapped);
	/* Bytes behind a NUL are lost, but those before it come back. */
	assert(back && !strncmp(back, text, strlen(back)));
	free(back);
	free(wrapped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_spec_edit edit = {.bundle = "/b", .netns_path = "/n", .devpts = "/d", .resolve = resolve};
	char *out = NULL, *again = NULL;
	run_bigint((const char *)data, size);
	if (dmig_spec_for_restore((const char *)data, size, &edit, &out, NULL) == 0) {
		/* What we write, we can read. */
		assert(dmig_spec_for_restore(out, strlen(out), &edit, &again, NULL) == 0);
		free(again);
		free(out);
	}
	out = NULL;
	if (dmig_spec_state_bundle((const char *)data, size, "/b", &out, NULL) == 0)
		free(out);
	return 0;
}
