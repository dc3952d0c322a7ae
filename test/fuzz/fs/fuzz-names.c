/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Well-formed entries with few names: links, folders and files that take each other's place in every order,
 * which arbitrary bytes would hardly ever say. Each entry is three bytes: what, path, and target or
 * attributes.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fs/ground.h"
#include "fuzz/fuzz.h"

struct script {
	const uint8_t *data;
	size_t len;
	bool root_sent, in_file;
	uint64_t entries, files, bytes;
	uint8_t frame[DMIG_WIRE_SMALL];
	char path[16], target[16];
};

/* One to three of four names, from the bits of one byte. */
static void put_path(char path[16], uint8_t bits)
{
	int levels = 1 + (bits >> 6) % 3;
	char *p = path;
	for (int i = 0; i < levels; i++) {
		if (i)
			*p++ = '/';
		*p++ = (char)('a' + (bits >> 2 * i) % 4);
	}
	*p = '\0';
}

static const char *link_target(uint8_t bits)
{
	static const char *const targets[] = {"../outside", "../outside/file", "../outside/folder", "..", ".",
		"a", "a/b", "../../outside", "b/../..", "../../../outside", "../outside/new", "c",
		"../tree/a", "../..", "d/..", "b"};
	return targets[bits % 16];
}

static void fill_entry(struct script *s, struct dmig_wire_entry *e, const uint8_t bytes[3])
{
	static const enum dmig_entry_type types[] = {DMIG_ENTRY_FILE, DMIG_ENTRY_FOLDER, DMIG_ENTRY_SYMLINK,
		DMIG_ENTRY_HARDLINK, DMIG_ENTRY_WHITEOUT, DMIG_ENTRY_FIFO, DMIG_ENTRY_CHAR,
		DMIG_ENTRY_SYMLINK};
	e->type = types[bytes[0] % 8];
	e->path = s->path;
	put_path(s->path, bytes[1]);
	if (e->type == DMIG_ENTRY_FOLDER && bytes[0] & 8)
		e->flags = DMIG_ENTRY_OPAQUE;
	if (e->type == DMIG_ENTRY_SYMLINK)
		e->target = link_target(bytes[2]);
	if (e->type == DMIG_ENTRY_HARDLINK) {
		put_path(s->target, bytes[2]);
		e->hardlink = s->target;
	}
	if (e->type == DMIG_ENTRY_HARDLINK || e->type == DMIG_ENTRY_WHITEOUT)
		return;
	e->mode = bytes[2] * 16u & 07777;
	e->uid = bytes[0] & 16 ? 1000 : 0;
	if (bytes[0] & 32) {
		e->n_xattrs = 1;
		e->xattrs[0] = (struct dmig_wire_xattr){.name = "trusted.x", .value = bytes, .len = 3};
	}
	if (e->type == DMIG_ENTRY_FILE && bytes[0] & 64)
		e->size = 4096;
}

static int give(struct script *s, struct dmig_frame *ret, enum dmig_msg type, ssize_t len)
{
	assert(len > 0);
	*ret = (struct dmig_frame){.type = (uint16_t)type, .length = (uint32_t)len, .payload = s->frame};
	return 0;
}

static int give_entry(struct script *s, struct dmig_frame *ret)
{
	struct dmig_wire_entry e = {.path = ""};
	if (s->root_sent) {
		fill_entry(s, &e, s->data);
		s->data += 3;
		s->len -= 3;
	} else {
		e.type = DMIG_ENTRY_FOLDER;
		e.mode = 0755;
	}
	s->root_sent = true;
	s->entries++;
	s->in_file = e.type == DMIG_ENTRY_FILE;
	return give(s, ret, DMIG_MSG_ENTRY, dmig_wire_encode_entry(&e, s->frame, sizeof(s->frame)));
}

static int next_frame(void *opaque, struct dmig_frame *ret, struct dmig_error **err)
{
	struct script *s = opaque;
	(void)err;
	if (s->in_file) {
		struct dmig_wire_entry_end end = {.sum = dmig_sum_of("", 0)};
		s->in_file = false;
		s->files++;
		return give(s, ret, DMIG_MSG_ENTRY_END,
			dmig_wire_encode_entry_end(&end, s->frame, sizeof(s->frame)));
	}
	if (!s->root_sent || s->len >= 3)
		return give_entry(s, ret);
	struct dmig_wire_stream_end end = {.entries = s->entries, .files = s->files, .bytes = s->bytes};
	return give(
		s, ret, DMIG_MSG_STREAM_END, dmig_wire_encode_stream_end(&end, s->frame, sizeof(s->frame)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct script s = {.data = data + 1, .len = size - 1};
	ground_receive((struct dmig_fs__input){.recv = next_frame, .opaque = &s}, *data);
	return 0;
}
