/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

#define ID_LEN 64      /* hexadecimal digits of an id or a SHA-256 */
#define MAX_NAME 255   /* what a file name can hold: volumes are folders */
#define MAX_IMAGE 4096 /* registry/path:tag@digest */
#define MAX_PATH 4095  /* PATH_MAX without its NUL */

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool dmig_docker__is_id(const char *s)
{
	size_t n = 0;
	while (n <= ID_LEN && is_hex(s[n]))
		n++;
	return n == ID_LEN && s[n] == '\0';
}

bool dmig_docker__is_digest(const char *s)
{
	return !strncmp(s, "sha256:", 7) && dmig_docker__is_id(s + 7);
}

static bool all_of(const char *s, const char *extra, size_t max)
{
	size_t n = 0;
	for (; s[n]; n++)
		if (n >= max || (!is_alnum(s[n]) && !strchr(extra, s[n])))
			return false;
	return n > 0;
}

bool dmig_docker__is_name(const char *s)
{
	return is_alnum(s[0]) && all_of(s, "_.-", MAX_NAME);
}

bool dmig_docker__is_image_name(const char *s)
{
	return is_alnum(s[0]) && all_of(s, "_.-/:@", MAX_IMAGE) && !strstr(s, "..");
}

/* Docker itself allows nearly everything here; nothing that could break a line or a message. */
bool dmig_docker__is_network_name(const char *s)
{
	size_t n = strnlen(s, MAX_NAME + 1);
	if (n == 0 || n > MAX_NAME || !is_alnum(s[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 127)
			return false;
	return true;
}

bool dmig_docker__is_path(const char *s)
{
	size_t n = strnlen(s, MAX_PATH + 1);
	if (s[0] != '/' || n > MAX_PATH)
		return false;
	for (const char *p = s; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 127)
			return false;
		if (*p == '/' && p[1] == '.' && p[2] == '.' && (p[3] == '/' || p[3] == '\0'))
			return false;
	}
	return true;
}

char *dmig_docker__clean_path(const char *path)
{
	char *out = malloc(strlen(path) + 2), *o = out;
	if (!out)
		return NULL;
	for (const char *p = path; *p;) {
		while (*p == '/')
			p++;
		size_t n = strcspn(p, "/");
		if (n == 0 || (n == 1 && *p == '.')) {
			p += n;
			continue;
		}
		*o++ = '/';
		memcpy(o, p, n);
		o += n;
		p += n;
	}
	if (o == out)
		*o++ = '/';
	*o = '\0';
	return out;
}

bool dmig_docker__below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	if (n == 1 && dir[0] == '/')
		return path[0] == '/';
	return !strncmp(path, dir, n) && (path[n] == '\0' || path[n] == '/');
}
