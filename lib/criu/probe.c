/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "criu/dump.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/spawn.h"

/* ms for one `criu check`: milliseconds when its knowledge of the kernel is cached, a good second when it is
 * not and the host is busy. */
#define CHECK_TIMEOUT_MS 20000
/* Folders asked about in one process: ours and the system's. */
#define MAX_CACHED 4

static const struct {
	const char *name;
	int bit;
} features[] = {
	{"post-freeze", DMIG_CRIU_HAS_POST_FREEZE},
	{"notify-socket", DMIG_CRIU_HAS_NOTIFY_SOCKET},
	{"root-host-pid", DMIG_CRIU_HAS_ROOT_HOST_PID},
	{"rlimits", DMIG_CRIU_HAS_RLIMITS},
	{"wait-images", DMIG_CRIU_HAS_WAIT_IMAGES},
	{"restore-exitkill", DMIG_CRIU_HAS_EXITKILL},
	{"inline-tmpfs", DMIG_CRIU_HAS_INLINE_TMPFS},
};

/* Guards cache[]. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char *program, *version;
	int bits;
} cache[MAX_CACHED];
static size_t n_cached;

/* "Version: 4.2.1\n..." */
static char *version_in(const char *text)
{
	const char *p = strstr(text, "Version: ");
	if (!p)
		return NULL;
	p += strlen("Version: ");
	return strndup(p, strspn(p, "0123456789."));
}

static int ask_version(const char *program, char **ret, struct dmig_error **err)
{
	cleanup_free char *out = NULL;
	int r = dmig_run((const char *[]){program, "--version", NULL}, NULL, CHECK_TIMEOUT_MS, &out, err);
	if (r < 0)
		return r;
	*ret = version_in(out);
	if (*ret && **ret)
		return 0;
	free(*ret);
	*ret = NULL;
	return dmig_error_set(err, ENOEXEC, "%s does not look like CRIU", program);
}

static int ask_features(const char *program)
{
	int bits = 0;
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		/* A user's configuration must not decide what we learn. */
		const char *argv[] = {
			program, "check", "--no-default-config", "--feature", features[i].name, NULL};
		if (dmig_run(argv, NULL, CHECK_TIMEOUT_MS, NULL, NULL) == 0)
			bits |= features[i].bit;
	}
	return bits;
}

static int find(const char *program)
{
	for (size_t i = 0; i < n_cached; i++)
		if (strcmp(cache[i].program, program) == 0)
			return (int)i;
	return -1;
}

static int learn(char *program, struct dmig_error **err)
{
	char *version = NULL;
	if (n_cached == MAX_CACHED)
		return dmig_error_set(err, ENOSPC, "too many copies of CRIU asked about");
	int r = ask_version(program, &version, err);
	if (r < 0)
		return r;
	cache[n_cached].program = strdup(program);
	cache[n_cached].version = version;
	cache[n_cached].bits = ask_features(program);
	if (!cache[n_cached].program) {
		free(version);
		return dmig_error_set(err, ENOMEM, "out of memory");
	}
	return (int)n_cached++;
}

int dmig_criu_probe(const char *criu_dir, char **ret_version, struct dmig_error **err)
{
	cleanup_free char *program = criu_dir ? dmig_asprintf("%s/criu", criu_dir) : strdup("criu");
	if (!program)
		return dmig_error_set(err, ENOMEM, "out of memory");
	pthread_mutex_lock(&lock);
	int i = find(program);
	if (i < 0)
		i = learn(program, err);
	int r = i < 0 ? i : cache[i].bits;
	if (r >= 0 && ret_version)
		*ret_version = strdup(cache[i].version);
	pthread_mutex_unlock(&lock);
	return r;
}
