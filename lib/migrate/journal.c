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
#include "util/log.h"
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

/* A crash or a full disk can leave half a line: what comes next must not become a part of it. */
static bool is_torn(int fd, off_t size)
{
	char last;
	return size > 0 && (pread(fd, &last, 1, size - 1) != 1 || last != '\n');
}

/* All of it or nothing: a decision that was reported as not written must not be found later. */
static int write_line(int fd, const char *line, bool sync)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	int r = dmig_write_full(fd, line, strlen(line));
	if (r == 0 && sync && fdatasync(fd) < 0)
		r = -errno;
	if (r < 0 && ftruncate(fd, st.st_size) < 0)
		log_error("a journal keeps half a record: %m");
	return r;
}

static int append(struct dmig_journal *j, json_t *record, bool sync, struct dmig_error **err)
{
	struct stat st;
	cleanup_free char *text = json_dumps(record, JSON_COMPACT);
	const char *before = fstat(j->fd, &st) == 0 && is_torn(j->fd, st.st_size) ? "\n" : "";
	cleanup_free char *line = text ? dmig_asprintf("%s%s\n", before, text) : NULL;
	json_decref(record);
	if (!line)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = write_line(j->fd, line, sync);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot write the journal in %s/%s: %s", dmig_state_dir(), j->id, strerror(-r));
	return 0;
}

int dmig_journal_add(struct dmig_journal *j, json_t *record, struct dmig_error **err)
{
	pthread_mutex_lock(&j->lock);
	int r = append(j, record, true, err);
	pthread_mutex_unlock(&j->lock);
	return r;
}

int dmig_journal_note(struct dmig_journal *j, const char *rec, struct dmig_error **err)
{
	pthread_mutex_lock(&j->lock);
	int r = append(j, json_pack("{s:s}", "rec", rec), false, err);
	pthread_mutex_unlock(&j->lock);
	return r;
}

int dmig_journal_read(struct dmig_journal *j, json_t **ret, struct dmig_error **err)
{
	cleanup_free char *path = dmig_asprintf("%s/%s/journal", dmig_state_dir(), j->id);
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = path ? dmig_read_file(path, MAX_BYTES, &text, &len) : -ENOMEM;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read the journal of %s: %s", j->id, strerror(-r));
	json_t *list = json_array();
	if (!list)
		return dmig_error_set(err, ENOMEM, "out of memory");
	char *save = NULL;
	for (size_t i = 0; i < len; i++)
		if (text[i] == '\0') /* a block that a power cut left without its contents: no end of the file */
			text[i] = '\n';
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *rec = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		if (json_is_object(rec))
			json_array_append(list, rec);
		json_decref(rec);
	}
	*ret = list;
	return 0;
}

static int has(struct dmig_journal *j, const char *rec, struct dmig_error **err)
{
	json_t *list = NULL, *r;
	size_t i;
	int found = dmig_journal_read(j, &list, err);
	json_array_foreach(list, i, r) {
		const char *kind = json_string_value(json_object_get(r, "rec"));
		if (kind && !strcmp(kind, rec))
			found = 1;
	}
	json_decref(list);
	return found;
}

int dmig_journal_has(struct dmig_journal *j, const char *rec)
{
	cleanup_error struct dmig_error *error = NULL;
	pthread_mutex_lock(&j->lock);
	int found = has(j, rec, &error);
	pthread_mutex_unlock(&j->lock);
	if (found < 0)
		log_error("%s", error ? error->message : "journal");
	return found;
}

int dmig_journal_decide(struct dmig_journal *j, const char *rec, const char *against, struct dmig_error **err)
{
	pthread_mutex_lock(&j->lock);
	int other = has(j, against, err);
	int r = other == 0 ? has(j, rec, err) : other > 0 ? 0 : other;
	if (other == 0 && r == 0)
		r = append(j, json_pack("{s:s}", "rec", rec), true, err) < 0 ? -EIO : 1;
	pthread_mutex_unlock(&j->lock);
	return r;
}
