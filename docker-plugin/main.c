/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Docker CLI plugin: `docker dmigrate ...` is `dmigrate ...`. The docker command starts us with everything
 * that was typed, its own global options before the word "dmigrate" included, and asks who we are with
 * "docker-cli-plugin-metadata".
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/paths.h"

#define NAME "dmigrate"
/* As dmigrate's own (dmigrate(1)). */
#define EXIT_USAGE 2
#define EXIT_INTERNAL 1

static const char metadata[] =
	"{\"SchemaVersion\":\"0.1.0\",\"Vendor\":\"Dmigrate\",\"Version\":\"" DMIG_VERSION "\","
	"\"ShortDescription\":\"Move a running container to another host\"}";

/* Global options of docker with a value. The other ones are flags. */
static const struct {
	const char *name;
	bool host, refused;
} valued[] = {
	{"-H", true, false},
	{"--host", true, false},
	{"-c", false, true},
	{"--context", false, true},
	{"--config", false, false},
	{"-l", false, false},
	{"--log-level", false, false},
	{"--tlscacert", false, false},
	{"--tlscert", false, false},
	{"--tlskey", false, false},
};

static int fail(const char *message, const char *word)
{
	fprintf(stderr, "docker dmigrate: %s%s\n", word, message);
	return EXIT_USAGE;
}

/* How many words the global option at argv takes: 1 or 2; 0 if it has been refused. */
static int take_global(char **argv)
{
	for (size_t i = 0; i < sizeof(valued) / sizeof(valued[0]); i++) {
		size_t n = strlen(valued[i].name);
		bool joined = !strncmp(argv[0], valued[i].name, n) && argv[0][n] == '=';
		if (!joined && strcmp(argv[0], valued[i].name))
			continue;
		const char *value = joined ? argv[0] + n + 1 : argv[1];
		if (!value || valued[i].refused) {
			fail(value ? ": set DOCKER_HOST instead of a context" : " needs a value", argv[0]);
			return 0;
		}
		if (valued[i].host)
			setenv("DOCKER_HOST", value, 1);
		return joined ? 1 : 2;
	}
	return 1;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "docker-cli-plugin-metadata")) {
		puts(metadata);
		return fflush(stdout) == 0 ? 0 : EXIT_INTERNAL;
	}
	int i = 1;
	while (i < argc && strcmp(argv[i], NAME)) {
		int n = take_global(argv + i);
		if (n == 0)
			return EXIT_USAGE;
		i += n;
	}
	if (i >= argc)
		return fail("is a plugin of docker: docker dmigrate ...", "this program ");
	char *program = dmig_program_path(NAME);
	if (!program)
		return EXIT_INTERNAL;
	argv[i] = program;
	execvp(program, argv + i);
	fprintf(stderr, "docker dmigrate: cannot start %s: %s\n", program, strerror(errno));
	return EXIT_INTERNAL;
}
