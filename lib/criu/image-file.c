/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "criu/image-file.h"

#include <errno.h>
#include <stdlib.h>

#include "criu/image.h"

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int take_word(struct dmig_image_file *f, uint32_t *ret)
{
	if (f->end - f->p < 4)
		return -EBADMSG;
	*ret = le32(f->p);
	f->p += 4;
	return 0;
}

int dmig_image_file_bad(const struct dmig_image_file *f, const char *why, struct dmig_error **err)
{
	return dmig_error_set(err, EBADMSG, "%s image: %s", f->what, why);
}

int dmig_image_file_open(struct dmig_image_file *f, const void *buf, size_t len, uint32_t prefix,
	uint32_t magic, const char *what, struct dmig_error **err)
{
	uint32_t word;
	*f = (struct dmig_image_file){.p = buf, .end = (const uint8_t *)buf + len, .what = what};
	if (len > DMIG_IMAGE_MAX_FILE)
		return dmig_image_file_bad(f, "too large", err);
	if (prefix && (take_word(f, &word) < 0 || word != prefix))
		return dmig_image_file_bad(f, "not an image of CRIU", err);
	if (take_word(f, &word) < 0 || word != magic)
		return dmig_image_file_bad(f, "of another kind", err);
	return 0;
}

int dmig_image_file_next(
	struct dmig_image_file *f, const uint8_t **ret, size_t *ret_len, struct dmig_error **err)
{
	uint32_t size;
	if (f->p == f->end)
		return 0;
	if (take_word(f, &size) < 0 || size > (size_t)(f->end - f->p))
		return dmig_image_file_bad(f, "cut off", err);
	if (size > DMIG_IMAGE_MAX_MESSAGE)
		return dmig_image_file_bad(f, "has a message that is too large", err);
	*ret = f->p;
	*ret_len = size;
	f->p += size;
	return 1;
}

int dmig_image_file_only(
	struct dmig_image_file *f, const uint8_t **ret, size_t *ret_len, struct dmig_error **err)
{
	int r = dmig_image_file_next(f, ret, ret_len, err);
	if (r < 0)
		return r;
	if (r == 0)
		return dmig_image_file_bad(f, "empty", err);
	return f->p == f->end ? 0 : dmig_image_file_bad(f, "has more than one message", err);
}

int dmig_image__grow(void **array, size_t n, size_t element)
{
	if (n & (n - 1))
		return 0; /* full at each power of two */
	void *bigger = reallocarray(*array, n ? n * 2 : 1, element);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	return 0;
}
