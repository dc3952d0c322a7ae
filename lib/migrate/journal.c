/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "migrate/control.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/paths.h"
#include "wire/proto.h"

/* A journal has some tens of records; more than this is not ours. */
#define MAX_BYTES (4u << 20)

struct dmig_journal {
	char id[DMIG_WIRE_ID_LEN + 1];
	int fd;
	pthread_mutex_t lock; /* one append or decision at a time */
};

static int open_file(const char *id, int flags, struct dmig_journal **ret, struct dmig_error **err)
{
	cleanup_free char *path = dmig_asprintf("%s/%s/journal", dmig_state_dir(), id);
	struct dmig_journal *j = calloc(1, sizeof(*j));
	if (!path || !j) {
		free(j);
		return dmig_error_set(err, ENOMEM, "out of memory");
	}
	snprintf(j->id, sizeof(j->id), "%s", id);
	pthread_mutex_init(&j->lock, NULL);
	j->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | flags, 0600);
	if (j->fd < 0 || flock(j->fd, LOCK_EX | LOCK_NB) < 0) {
		int e = errno == EWOULDBLOCK ? EBUSY : errno;
		dmig_journal_free(j);
		return dmig_error_set(err, e, "journal %s: %s", path, strerror(e));
	}
	*ret = j;
	return 0;
}

int dmig_journal_create(const char *id, struct dmig_journal **ret, struct dmig_error **err)
{
	cleanup_free char *dir = dmig_asprintf("%s/%s", dmig_state_dir(), id);
	int r = dir ? dmig_mkdir_p(dmig_state_dir(), 0700) : -ENOMEM;
	if (r == 0)
		r = mkdir(dir, 0700) < 0 ? -errno : 0;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot create %s/%s: %s", dmig_state_dir(), id, strerror(-r));
	return open_file(id, O_CREAT | O_EXCL, ret, err);
}

int dmig_journal_open(const char *id, struct dmig_journal **ret, struct dmig_error **err)
{
	return open_file(id, 0, ret, err);
}

void dmig_journal_free(struct dmig_journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0)
		close(j->fd);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

const char *dmig_journal_id(const struct dmig_journal *j)
{
	return j->id;
}

static int append(struct dmig_journal *j, json_t *record, struct dmig_error **err)
{
	cleanup_free char *text = json_dumps(record, JSON_COMPACT);
	cleanup_free char *line = text ? dmig_asprintf("%s\n", text) : NULL;
	json_decref(record);
	if (!line)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = dmig_write_full(j->fd, line, strlen(line));
	if (r == 0 && fdatasync(j->fd) < 0)
		r = -errno;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot write the journal in %s/%s: %s", dmig_state_dir(), j->id, strerror(-r));
	return 0;
}

int dmig_journal_add(struct dmig_journal *j, json_t *record, struct dmig_error **err)
{
	pthread_mutex_lock(&j->lock);
	int r = append(j, record, err);
	pthread_mutex_unlock(&j->lock);
	return r;
}

int dmig_journal_read(struct dmig_journal *j, json_t **ret, struct dmig_error **err)
{
	cleanup_free char *path = dmig_asprintf("%s/%s/journal", dmig_state_dir(), j->id);
	cleanup_free char *text = NULL;
	int r = path ? dmig_read_file(path, MAX_BYTES, &text, NULL) : -ENOMEM;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read the journal of %s: %s", j->id, strerror(-r));
	json_t *list = json_array();
	char *save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *rec = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		if (json_is_object(rec))
			json_array_append(list, rec);
		json_decref(rec);
	}
	*ret = list;
	return 0;
}

static bool has(struct dmig_journal *j, const char *rec)
{
	json_t *list = NULL, *r;
	size_t i;
	bool found = false;
	if (dmig_journal_read(j, &list, NULL) < 0)
		return false;
	json_array_foreach(list, i, r) {
		const char *kind = json_string_value(json_object_get(r, "rec"));
		found = found || (kind && !strcmp(kind, rec));
	}
	json_decref(list);
	return found;
}

bool dmig_journal_has(struct dmig_journal *j, const char *rec)
{
	pthread_mutex_lock(&j->lock);
	bool found = has(j, rec);
	pthread_mutex_unlock(&j->lock);
	return found;
}

int dmig_journal_decide(struct dmig_journal *j, const char *rec, const char *against, struct dmig_error **err)
{
	int r;
	pthread_mutex_lock(&j->lock);
	if (has(j, against))
		r = 0;
	else if (has(j, rec))
		r = 1;
	else
		r = append(j, json_pack("{s:s}", "rec", rec), err) < 0 ? -EIO : 1;
	pthread_mutex_unlock(&j->lock);
	return r;
}
