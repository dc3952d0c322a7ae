/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/internal.h"

/* Open addressing, linear probing, at most three quarters full; power of two. */
#define FIRST_SIZE 256

struct slot {
	uint64_t dev, ino;
	char *path; /* NULL: free */
};

struct dmig_fs__links {
	struct slot *slots;
	size_t size, used;
};

struct dmig_fs__links *dmig_fs__links_new(void)
{
	struct dmig_fs__links *l = calloc(1, sizeof(*l));
	if (l)
		l->slots = calloc(FIRST_SIZE, sizeof(*l->slots));
	if (!l || !l->slots) {
		free(l);
		return NULL;
	}
	l->size = FIRST_SIZE;
	return l;
}

void dmig_fs__links_free(struct dmig_fs__links *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->size; i++)
		free(l->slots[i].path);
	free(l->slots);
	free(l);
}

static struct slot *find(struct slot *slots, size_t size, uint64_t dev, uint64_t ino)
{
	/* Neighbouring inode numbers are common: spread them (Fibonacci hashing). */
	size_t i = (size_t)(((ino ^ dev << 40) * 0x9e3779b97f4a7c15u) >> 32);
	for (;; i++) {
		struct slot *s = &slots[i & (size - 1)];
		if (!s->path || (s->ino == ino && s->dev == dev))
			return s;
	}
}

static int grow(struct dmig_fs__links *l)
{
	size_t size = l->size * 2;
	struct slot *slots = calloc(size, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < l->size; i++)
		if (l->slots[i].path)
			*find(slots, size, l->slots[i].dev, l->slots[i].ino) = l->slots[i];
	free(l->slots);
	l->slots = slots;
	l->size = size;
	return 0;
}

const char *dmig_fs__links_find(const struct dmig_fs__links *l, uint64_t dev, uint64_t ino)
{
	return find(l->slots, l->size, dev, ino)->path;
}

int dmig_fs__links_add(struct dmig_fs__links *l, uint64_t dev, uint64_t ino, const char *path)
{
	if (l->used * 4 >= l->size * 3 && grow(l) < 0)
		return -ENOMEM;
	struct slot *s = find(l->slots, l->size, dev, ino);
	if (s->path)
		return -EEXIST;
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	*s = (struct slot){.dev = dev, .ino = ino, .path = copy};
	l->used++;
	return 0;
}
