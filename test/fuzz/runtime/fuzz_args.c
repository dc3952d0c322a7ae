/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A command line, one word per NUL-terminated string. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "runtime/args.h"
#include "runtime/message.h"

static bool is_target(const char *name, void *opaque)
{
	(void)opaque;
	return name[0] == 'c';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	char **argv = NULL;
	size_t argc = 0;
	memcpy(copy, data, size);
	copy[size] = '\0';
	if (dmig_strings_split(copy, size + 1, &argv, &argc) == 0) {
		struct dmig_runc_args a;
		dmig_runc_args_parse((int)argc, argv, is_target, NULL, &a);
		const char *const found[] = {
			a.command, a.id, a.signal, a.root, a.log, a.bundle, a.pid_file, a.console_socket};
		for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
			assert(!found[i] || (found[i] >= copy && found[i] <= copy + size));
		free(argv);
	}
	free(copy);
	return 0;
}
