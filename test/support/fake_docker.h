/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_SUPPORT_FAKE_DOCKER_H
#define DMIG_TEST_SUPPORT_FAKE_DOCKER_H

#include <stddef.h>

/*
 * A Docker Engine that says what a test wants: HTTP on a unix socket, served by a thread. Starting it points
 * DOCKER_HOST there; /_ping, /version and /info answer at once like Docker 28 with the overlay2 driver,
 * everything else with 404 until a test says otherwise. Mistakes of the fake itself abort the test.
 */
struct fake_docker;

struct fake_docker *fake_docker_start(void);
void fake_docker_stop(struct fake_docker *f);

/* What /_ping says: "1.41", or NULL for none. */
void fake_docker_api(struct fake_docker *f, const char *version);

/*
 * Answer a request; the last word for a path counts. path is without the version; with "?" in it, it must
 * match the query as well. status 0: never answer (the connection stays open). NULL body: empty.
 */
void fake_docker_on(
	struct fake_docker *f, const char *method, const char *path, int status, const char *body);
void fake_docker_on_data(struct fake_docker *f, const char *method, const char *path, int status,
	const void *data, size_t len);
/* The answer's bytes as they are, status line included; then the connection closes. */
void fake_docker_on_raw(struct fake_docker *f, const char *method, const char *path, const char *bytes);

/* How often it was asked for; path as above. */
unsigned fake_docker_count(struct fake_docker *f, const char *method, const char *path);
/* Body of the last such request (caller frees), NULL if there was none. ret_len may be NULL. */
char *fake_docker_body(struct fake_docker *f, const char *method, const char *path, size_t *ret_len);
/* All requests so far, "METHOD /path?query" a line, without versions. Caller frees. */
char *fake_docker_log(struct fake_docker *f);

#endif
