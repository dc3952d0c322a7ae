/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon_json.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"

/* Docker's own files are some hundred bytes. */
#define MAX_BYTES (1 << 20)
#define INDENT 4 /* blanks, as in Docker's documentation */

static void json_freep(json_t **j)
{
	json_decref(*j);
}
#define cleanup_json __attribute__((cleanup(json_freep)))

/* Docker takes an empty file for an empty object. */
static int load(const char *text, json_t **ret, struct dmig_error **err)
{
	json_error_t je;
	if (text[strspn(text, " \t\r\n")] == '\0') {
		*ret = json_object();
		return *ret ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
	}
	*ret = json_loads(text, JSON_REJECT_DUPLICATES, &je);
	if (!*ret)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EINVAL,
			"not valid JSON (line %d: %s); nothing was changed", je.line, je.text);
	if (!json_is_object(*ret))
		return dmig_error_set_class(
			err, DMIG_ERR_REFUSED, EINVAL, "not a JSON object; nothing was changed");
	return 0;
}

/* 1 if root was changed. */
static int set_entry(json_t *root, const char *name, const char *path, struct dmig_error **err)
{
	json_t *runtimes = json_object_get(root, "runtimes");
	if (runtimes && !json_is_object(runtimes))
		return dmig_error_set_class(
			err, DMIG_ERR_REFUSED, EINVAL, "\"runtimes\" is not an object; nothing was changed");
	if (!path) {
		/* An empty object stays: without the key a reload would leave Docker's runtimes as they are.
		 */
		return json_object_del(runtimes, name) == 0;
	}
	if (!runtimes) {
		json_object_set_new(root, "runtimes", json_object());
		runtimes = json_object_get(root, "runtimes");
	}
	json_t *entry = json_pack("{s:s}", "path", path);
	int changed = entry && !json_equal(json_object_get(runtimes, name), entry);
	if (!entry || json_object_set_new(runtimes, name, entry) < 0)
		return dmig_error_set(err, ENOMEM, "out of memory");
	return changed;
}

int dmig_daemon_json_edit(
	const char *old, const char *name, const char *path, char **ret_text, struct dmig_error **err)
{
	cleanup_json json_t *root = NULL;
	*ret_text = NULL;
	int r = load(old, &root, err);
	if (r == 0)
		r = set_entry(root, name, path, err);
	if (r <= 0)
		return r;
	cleanup_free char *text = json_dumps(root, JSON_INDENT(INDENT) | JSON_REAL_PRECISION(17));
	*ret_text = text ? dmig_asprintf("%s\n", text) : NULL;
	return *ret_text ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

int dmig_daemon_json_open(const char *path, struct dmig_daemon_json *ret, struct dmig_error **err)
{
	char resolved[PATH_MAX];
	*ret = (struct dmig_daemon_json){.path = strdup(realpath(path, resolved) ? resolved : path)};
	ret->backup = ret->path ? dmig_asprintf("%s.before-dmigrate", ret->path) : NULL;
	if (!ret->backup)
		return dmig_error_set(err, ENOMEM, "out of memory");
	size_t len = 0;
	int r = dmig_read_file(ret->path, MAX_BYTES, &ret->old, &len);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read %s: %s", ret->path, strerror(-r));
	/* What follows a NUL would be lost. */
	if (strlen(ret->old) != len)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EINVAL,
			"%s is not valid JSON; nothing was changed", ret->path);
	return 0;
}

static int make_folder(const char *file, struct dmig_error **err)
{
	cleanup_free char *dir = strdup(file);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	int r = dmig_mkdir_p(dir, 0755);
	return r < 0 ? dmig_error_set(err, -r, "cannot make %s: %s", dir, strerror(-r)) : 0;
}

int dmig_daemon_json_write(struct dmig_daemon_json *j, const char *text, struct dmig_error **err)
{
	struct stat st = {.st_mode = 0644};
	int r = make_folder(j->path, err);
	bool exists = r == 0 && stat(j->path, &st) == 0;
	mode_t mode = st.st_mode & 07777;
	if (r == 0 && exists)
		r = dmig_write_file_atomic(
			j->backup, j->old ? j->old : "", strlen(j->old ? j->old : ""), mode, err);
	if (r == 0)
		r = dmig_write_file_atomic(j->path, text, strlen(text), mode, err);
	if (r == 0 && exists && chown(j->path, st.st_uid, st.st_gid) < 0)
		r = dmig_error_set(err, errno, "cannot give %s back to its owner: %m", j->path);
	return r;
}

int dmig_daemon_json_put_back(struct dmig_daemon_json *j, struct dmig_error **err)
{
	if (j->old)
		return dmig_daemon_json_write(j, j->old, err);
	if (unlink(j->path) < 0 && errno != ENOENT)
		return dmig_error_set(err, errno, "cannot remove %s: %m", j->path);
	return 0;
}

void dmig_daemon_json_clear(struct dmig_daemon_json *j)
{
	free(j->path);
	free(j->old);
	free(j->backup);
	*j = (struct dmig_daemon_json){0};
}
