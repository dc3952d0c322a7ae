/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"
#include "util/io.h"

/* Images as archives: always from and to a descriptor, never in memory. */

int dmig_docker_image_save(
	struct dmig_docker *d, const char *image_id, size_t skip_layers, int fd, struct dmig_error **err)
{
	cleanup_answer struct dmig_docker__answer a = {0};
	if (!dmig_docker__is_digest(image_id))
		return dmig_error_set(err, EINVAL, "not an image id");
	/* By id: then no name travels, and the destination's own names stay what they are. */
	cleanup_free char *path = dmig_asprintf("/images/%s/get", image_id);
	if (!path)
		return dmig_docker__oom(err);
	struct dmig_docker__request rq = {.method = "GET",
		.path = path,
		.download = true,
		.download_fd = fd,
		.timeout_ms = TIMEOUT_IMAGE};
	int r = dmig_docker__http(d, &rq, &a, err);
	if (r == 0 && skip_layers)
		r = dmig_docker__tar_drop_layers(fd, skip_layers, err);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = dmig_error_set(err, errno, "archive of the image: %m");
	return r < 0 ? dmig_error_wrap(err, "save image %.19s", image_id) : 0;
}

/* The answer is a sequence of objects; one of them may say that it went wrong, under status 200. */
static int load_result(const struct dmig_docker__answer *a, struct dmig_error **err)
{
	for (size_t at = 0; at < a->len;) {
		json_error_t e;
		cleanup_json json_t *line = json_loadb(a->text + at, a->len - at, JSON_DISABLE_EOF_CHECK, &e);
		if (!line || e.position <= 0)
			return 0; /* the end, or words that are none of ours */
		at += (size_t)e.position;
		const char *text = dmig_docker__text(json_object_get(line, "errorDetail"), "message");
		if (!*text)
			text = dmig_docker__text(line, "error");
		if (*text)
			return dmig_error_set(
				err, EIO, "Docker says: %.*s", (int)strcspn(text, "\r\n"), text);
	}
	return 0;
}

int dmig_docker_image_load(struct dmig_docker *d, int fd, struct dmig_error **err)
{
	cleanup_answer struct dmig_docker__answer a = {0};
	struct dmig_docker__request rq = {.method = "POST",
		.path = "/images/load?quiet=1",
		.upload = true,
		.upload_fd = fd,
		.timeout_ms = TIMEOUT_IMAGE};
	int r = dmig_docker__http(d, &rq, &a, err);
	if (r == 0)
		r = load_result(&a, err);
	return r < 0 ? dmig_error_wrap(err, "load image") : 0;
}
