/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"
#include "wrapper.h"

#define CONFIGURED "/etc/dmigrate/runc"
#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* As the shell: found, but it cannot be run; not found. */
#define EXIT_NO_EXEC 126
#define EXIT_NOT_FOUND 127

static bool is_self(const char *path)
{
	struct stat a, b;
	return stat("/proc/self/exe", &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Takes ownership of path. */
static char *if_usable(char *path)
{
	if (path && access(path, X_OK) == 0 && !is_self(path))
		return path;
	free(path);
	return NULL;
}

static char *configured(void)
{
	cleanup_free char *text = NULL;
	if (dmig_read_file(CONFIGURED, 4096, &text, NULL) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return if_usable(strdup(text));
}

static char *in_path(const char *path)
{
	while (path && *path) {
		size_t n = strcspn(path, ":");
		char *found = n ? if_usable(dmig_asprintf("%.*s/runc", (int)n, path)) : NULL;
		if (found)
			return found;
		path += n + (path[n] == ':');
	}
	return NULL;
}

char *find_real_runc(void)
{
	const char *env = getenv("DMIGRATE_RUNC");
	char *found = env && *env ? if_usable(strdup(env)) : NULL;
	if (!found)
		found = configured();
	if (!found)
		found = in_path(getenv("PATH"));
	return found ? found : in_path(USUAL_PATH);
}

int run_real(const struct wrapper *w)
{
	cleanup_free char *runc = find_real_runc();
	if (!runc) {
		fail(w, "dmigrate-runc: the real runc was not found (DMIGRATE_RUNC, " CONFIGURED ", PATH)");
		return EXIT_NOT_FOUND;
	}
	/* argv[0] is "runc" to it, as without us. */
	w->argv[0] = runc;
	execv(runc, w->argv);
	fail(w, "dmigrate-runc: cannot execute %s: %s", runc, strerror(errno));
	return EXIT_NO_EXEC;
}
