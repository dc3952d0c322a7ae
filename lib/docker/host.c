/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "docker/internal.h"
#include "util/io.h"

/* What the Engine does not tell: read from the kernel and from where Docker keeps its files. */

#define MAX_MOUNTINFO (16u << 20) /* bytes; a host with thousands of containers stays below 4 MiB */

/* Undo the kernel's octal escapes (space, tab, newline, backslash, comma) in place. */
static void unescape(char *s)
{
	char *o = s;
	for (; *s; s++) {
		bool octal = s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
			     s[3] >= '0' && s[3] <= '7';
		if (octal) {
			*o++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*o++ = *s;
		}
	}
	*o = '\0';
}

/* The n-th word (from 0) of a line, or NULL. */
static const char *word(const char *p, const char *end, int n, size_t *ret_len)
{
	for (; p < end; n--) {
		const char *stop = memchr(p, ' ', (size_t)(end - p));
		if (!stop)
			stop = end;
		if (n == 0) {
			*ret_len = (size_t)(stop - p);
			return p;
		}
		p = stop + 1;
	}
	return NULL;
}

static int option_upperdir(const char *options, size_t len, char **ret)
{
	static const char key[] = "upperdir=";
	const char *end = options + len;
	for (const char *p = options; p < end;) {
		const char *stop = memchr(p, ',', (size_t)(end - p));
		if (!stop)
			stop = end;
		size_t n = (size_t)(stop - p);
		if (n > sizeof(key) - 1 && !memcmp(p, key, sizeof(key) - 1)) {
			*ret = strndup(p + sizeof(key) - 1, n - (sizeof(key) - 1));
			if (!*ret)
				return -ENOMEM;
			unescape(*ret);
			return 0;
		}
		p = stop + 1;
	}
	return -EOPNOTSUPP;
}

/* ID PARENT MAJ:MIN ROOT MOUNTPOINT OPTIONS [tag...] - TYPE SOURCE SUPEROPTIONS */
static int line_upperdir(const char *line, const char *end, char **ret)
{
	size_t len = 0;
	const char *point = word(line, end, 4, &len);
	if (!point || len != 1 || *point != '/')
		return -ENOENT;
	const char *dash = memmem(point, (size_t)(end - point), " - ", 3);
	const char *type = dash ? word(dash + 3, end, 0, &len) : NULL;
	if (!type || len != 7 || memcmp(type, "overlay", 7))
		return -EOPNOTSUPP;
	const char *options = word(dash + 3, end, 2, &len);
	return options ? option_upperdir(options, len, ret) : -EOPNOTSUPP;
}

int dmig_docker__mountinfo_upper(const char *text, size_t len, char **ret)
{
	int found = -EOPNOTSUPP;
	char *upper = NULL;
	const char *end = text + len;
	for (const char *p = text; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		if (!stop)
			stop = end;
		char *one = NULL;
		int r = line_upperdir(p, stop, &one);
		if (r != -ENOENT) { /* a later mount at / covers an earlier one */
			free(upper);
			upper = one;
			found = r;
		}
		p = stop + 1;
	}
	if (found == 0)
		*ret = upper;
	return found;
}

/* Docker gives relative paths when the options would not fit a page: below ROOT/overlay2, where its helper
 * stands. */
static int absolute(const struct dmig_docker *d, char **path)
{
	if (**path == '/')
		return 0;
	char *full = dmig_asprintf("%s/%s/%s", d->root_dir, d->driver, *path);
	if (!full)
		return -ENOMEM;
	free(*path);
	*path = full;
	return 0;
}

