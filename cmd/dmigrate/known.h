/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_KNOWN_H
#define DMIG_COMMAND_KNOWN_H

#include <jansson.h>

#include "util/error.h"

/* The migration that text is the id of, or the beginning of one; NULL: the newest. Caller frees *ret_id. */
int dmig_known_id(const char *text, char **ret_id, struct dmig_error **err);

/*
 * What is known of one migration: the status of the dmigrated that runs it ({"event":"status",...} without
 * the event), else its stored report, else what its journal tells. -ENOENT if there is none of them. New
 * reference.
 */
int dmig_known_state(const char *id, json_t **ret, struct dmig_error **err);

/* Stored report; -ENOENT while it runs or if there is none. New reference. */
int dmig_known_report(const char *id, json_t **ret, struct dmig_error **err);

#endif
