/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "docker/internal.h"
#include "util/io.h"

/*
 * Volumes that a move left behind: STATE/stale-volumes/NAME, one line that says which volume it was and how
 * it looked. A volume that was made anew or worked on since then is no longer what we left, and nobody may
 * replace its contents.
 */

#define MAX_MARK 256 /* bytes; a date and a number */

static char *mark_path(const char *state_dir, const char *volume)
{
	return dmig_asprintf("%s/stale-volumes/%s", state_dir, volume);
}

/* The line for a volume as it is now. NULL: no memory, or it cannot be looked at. Caller frees. */
static char *mark_of(const json_t *volume)
{
	struct stat st;
	if (stat(dmig_docker__text(volume, "Mountpoint"), &st) < 0)
		return NULL;
	return dmig_asprintf("%.64s %lld.%09ld\n", dmig_docker__text(volume, "CreatedAt"),
		(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

/* The line for a volume whose contents are being replaced. */
static char *mark_of_taken(const json_t *volume)
{
	return dmig_asprintf("%.64s taken\n", dmig_docker__text(volume, "CreatedAt"));
}

bool dmig_docker__is_stale(const char *state_dir, const json_t *volume)
{
	cleanup_free char *path = mark_path(state_dir, dmig_docker__text(volume, "Name"));
	cleanup_free char *now = mark_of(volume), *taken = mark_of_taken(volume), *then = NULL;
	if (!path || !now || !taken || dmig_read_file(path, MAX_MARK, &then, NULL) < 0)
		return false;
	return !strcmp(now, then) || !strcmp(taken, then);
}

int dmig_docker__stale_take(const char *state_dir, const json_t *volume, struct dmig_error **err)
{
	cleanup_free char *path = mark_path(state_dir, dmig_docker__text(volume, "Name"));
	cleanup_free char *line = mark_of_taken(volume);
	if (!path || !line)
		return dmig_docker__oom(err);
	return dmig_write_file_atomic(path, line, strlen(line), 0600, err);
}

static int mark(struct dmig_docker *d, const char *state_dir, const char *name, struct dmig_error **err)
{
	cleanup_json json_t *volume = NULL;
	cleanup_free char *path = mark_path(state_dir, name);
	int r = path ? dmig_docker__volume_get(d, name, &volume, err) : dmig_docker__oom(err);
	cleanup_free char *line = r == 0 && volume ? mark_of(volume) : NULL;
	if (r < 0 || !line)
		return r;
	return dmig_write_file_atomic(path, line, strlen(line), 0600, err);
}

int dmig_docker_stale_mark(
	struct dmig_docker *d, const char *state_dir, const struct dmig_container *c, struct dmig_error **err)
{
	cleanup_free char *dir = mark_path(state_dir, "");
	int r = dir ? dmig_mkdir_p(dir, 0700) : -ENOMEM;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot make %s: %s", dir ? dir : state_dir, strerror(-r));
	for (size_t i = 0; r == 0 && i < c->n_mounts; i++)
		if (dmig_docker__is_volume_first(c, i) && !c->mounts[i].anonymous && !c->mounts[i].shared)
			r = mark(d, state_dir, c->mounts[i].name, err);
	return r;
}

void dmig_docker_stale_forget(const char *state_dir, const struct dmig_container *c)
{
	for (size_t i = 0; i < c->n_mounts; i++) {
		if (!dmig_docker__is_volume_first(c, i))
			continue;
		cleanup_free char *path = mark_path(state_dir, c->mounts[i].name);
		if (path)
			unlink(path);
	}
}
