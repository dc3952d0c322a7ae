/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "criu/cgroup-path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/io.h"

/* Takes the next line off *text; not NUL-terminated. */
static bool next_line(const char **text, const char **ret_line, size_t *ret_len)
{
	if (!**text)
		return false;
	*ret_line = *text;
	*ret_len = strcspn(*text, "\n");
	*text += *ret_len + ((*text)[*ret_len] == '\n');
	return true;
}

/* Is word an element of the comma list? */
static bool in_list(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);
	while (len) {
		const char *comma = memchr(list, ',', len);
		size_t item = comma ? (size_t)(comma - list) : len;
		if (item == n && memcmp(list, word, n) == 0)
			return true;
		list += item + (comma != NULL);
		len -= item + (comma != NULL);
	}
	return false;
}

/* A path that leaves the reader's cgroup namespace ("/../x") or is no path cannot be used. */
static bool usable_path(const char *path, size_t len)
{
	if (len == 0 || path[0] != '/' || len >= PATH_MAX)
		return false;
	for (size_t i = 0; i + 3 <= len; i++)
		if (memcmp(path + i, "/..", 3) == 0 && (i + 3 == len || path[i + 3] == '/'))
			return false;
	return true;
}

/* "ID:CONTROLLERS:PATH"; v2 is "0::PATH". */
char *dmig_cgroup_path_in(const char *proc_cgroup, bool v2)
{
	const char *line;
	size_t len;
	while (next_line(&proc_cgroup, &line, &len)) {
		const char *end = line + len;
		const char *list = memchr(line, ':', len);
		const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
		if (!path)
			continue;
		size_t list_len = (size_t)(path - list - 1);
		bool mine = v2 ? list_len == 0 : in_list(list + 1, list_len, "freezer");
		path++;
		if (mine && usable_path(path, (size_t)(end - path)))
			return strndup(path, (size_t)(end - path));
	}
	return NULL;
}

/* Octal escapes of mountinfo (\040 and friends), in place. */
static void unescape(char *s)
{
	char *out = s;
	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
			s[3] <= '7') {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else
			*out++ = *s;
	}
	*out = '\0';
}

struct mount {
	char *root, *point, *type, *options;
};

/* "ID PARENT DEV ROOT POINT OPTS [TAG...] - TYPE SOURCE SUPER"; cuts line into its words. */
static bool split_mount(char *line, struct mount *ret)
{
	enum { ROOT = 3, POINT = 4, OPTIONS = 5 };
	char *save = NULL, *word = strtok_r(line, " ", &save);
	for (int i = 0; word && i <= OPTIONS; i++, word = strtok_r(NULL, " ", &save)) {
		if (i == ROOT)
			ret->root = word;
		else if (i == POINT)
			ret->point = word;
	}
	while (word && strcmp(word, "-") != 0)
		word = strtok_r(NULL, " ", &save);
	ret->type = word ? strtok_r(NULL, " ", &save) : NULL;
	char *source = ret->type ? strtok_r(NULL, " ", &save) : NULL;
	ret->options = source ? strtok_r(NULL, " ", &save) : NULL;
	if (!ret->options)
		return false;
	unescape(ret->root);
	unescape(ret->point);
	return true;
}

/* The part of path below root, or NULL if it is not below it. */
static const char *below(const char *root, const char *path)
{
	size_t n = strlen(root);
	if (strcmp(root, "/") == 0)
		return path;
	if (strncmp(root, path, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	return path + n;
}

static char *folder_in_mount(char *line, bool v2, const char *path)
{
	struct mount m = {0};
	if (!split_mount(line, &m))
		return NULL;
	bool mine = v2 ? strcmp(m.type, "cgroup2") == 0
		       : strcmp(m.type, "cgroup") == 0 && in_list(m.options, strlen(m.options), "freezer");
	const char *rest = mine ? below(m.root, path) : NULL;
	return rest ? dmig_asprintf("%s%s", m.point, rest) : NULL;
}

/* The last mount wins: it is the one that a later mount on the same place left visible. */
char *dmig_cgroup_folder(const char *mountinfo, bool v2, const char *cgroup_path)
{
	char *found = NULL;
	const char *line;
	size_t len;
	while (next_line(&mountinfo, &line, &len)) {
		cleanup_free char *copy = strndup(line, len);
		char *folder = copy ? folder_in_mount(copy, v2, cgroup_path) : NULL;
		if (!folder)
			continue;
		free(found);
		found = folder;
	}
	return found;
}
