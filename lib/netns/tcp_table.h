/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_NETNS_TCP_TABLE_H
#define DMIG_NETNS_TCP_TABLE_H

#include "netns/netns.h"

/* Text of /proc/PID/net/tcp or tcp6 (proc(5)); table is changed. Adds to counts. -EPROTO. */
int netns__count_tcp(char *table, struct dmig_tcp_counts *counts);

#endif
