/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "docker/internal.h"
#include "util/io.h"

/*
 * `docker save` writes a tar archive: manifest.json names configuration and layers, layers are ID/layer.tar
 * (a symbolic link where the same layer comes twice) up to Docker 24 and blobs/sha256/DIGEST after that.
 * manifest.json stands behind the layers, so: first walk over the headers, then decide, then move what stays
 * towards the front of the file.
 */

#define BLOCK 512u
#define MAX_ENTRIES 65536            /* an image has at most 127 layers, four entries each */
#define MAX_TEXT (4u << 20)          /* bytes of manifest.json and of one extended header */
#define MAX_NAME_LEN 4096            /* bytes; also of a link's target */
#define MAX_SIZE ((uint64_t)1 << 46) /* bytes of one entry: 64 TiB, and sums do not overflow */

struct entry {
	char *name, *link; /* link: NULL unless it is one */
	uint64_t start;    /* of its first header, long names and such included */
	uint64_t data, size, end;
	bool drop;
};

struct archive {
	int fd;
	uint64_t size;
	struct entry *entries;
	size_t n;
	struct dmig_error **err;
};

static int bad(const struct archive *a, const char *what)
{
	return dmig_error_set(a->err, EBADMSG, "archive of the image: %s", what);
}

static int read_at(const struct archive *a, uint64_t at, void *buf, size_t len)
{
	char *p = buf;
	while (len) {
		ssize_t n = pread(a->fd, p, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return dmig_error_set(a->err, errno, "archive of the image: %m");
		if (n == 0)
			return bad(a, "it ends too early");
		p += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

/* Octal digits, or since GNU tar big-endian binary with the highest bit set. */
static int number(const unsigned char *p, size_t len, uint64_t *ret)
{
	uint64_t n = 0;
	if (p[0] & 0x80) {
		for (size_t i = 1; i < len; i++) {
			if (n >> 50)
				return -EBADMSG;
			n = n << 8 | p[i];
		}
		*ret = n;
		return (p[0] & 0x7f) ? -EBADMSG : 0;
	}
	size_t i = 0;
	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
		n = n << 3 | (uint64_t)(p[i] - '0');
	if (i < len && p[i] != '\0' && p[i] != ' ')
		return -EBADMSG;
	*ret = n;
	return 0;
}

static bool checksum_right(const unsigned char *h)
{
	uint64_t wanted = 0, sum = 0;
	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : h[i];
	return number(h + 148, 8, &wanted) == 0 && wanted == sum;
}

static char *field(const unsigned char *p, size_t len)
{
	return strndup((const char *)p, len);
}

/* ustar splits a long name in two. */
static char *header_name(const unsigned char *h)
{
	cleanup_free char *name = field(h, 100), *prefix = field(h + 345, 155);
	if (!name || !prefix)
		return NULL;
	if (memcmp(h + 257, "ustar", 5) || h[262] != '\0' ||
		!*prefix) /* GNU's own format has other things there */
		return strdup(name);
	return dmig_asprintf("%s/%s", prefix, name);
}

/* What extended headers say about the entry that follows them. */
struct extended {
	char *name, *link;
	uint64_t size;
	bool has_size;
};

static void extended_clear(struct extended *x)
{
	free(x->name);
	free(x->link);
	*x = (struct extended){0};
}

static int replace(char **slot, const char *text, size_t len)
{
	if (len > MAX_NAME_LEN)
		return -EBADMSG;
	free(*slot);
	*slot = strndup(text, len);
	return *slot ? 0 : -ENOMEM;
}

static int pax_record(struct extended *x, const char *key, size_t key_len, const char *value, size_t len)
{
	if (key_len == 4 && !memcmp(key, "path", 4))
		return replace(&x->name, value, len);
	if (key_len == 8 && !memcmp(key, "linkpath", 8))
		return replace(&x->link, value, len);
	if (key_len != 4 || memcmp(key, "size", 4))
		return 0;
	x->size = 0;
	x->has_size = true;
	for (size_t i = 0; i < len; i++) {
		if (value[i] < '0' || value[i] > '9' || x->size > MAX_SIZE)
			return -EBADMSG;
		x->size = x->size * 10 + (uint64_t)(value[i] - '0');
	}
	return 0;
}

/* "LENGTH KEY=VALUE\n" again and again; LENGTH counts all of it. */
static int pax_records(struct extended *x, const char *p, size_t len)
{
	while (len) {
		size_t n = 0, i = 0;
		for (; i < len && p[i] >= '0' && p[i] <= '9' && n < MAX_TEXT; i++)
			n = n * 10 + (size_t)(p[i] - '0');
		if (i == 0 || i >= len || p[i] != ' ' || n > len || n < i + 3 || p[n - 1] != '\n')
			return -EBADMSG;
		const char *key = p + i + 1, *equals = memchr(key, '=', n - i - 2);
		if (!equals)
			return -EBADMSG;
		int r = pax_record(
			x, key, (size_t)(equals - key), equals + 1, (size_t)(p + n - 1 - equals - 1));
		if (r < 0)
			return r;
		p += n;
		len -= n;
	}
	return 0;
}

static int read_text(const struct archive *a, uint64_t at, uint64_t size, char **ret)
{
	if (size > MAX_TEXT || size > a->size || at > a->size - size)
		return bad(a, "a header or manifest.json is too long");
	char *text = malloc(size + 1);
	if (!text)
		return dmig_docker__oom(a->err);
	int r = read_at(a, at, text, size);
	if (r < 0) {
		free(text);
		return r;
	}
	text[size] = '\0';
	*ret = text;
	return 0;
}

/* 'x': POSIX records, 'L' and 'K': GNU's long name and long link, 'g': for all that follow, of no interest.
 */
static int read_extended(const struct archive *a, char type, uint64_t at, uint64_t size, struct extended *x)
{
	cleanup_free char *text = NULL;
	int r = read_text(a, at, size, &text);
	if (r < 0)
		return r;
	if (type == 'x')
		r = pax_records(x, text, size);
	else if (type == 'L')
		r = replace(&x->name, text, strlen(text));
	else if (type == 'K')
		r = replace(&x->link, text, strlen(text));
	if (r == -EBADMSG)
		return bad(a, "an extended header is wrong");
	return r < 0 ? dmig_docker__oom(a->err) : 0;
}

static int add_entry(struct archive *a, const unsigned char *h, struct extended *x, const struct entry *place)
{
	if (a->n == MAX_ENTRIES)
		return bad(a, "too many entries");
	if ((a->n & (a->n - 1)) == 0) { /* at powers of two */
		struct entry *more = realloc(a->entries, (a->n ? a->n * 2 : 1) * sizeof(*more));
		if (!more)
			return dmig_docker__oom(a->err);
		a->entries = more;
	}
	struct entry e = *place;
	bool is_link = h[156] == '1' || h[156] == '2';
	e.name = x->name ? steal_ptr(&x->name) : header_name(h);
	if (is_link)
		e.link = x->link ? steal_ptr(&x->link) : field(h + 157, 100);
	a->entries[a->n++] = e;
	return e.name && (!is_link || e.link) ? 0 : dmig_docker__oom(a->err);
}

/* One header at *at, and its data. 1: an entry or part of one, 0: the end mark. */
static int next(struct archive *a, uint64_t *at, uint64_t *start, struct extended *x)
{
	static const unsigned char zero[BLOCK];
	unsigned char h[BLOCK];
	int r = read_at(a, *at, h, BLOCK);
	if (r < 0 || !memcmp(h, zero, BLOCK))
		return r;
	struct entry e = {.start = *start, .data = *at + BLOCK};
	if (!checksum_right(h) || number(h + 124, 12, &e.size) < 0)
		return bad(a, "a header is wrong");
	bool extends = strchr("xgLK", h[156]) && h[156];
	if (!extends && x->has_size)
		e.size = x->size;
	if (e.size > MAX_SIZE || e.size > a->size || e.data > a->size - e.size)
		return bad(a, "an entry is longer than the archive");
	e.end = e.data + (e.size + BLOCK - 1) / BLOCK * BLOCK;
	*at = e.end;
	if (extends) {
		r = read_extended(a, (char)h[156], e.data, e.size, x);
		return r < 0 ? r : 1;
	}
	r = add_entry(a, h, x, &e);
	extended_clear(x);
	*start = e.end;
	return r < 0 ? r : 1;
}

static int scan(struct archive *a)
{
	struct extended x = {0};
	uint64_t at = 0, start = 0;
	int r = 1;
	while (r == 1 && at + BLOCK <= a->size)
		r = next(a, &at, &start, &x);
	extended_clear(&x);
	return r < 0 ? r : 0;
}

static struct entry *find(const struct archive *a, const char *name)
{
	if (!strncmp(name, "./", 2))
		name += 2;
	for (size_t i = 0; i < a->n; i++) {
		const char *other = a->entries[i].name;
		if (!strncmp(other, "./", 2))
			other += 2;
		if (!strcmp(other, name))
			return &a->entries[i];
	}
	return NULL;
}

/* The entry that holds a layer's bytes: a link "../ID/layer.tar" leads to it. */
static struct entry *contents(const struct archive *a, const char *name)
{
	struct entry *e = find(a, name);
	if (e && e->link)
		e = find(a, !strncmp(e->link, "../", 3) ? e->link + 3 : e->link);
	return e && !e->link ? e : NULL;
}

/* Layers of the only image in manifest.json, bottom first. */
static int layer_names(const struct archive *a, json_t **ret)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *root = NULL;
	struct entry *e = find(a, "manifest.json");
	int r = e ? read_text(a, e->data, e->size, &text) : bad(a, "it has no manifest.json");
	if (r == 0)
		r = dmig_docker__json("manifest.json", text, e->size, MAX_TEXT, &root, a->err);
	if (r < 0)
		return r;
	json_t *layers = json_object_get(json_array_get(root, 0), "Layers");
	if (json_array_size(root) != 1 || !json_is_array(layers))
		return bad(a, "manifest.json does not describe one image");
	*ret = json_incref(layers);
	return 0;
}

/* Drop first, then take back what an upper layer needs as well. */
static void mark(const struct archive *a, const json_t *layers, size_t skip)
{
	json_t *v;
	size_t i;
	json_array_foreach(layers, i, v)
	{
		struct entry *e = json_is_string(v) ? contents(a, json_string_value(v)) : NULL;
		if (e)
			e->drop = i < skip;
	}
}

static int move(const struct archive *a, uint64_t from, uint64_t to, uint64_t len)
{
	cleanup_free char *buf = malloc(1 << 20);
	if (!buf)
		return dmig_docker__oom(a->err);
	while (len && from != to) {
		size_t n = len < (1 << 20) ? (size_t)len : 1 << 20;
		int r = read_at(a, from, buf, n);
		if (r == 0)
			r = dmig_pwrite_full(a->fd, buf, n, to);
		if (r < 0)
			return dmig_error_set(a->err, -r, "archive of the image: %s", strerror(-r));
		from += n;
		to += n;
		len -= n;
	}
	return 0;
}

static int compact(struct archive *a)
{
	static const char end_mark[2 * BLOCK];
	uint64_t to = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < a->n; i++) {
		const struct entry *e = &a->entries[i];
		if (e->drop)
			continue;
		if (e->end > a->size)
			return bad(a, "it ends too early");
		r = move(a, e->start, to, e->end - e->start);
		to += e->end - e->start;
	}
	if (r < 0)
		return r;
	r = dmig_pwrite_full(a->fd, end_mark, sizeof(end_mark), to);
	if (r == 0 && ftruncate(a->fd, (off_t)(to + sizeof(end_mark))) < 0)
		r = -errno;
	return r < 0 ? dmig_error_set(a->err, -r, "archive of the image: %s", strerror(-r)) : 0;
}

int dmig_docker__tar_drop_layers(int fd, size_t skip, struct dmig_error **err)
{
	cleanup_json json_t *layers = NULL;
	struct archive a = {.fd = fd, .err = err};
	off_t size = lseek(fd, 0, SEEK_END);
	if (size < 0)
		return dmig_error_set(err, errno, "archive of the image: %m");
	a.size = (uint64_t)size;
	int r = scan(&a);
	if (r == 0)
		r = layer_names(&a, &layers);
	if (r == 0) {
		mark(&a, layers, skip);
		r = compact(&a);
	}
	for (size_t i = 0; i < a.n; i++) {
		free(a.entries[i].name);
		free(a.entries[i].link);
	}
	free(a.entries);
	return r;
}