int dmig_docker_upper_dir(struct dmig_docker *d, pid_t pid, char **ret, struct dmig_error **err)
{
	char name[64];
	cleanup_free char *text = NULL, *upper = NULL;
	size_t len = 0;
	struct stat st;
	snprintf(name, sizeof(name), "/proc/%d/mountinfo", (int)pid);
	int r = dmig_read_file(name, MAX_MOUNTINFO, &text, &len);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read %s: %s", name, strerror(-r));
	r = dmig_docker__mountinfo_upper(text, len, &upper);
	if (r == -EOPNOTSUPP)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EOPNOTSUPP,
			"storage driver %s: the container's root is no overlay with a writable layer",
			d->driver);
	if (r == 0)
		r = absolute(d, &upper);
	if (r < 0)
		return dmig_docker__oom(err);
	if (stat(upper, &st) < 0)
		return dmig_error_set(err, errno, "the writable layer %s: %m", upper);
	if (!S_ISDIR(st.st_mode))
		return dmig_error_set(err, ENOTDIR, "the writable layer %s is no folder", upper);
	*ret = steal_ptr(&upper);
	return 0;
}

int dmig_docker_log_file(
	struct dmig_docker *d, const struct dmig_container *c, char **ret, struct dmig_error **err)
{
	if (strcmp(c->log_driver, "json-file"))
		return dmig_error_set(
			err, EOPNOTSUPP, "log driver %s keeps no file that can move", c->log_driver);
	/* Not set before the first start. */
	*ret = c->log_path[0] ? strdup(c->log_path)
			      : dmig_asprintf("%s/containers/%s/%s-json.log", d->root_dir, c->id, c->id);
	return *ret ? 0 : dmig_docker__oom(err);
}

/* First match of a shell pattern for .../runtime-*_/NAMESPACE/ID/state.json: the folder that holds ID. */
static int match_root(const char *pattern, char **ret)
{
	glob_t g = {0};
	int r = glob(pattern, GLOB_NOSORT, NULL, &g);
	if (r != 0 || g.gl_pathc == 0) {
		globfree(&g);
		return r == GLOB_NOSPACE ? -ENOMEM : -ENOENT;
	}
	*ret = strdup(g.gl_pathv[0]);
	globfree(&g);
	if (!*ret)
		return -ENOMEM;
	for (int i = 0; i < 2; i++) /* off with /ID/state.json */
		*strrchr(*ret, '/') = '\0';
	return 0;
}

/* dockerd's --exec-root, from its command line. */
static int exec_root(char **ret)
{
	static const char option[] = "--exec-root";
	cleanup_free char *pid = NULL, *args = NULL;
	char path[64];
	size_t len = 0;
	if (dmig_read_file("/var/run/docker.pid", 32, &pid, NULL) < 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", atoi(pid));
	if (dmig_read_file(path, 1 << 20, &args, &len) < 0)
		return -ENOENT;
	for (char *p = args; p < args + len; p += strlen(p) + 1) {
		if (strncmp(p, option, sizeof(option) - 1))
			continue;
		char *value = p[sizeof(option) - 1] == '=' ? p + sizeof(option) : p + strlen(p) + 1;
		if (value >= args + len || *value != '/')
			return -ENOENT;
		*ret = strdup(value);
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

int dmig_docker_runc_root(const char *container_id, char **ret, struct dmig_error **err)
{
	cleanup_free char *own = NULL;
	if (!dmig_docker__is_id(container_id))
		return dmig_error_set(err, EINVAL, "not a container id");
	exec_root(&own);
	const char *const roots[] = {own ? own : "/run/docker", "/run/docker", "/var/run/docker", "/run/*"};
	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		/* runtime-runc/moby unless dockerd has a containerd namespace of its own. */
		cleanup_free char *pattern =
			dmig_asprintf("%s/runtime-*/*/%s/state.json", roots[i], container_id);
		int r = pattern ? match_root(pattern, ret) : -ENOMEM;
		if (r == -ENOMEM)
			return dmig_docker__oom(err);
		if (r == 0)
			return 0;
	}
	return dmig_error_set(err, ENOENT,
		"runc's state of container %.12s is not below /run/docker: is it running under runc?",
		container_id);
}
