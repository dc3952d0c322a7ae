/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_INTERNAL_H
#define DMIG_CRIU_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "criu/dump.h"
#include "criu/notify.h"

/* Shared inside lib/criu, and the parsers that the fuzz targets call. */

/* notify.c: one packet of CRIU or dmigrate-hook. 0 or -errno. */
int dmig_notify__parse(const void *buf, size_t len, struct dmig_notify_event *ret, bool *ret_one_stage);

/* criu-log.c: see dmig_criu_log_errors(). */
char *dmig_criu__errors_in(const char *text, size_t len);

/* config.c: what depends on the host and not on the caller. */
struct dmig_dump_facts {
	const char *notify_path;
	bool has_notify_socket, has_inline_tmpfs;
	uint64_t netns_inode;
	struct dmig_criu_tty tty;
};
/* The text of CRIU's configuration file. Caller frees. */
int dmig_criu__config(const struct dmig_dump_opts *o, const struct dmig_dump_facts *facts, char **ret,
	struct dmig_error **err);

#endif
