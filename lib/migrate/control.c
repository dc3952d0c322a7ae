/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/control.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/io.h"
#include "util/paths.h"
#include "wire/proto.h"

static bool is_id(const char *s)
{
	return strlen(s) == DMIG_WIRE_ID_LEN && strspn(s, "0123456789abcdef") == DMIG_WIRE_ID_LEN;
}

int dmig_control_connect(const char *id, int *ret_fd, struct dmig_error **err)
{
	if (!is_id(id))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
			"%s is not the id of a migration (16 hexadecimal digits; see dmigrate status)", id);
	cleanup_free char *path = dmig_asprintf("%s/%s/control.sock", dmig_run_dir(), id);
	if (!path)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int fd = dmig_unix_connect(path);
	if (fd == -ENOENT || fd == -ECONNREFUSED)
		return dmig_error_set(err, ENOENT, "migration %s does not run on this host", id);
	if (fd < 0)
		return dmig_error_set(err, -fd, "cannot reach migration %s at %s: %s", id, path, strerror(-fd));
	*ret_fd = fd;
	return 0;
}

int dmig_control_send(int fd, const char *json, struct dmig_error **err)
{
	ssize_t n = dmig_send_fds(fd, json, strlen(json), NULL, 0);
	if (n < 0)
		return dmig_error_set(err, (int)-n, "cannot talk to the migration: %s", strerror((int)-n));
	return 0;
}

int dmig_control_recv(int fd, int timeout_ms, char **ret_json, struct dmig_error **err)
{
	*ret_json = NULL;
	int r = dmig_poll_one(fd, POLLIN, timeout_ms);
	if (r <= 0)
		return dmig_error_set(err, r ? -r : ETIMEDOUT, "the migration does not answer");
	cleanup_free char *buf = malloc(DMIG_CONTROL_MAX_BYTES + 1);
	if (!buf)
		return dmig_error_set(err, ENOMEM, "out of memory");
	ssize_t n;
	do
		n = recv(fd, buf, DMIG_CONTROL_MAX_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != ECONNRESET)
		return dmig_error_set(err, errno, "cannot hear the migration: %m");
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	*ret_json = steal_ptr(&buf);
	return 0;
}

struct found {
	char *id;
	struct timespec changed;
};

static int newest_first(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->changed.tv_sec != y->changed.tv_sec)
		return x->changed.tv_sec < y->changed.tv_sec ? 1 : -1;
	return x->changed.tv_nsec < y->changed.tv_nsec ? 1 : x->changed.tv_nsec > y->changed.tv_nsec ? -1 : 0;
}

static bool is_known(const struct found *list, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].id, id))
			return true;
	return false;
}

/* Both folders hold one sub-folder per migration. */
static int collect(const char *folder, struct found **list, size_t *n)
{
	cleanup_dir DIR *d = opendir(folder);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	struct dirent *e;
	while ((e = readdir(d))) {
		struct stat st;
		if (!is_id(e->d_name) || is_known(*list, *n, e->d_name) || fstatat(dirfd(d), e->d_name, &st, 0) < 0)
			continue;
		struct found *bigger = realloc(*list, (*n + 1) * sizeof(**list));
		char *id = strdup(e->d_name);
		if (bigger)
			*list = bigger;
		if (!bigger || !id) {
			free(id);
			return -ENOMEM;
		}
		(*list)[(*n)++] = (struct found){id, st.st_mtim};
	}
	return 0;
}

int dmig_control_list(char ***ret_ids, struct dmig_error **err)
{
	struct found *list = NULL;
	size_t n = 0;
	int r = collect(dmig_run_dir(), &list, &n);
	if (r == 0)
		r = collect(dmig_state_dir(), &list, &n);
	char **ids = r == 0 ? calloc(n + 1, sizeof(*ids)) : NULL;
	if (n)
		qsort(list, n, sizeof(*list), newest_first);
	for (size_t i = 0; i < n; i++) {
		if (ids)
			ids[i] = list[i].id;
		else
			free(list[i].id);
	}
	free(list);
	if (!ids)
		return dmig_error_set(err, r ? -r : ENOMEM, "cannot list migrations: %s", strerror(r ? -r : ENOMEM));
	*ret_ids = ids;
	return 0;
}

void dmig_control_free_list(char **ids)
{
	for (size_t i = 0; ids && ids[i]; i++)
		free(ids[i]);
	free(ids);
}

int dmig_control_report(const char *id, char **ret_json, struct dmig_error **err)
{
	if (!is_id(id))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "%s is not the id of a migration", id);
	cleanup_free char *path = dmig_asprintf("%s/%s/report.json", dmig_state_dir(), id);
	if (!path)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = dmig_read_file(path, 4 << 20, ret_json, NULL);
	if (r < 0)
		return dmig_error_set(err, -r, "no report of migration %s here: %s", id, strerror(-r));
	return 0;
}
