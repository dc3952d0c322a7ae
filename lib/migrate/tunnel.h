/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_TUNNEL_H
#define DMIG_MIGRATE_TUNNEL_H

#include "util/error.h"

/*
 * A byte stream to the destination through a program's stdin and stdout (`ssh -W`): for hosts whose data port no direct
 * connection reaches. Returns the fd of our end, or -errno. The program ends when we close it.
 */
int dmig_tunnel_open(const char *const *argv, struct dmig_error **err);

#endif
