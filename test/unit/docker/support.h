/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_UNIT_DOCKER_SUPPORT_H
#define DMIG_TEST_UNIT_DOCKER_SUPPORT_H

#include "support/test.h"

#include "docker/internal.h"
#include "support/fake_docker.h"

/*
 * The container "rich" as two engines described it (data/spec-*.json): networks netx and nety, volume "named"
 * three times, anonymous volumes at /anon and /mnt2, SECRET=hunter2hunter2 in its environment.
 */
#define SPEC_20 "spec-20.10.json"
#define SPEC_28 "spec-28.json"
#define SECRET "hunter2hunter2"
#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define DIGEST_A "sha256:" ID_A
#define DIGEST_B "sha256:" ID_B

json_t *load_json(const char *name);
/* The description with changes: each edit is "path.to.member" and JSON text ("-" removes it), ended by NULL.
 */
json_t *edited(const char *name, ...);
struct dmig_spec *spec_of(json_t *root);                                       /* takes the reference */
int parse_spec(json_t *root, struct dmig_spec **ret, struct dmig_error **err); /* takes the reference */
struct dmig_container *container_of(json_t *root); /* of a description; takes the reference */

/* Register a whole value as the answer of GET path. Takes the reference. */
void on_json(struct fake_docker *f, const char *path, json_t *value);
/* The engine at the source, where rich runs; at a destination that has its image only. Both take the
 * reference. */
void fake_source(struct fake_docker *f, json_t *root);
void fake_destination(struct fake_docker *f, json_t *root);

/* Is there a line with this text in it? */
bool has_line(char **lines, const char *text);
size_t count_lines(char **lines);
/* Member by "a.b.c"; numbers index lists. Lent. */
json_t *at(json_t *root, const char *path);
const char *text_at(json_t *root, const char *path);

#define assert_text(root, path, wanted) assert_string_equal(text_at(root, path), wanted)

#endif
