/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire/check.h"

#include <stdint.h>
#include <string.h>

#include "wire/proto.h"

static bool is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* Bytes of the character at s (at most len bytes may be read), or 0 if it is none. len > 0. */
static size_t utf8_len(const unsigned char *s, size_t len)
{
	if (s[0] < 0x80)
		return s[0] != 0;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		return len >= 2 && is_tail(s[1]) ? 2 : 0;
	if (s[0] >= 0xe0 && s[0] <= 0xef) {
		if (len < 3 || !is_tail(s[1]) || !is_tail(s[2]))
			return 0;
		bool overlong = s[0] == 0xe0 && s[1] < 0xa0;
		bool surrogate = s[0] == 0xed && s[1] > 0x9f;
		return overlong || surrogate ? 0 : 3;
	}
	if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		if (len < 4 || !is_tail(s[1]) || !is_tail(s[2]) || !is_tail(s[3]))
			return 0;
		bool overlong = s[0] == 0xf0 && s[1] < 0x90;
		bool too_high = s[0] == 0xf4 && s[1] > 0x8f;
		return overlong || too_high ? 0 : 4;
	}
	return 0;
}

bool dmig_wire_utf8_ok(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	for (size_t i = 0; i < len;) {
		size_t n = utf8_len(p + i, len - i);
		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

/* C0, DEL, and C1 (U+0080 to U+009F, which some terminals obey). */
static bool is_control(const unsigned char *s, size_t n)
{
	if (n == 1)
		return s[0] < 0x20 || s[0] == 0x7f;
	return n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

bool dmig_wire_text_ok(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	for (size_t i = 0; i < len;) {
		size_t n = utf8_len(p + i, len - i);
		if (n == 0 || is_control(p + i, n))
			return false;
		i += n;
	}
	return true;
}

void dmig_wire_text_clean(const char *from, char *to, size_t size)
{
	const unsigned char *p = (const unsigned char *)from;
	size_t left = strlen(from), out = 0;
	while (left) {
		size_t n = utf8_len(p, left);
		size_t step = n ? n : 1;
		bool plain = n && !is_control(p, n);
		size_t need = plain ? n : 1;
		if (out + need + 1 > size)
			break;
		if (plain)
			memcpy(to + out, p, n);
		else
			to[out] = n ? ' ' : '?';
		out += need;
		p += step;
		left -= step;
	}
	to[out] = '\0';
}

static bool component_ok(const char *s, size_t len)
{
	return len > 0 && !(len == 1 && s[0] == '.') && !(len == 2 && s[0] == '.' && s[1] == '.');
}

bool dmig_wire_path_ok(const char *path)
{
	if (strlen(path) > DMIG_WIRE_MAX_PATH)
		return false;
	for (;;) {
		size_t len = strcspn(path, "/");
		if (!component_ok(path, len))
			return false;
		if (path[len] == '\0')
			return true;
		path += len + 1;
	}
}

bool dmig_wire_absolute_path_ok(const char *path)
{
	return path[0] == '/' && dmig_wire_path_ok(path + 1);
}

bool dmig_wire_id_ok(const char *id)
{
	return strspn(id, "0123456789abcdef") == DMIG_WIRE_ID_LEN && id[DMIG_WIRE_ID_LEN] == '\0';
}
