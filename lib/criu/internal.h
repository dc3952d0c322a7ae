/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_CRIU_INTERNAL_H
#define DMIG_CRIU_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "criu/notify.h"

/* Shared inside lib/criu, and the parsers that the fuzz targets call. */

/* notify.c: one packet of CRIU or dmigrate-hook. 0 or -errno. */
int dmig_notify__parse(const void *buf, size_t len, struct dmig_notify_event *ret, bool *ret_one_stage);

#endif
