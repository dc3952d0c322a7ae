/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_IMAGE_FILE_H
#define DMIG_CRIU_IMAGE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* The container of CRIU's images; the numbers are those of criu/include/magic.h. */
#define DMIG_MAGIC_COMMON 0x54564319u  /* in front of the magic of every image but the inventory */
#define DMIG_MAGIC_SERVICE 0x55105940u /* the same for statistics */
#define DMIG_MAGIC_INVENTORY 0x58313116u
#define DMIG_MAGIC_PSTREE 0x50273030u
#define DMIG_MAGIC_PAGEMAP 0x56084025u
#define DMIG_MAGIC_MM 0x57492820u
#define DMIG_MAGIC_STATS 0x57093306u

/* A cursor over one file in memory; the buffer is borrowed. */
struct dmig_image_file {
	const uint8_t *p, *end;
	const char *what; /* for errors */
};

/* Checks the head. prefix: DMIG_MAGIC_COMMON, DMIG_MAGIC_SERVICE, or 0 for none. */
int dmig_image_file_open(struct dmig_image_file *f, const void *buf, size_t len, uint32_t prefix,
	uint32_t magic, const char *what, struct dmig_error **err);
/* 1 and the next message, 0 at the end, -errno. */
int dmig_image_file_next(
	struct dmig_image_file *f, const uint8_t **ret, size_t *ret_len, struct dmig_error **err);
/* Exactly one message in the file. */
int dmig_image_file_only(
	struct dmig_image_file *f, const uint8_t **ret, size_t *ret_len, struct dmig_error **err);
/* "WHAT image: why", -EBADMSG. */
int dmig_image_file_bad(const struct dmig_image_file *f, const char *why, struct dmig_error **err);

/* Room for one more element, doubling. Returns 0 or -ENOMEM. */
int dmig_image__grow(void **array, size_t n, size_t element);

#endif
