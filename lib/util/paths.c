/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/paths.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"

/* A folder with this program is our libexec folder or the build tree: nobody else has a program of that name.
 */
#define MARK "dmigrate-runc"

static bool is_program(const char *path)
{
	return path && access(path, X_OK) == 0;
}

/* Takes ownership of path. */
static char *if_program(char *path)
{
	if (is_program(path))
		return path;
	free(path);
	return NULL;
}

static char *executable_dir(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n <= 0)
		return NULL;
	path[n] = '\0';
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return strdup(path);
}

/* dir's neighbour: "/usr/sbin" and "bin" give "/usr/bin". Without "..", because such a path ends up in
 * configurations. */
static char *neighbour(const char *dir, const char *name)
{
	const char *slash = strrchr(dir, '/');
	return slash ? dmig_asprintf("%.*s/%s", (int)(slash - dir), dir, name) : NULL;
}

static char *from_environment(const char *name)
{
	const char *dir = getenv("DMIGRATE_LIBEXEC");
	return dir && *dir ? if_program(dmig_asprintf("%s/%s", dir, name)) : NULL;
}

/* Beside the mark, or in the build tree's folder for what is not built by us (build/bin, build/criu/criu). */
static char *beside_mark(const char *dir, const char *name)
{
	cleanup_free char *mark = dmig_asprintf("%s/" MARK, dir);
	if (!is_program(mark))
		return NULL;
	char *found = if_program(dmig_asprintf("%s/%s", dir, name));
	cleanup_free char *own = neighbour(dir, name);
	return found || !own ? found : if_program(dmig_asprintf("%s/%s", own, name));
}

char *dmig_libexec_path(const char *name)
{
	char *found = from_environment(name);
	cleanup_free char *dir = executable_dir();
	cleanup_free char *moved = dir ? neighbour(dir, "libexec/dmigrate") : NULL;

	if (!found && dir)
		found = beside_mark(dir, name);
	if (!found && moved)
		found = beside_mark(moved, name);
	return found ? found : dmig_asprintf("%s/%s", DMIG_LIBEXECDIR, name);
}

char *dmig_program_path(const char *name)
{
	char *found = from_environment(name);
	cleanup_free char *dir = executable_dir();
	cleanup_free char *bin = dir ? neighbour(dir, "bin") : NULL;
	cleanup_free char *sbin = dir ? neighbour(dir, "sbin") : NULL;
	const char *const places[] = {dir, bin, sbin};

	for (size_t i = 0; !found && i < sizeof(places) / sizeof(places[0]); i++)
		found = places[i] ? if_program(dmig_asprintf("%s/%s", places[i], name)) : NULL;
	return found ? found : strdup(name);
}

static const char *folder(const char *variable, const char *normal)
{
	const char *value = getenv(variable);
	return value && value[0] == '/' ? value : normal;
}

const char *dmig_run_dir(void)
{
	return folder("DMIGRATE_RUN_DIR", "/run/dmigrate");
}

const char *dmig_state_dir(void)
{
	return folder("DMIGRATE_STATE_DIR", "/var/lib/dmigrate");
}
