/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_SPEC_H
#define DMIG_RUNTIME_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "util/error.h"

/*
 * Docker's config.json, changed for the restore. Pure text to text, apart from the function that resolves
 * paths.
 */
#define DMIG_SPEC_MAX_BYTES (4u << 20) /* real ones are 10-30 KiB */

/* Resolve a bind source: caller frees, NULL with errno. realpath(3) wrapped, or a fake. */
typedef char *dmig_spec_resolve_fn(const char *path, void *opaque);

struct dmig_spec_edit {
	const char *bundle;     /* absolute: a relative root.path is taken from here */
	const char *netns_path; /* NULL: leave the network namespace as it is */
	const char *devpts;     /* folder that replaces the container's devpts, NULL: no terminal */
	dmig_spec_resolve_fn *resolve;
	void *opaque;
};
/*
 * root.path absolute; hooks that belong to creation dropped (Docker ran them for P); network namespace by
 * path; bind sources without symlinks (CRIU cannot remount them else); process.terminal off with /dev/pts as
 * a bind. Caller frees *ret. -EINVAL: not what runc would take.
 */
int dmig_spec_for_restore(
	const char *json, size_t len, const struct dmig_spec_edit *edit, char **ret, struct dmig_error **err);
/* root.path, absolute. Caller frees. */
int dmig_spec_root(const char *json, size_t len, const char *bundle, char **ret, struct dmig_error **err);
/* runc's state.json with the bundle that Docker knows instead of our copy. Caller frees *ret. */
int dmig_spec_state_bundle(
	const char *json, size_t len, const char *bundle, char **ret, struct dmig_error **err);

#endif
