/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire/cursor.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

void dmig_wire_put_init(struct dmig_wire_put *p, void *buf, size_t cap)
{
	*p = (struct dmig_wire_put){.buf = buf, .cap = cap};
}

void dmig_wire_put_fail(struct dmig_wire_put *p, int error)
{
	if (!p->error)
		p->error = error;
}

void dmig_wire_put_bytes(struct dmig_wire_put *p, const void *data, size_t len)
{
	if (p->error)
		return;
	if (len > p->cap - p->len) {
		p->error = EMSGSIZE;
		return;
	}
	if (len)
		memcpy(p->buf + p->len, data, len);
	p->len += len;
}

void dmig_wire_put_u8(struct dmig_wire_put *p, uint8_t v)
{
	dmig_wire_put_bytes(p, &v, sizeof(v));
}

void dmig_wire_put_u16(struct dmig_wire_put *p, uint16_t v)
{
	v = htole16(v);
	dmig_wire_put_bytes(p, &v, sizeof(v));
}

void dmig_wire_put_u32(struct dmig_wire_put *p, uint32_t v)
{
	v = htole32(v);
	dmig_wire_put_bytes(p, &v, sizeof(v));
}

void dmig_wire_put_u64(struct dmig_wire_put *p, uint64_t v)
{
	v = htole64(v);
	dmig_wire_put_bytes(p, &v, sizeof(v));
}

void dmig_wire_put_string(struct dmig_wire_put *p, const char *s, size_t max)
{
	size_t len = s ? strlen(s) : 0;
	if (len > max || len > UINT16_MAX) {
		dmig_wire_put_fail(p, EINVAL);
		return;
	}
	dmig_wire_put_u16(p, (uint16_t)len);
	dmig_wire_put_bytes(p, s, len);
	dmig_wire_put_u8(p, 0);
}

ssize_t dmig_wire_put_done(const struct dmig_wire_put *p)
{
	return p->error ? -p->error : (ssize_t)p->len;
}

void dmig_wire_get_init(struct dmig_wire_get *g, const void *data, size_t len)
{
	/* An empty payload may have no address; one is needed to count from. */
	*g = (struct dmig_wire_get){.data = data ? data : (const void *)"", .len = len};
}

void dmig_wire_get_fail(struct dmig_wire_get *g, const char *problem)
{
	if (!g->problem)
		g->problem = problem;
}

size_t dmig_wire_get_left(const struct dmig_wire_get *g)
{
	return g->problem ? 0 : g->len - g->pos;
}

/* The next len bytes, or NULL. */
static const uint8_t *take(struct dmig_wire_get *g, size_t len)
{
	if (g->problem)
		return NULL;
	if (len > g->len - g->pos) {
		g->problem = "too short";
		return NULL;
	}
	const uint8_t *at = g->data + g->pos;
	g->pos += len;
	return at;
}

uint8_t dmig_wire_get_u8(struct dmig_wire_get *g)
{
	const uint8_t *at = take(g, 1);
	return at ? *at : 0;
}

uint16_t dmig_wire_get_u16(struct dmig_wire_get *g)
{
	uint16_t v = 0;
	const uint8_t *at = take(g, sizeof(v));
	if (at)
		memcpy(&v, at, sizeof(v));
	return le16toh(v);
}

uint32_t dmig_wire_get_u32(struct dmig_wire_get *g)
{
	uint32_t v = 0;
	const uint8_t *at = take(g, sizeof(v));
	if (at)
		memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

uint64_t dmig_wire_get_u64(struct dmig_wire_get *g)
{
	uint64_t v = 0;
	const uint8_t *at = take(g, sizeof(v));
	if (at)
		memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

const void *dmig_wire_get_bytes(struct dmig_wire_get *g, size_t len)
{
	const uint8_t *at = take(g, len);
	return at ? (const void *)at : "";
}

const char *dmig_wire_get_string(struct dmig_wire_get *g, size_t max)
{
	size_t len = dmig_wire_get_u16(g);
	if (len > max)
		dmig_wire_get_fail(g, "text is too long");
	const char *s = (const char *)take(g, len + 1);
	if (s && (s[len] != '\0' || memchr(s, '\0', len)))
		dmig_wire_get_fail(g, "NUL in a text, or none behind it");
	return s && !g->problem ? s : "";
}

int dmig_wire_get_done(struct dmig_wire_get *g, const char *what, struct dmig_error **err)
{
	if (!g->problem && g->pos != g->len)
		g->problem = "too long";
	if (g->problem)
		return dmig_error_set(err, EPROTO, "bad message %s: %s", what, g->problem);
	return 0;
}
