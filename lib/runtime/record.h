/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_RECORD_H
#define DMIG_RUNTIME_RECORD_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * What is known about a target on disk.
 *  record  /var/lib/dmigrate/targets/CID      survives a reboot; its existence alone keeps the wrapper from
 * runc info    /run/dmigrate/target/CID.info      where P and its things are, for whoever must clean up after
 * a death helper  /run/dmigrate/target/CID.helper    locked by the helper while it lives; what became of runc
 * restore socket  /run/dmigrate/target/CID.sock Tests move the folders (util/paths.h).
 */
#define DMIG_TARGET_MAX_ID 128

/* Letters, digits, "_.-+"; not "." or "..": runc's own rule. Everything below refuses other names with
 * -EINVAL. */
bool dmig_target_id_valid(const char *id);
/* Caller frees. NULL: no memory, or a bad id (errno). */
char *dmig_target_record_path(const char *id);
char *dmig_target_run_path(const char *id, const char *suffix);

/* One access(2). */
bool dmig_target_is_recorded(const char *id);
int dmig_target_record_write(const char *id, const char *migration_id, struct dmig_error **err);
/* dmig_target_record_remove() is in placeholder.h. */

struct dmig_target_info {
	char *root;               /* runc's, e.g. /run/docker/runtime-runc/moby */
	char *bundle;             /* Docker's */
	char *run_dir;            /* dmigrated's, where CRIU works */
	char *cgroup;             /* folder of P's cgroup (dmig_freezer_path), NULL: none found */
	pid_t pid;                /* P, which becomes the restored init's number */
	unsigned long long start; /* of P: with the number it names one process */
};
int dmig_target_info_write(const char *id, const struct dmig_target_info *info, struct dmig_error **err);
/* -ENOENT: `runc create` was never reached. */
int dmig_target_info_read(const char *id, struct dmig_target_info *ret, struct dmig_error **err);
int dmig_target_info_parse(
	char *text, struct dmig_target_info *ret); /* text is changed; strings are copied */
void dmig_target_info_clear(struct dmig_target_info *info);
#define cleanup_target_info __attribute__((cleanup(dmig_target_info_clear)))

/* The helper's file. Open and lock: fd, or -EBUSY if another helper lives. */
int dmig_helper_open(const char *id);
struct dmig_helper_note {
	pid_t runc; /* 0: not started yet */
	unsigned long long start;
	bool ended;
	int status;  /* exit code of runc restore once it has ended */
	bool buried; /* the tombstone was made */
};
int dmig_helper_write(int fd, const struct dmig_helper_note *note);
/* -ENOENT: no helper was ever there. */
int dmig_helper_read(const char *id, struct dmig_helper_note *ret);
/* Wait until no helper holds its file: 0, or -ETIMEDOUT. Missing is fine. */
int dmig_helper_wait_gone(const char *id, int timeout_ms);

#endif
