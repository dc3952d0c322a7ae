/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netns/tcp_table.h"
#include "util/cleanup.h"
#include "util/io.h"

/* 150 bytes a connection: room for some hundred thousand. */
#define MAX_TABLE_BYTES (64u << 20)
/* include/net/tcp_states.h */
#define STATE_ESTABLISHED 1
#define STATE_LISTEN 10

/* Addresses are printed as the hexadecimal digits of 32-bit words in host order; v4 may stand inside v6. */
static bool is_loopback(const char *hex, size_t len)
{
	unsigned first = 0;
	const char *v4 = len == 8 ? hex : hex + 24;
	if (len == 32 && !strncmp(hex, "00000000000000000000000001000000", 32))
		return true;
	if (len == 32 && strncmp(hex, "0000000000000000FFFF0000", 24))
		return false;
	return sscanf(v4 + 6, "%2x", &first) == 1 && first == 127;
}

int netns__count_tcp(char *table, struct dmig_tcp_counts *counts)
{
	char *save = NULL;
	char *line = strtok_r(table, "\n", &save); /* headings */
	while (line && (line = strtok_r(NULL, "\n", &save))) {
		char local[33], remote[33];
		unsigned state;
		if (sscanf(line, " %*u: %32[0-9A-F]:%*4x %32[0-9A-F]:%*4x %2x", local, remote, &state) != 3 ||
			strlen(local) != strlen(remote) || (strlen(local) != 8 && strlen(local) != 32))
			return -EPROTO;
		counts->listening += state == STATE_LISTEN;
		counts->established += state == STATE_ESTABLISHED;
		if (state == STATE_ESTABLISHED && strcmp(local, remote) && !is_loopback(remote, strlen(remote)))
			counts->outside++;
	}
	return 0;
}

int dmig_netns_tcp_counts(pid_t pid, struct dmig_tcp_counts *ret, struct dmig_error **err)
{
	static const char *const names[] = {"tcp", "tcp6"};
	*ret = (struct dmig_tcp_counts){0};
	for (size_t i = 0; i < 2; i++) {
		cleanup_free char *path = dmig_asprintf("/proc/%d/net/%s", (int)pid, names[i]);
		cleanup_free char *table = NULL;
		int r = path ? dmig_read_file(path, MAX_TABLE_BYTES, &table, NULL) : -ENOMEM;
		if (r == -ENOENT && i == 1)
			continue; /* no IPv6 in this kernel */
		if (r == 0)
			r = netns__count_tcp(table, ret);
		if (r < 0)
			return dmig_error_set(err, -r, "cannot read %s: %s", path ? path : "", strerror(-r));
	}
	return 0;
}
