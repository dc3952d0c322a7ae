/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of /proc/PID/net/tcp. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "netns/tcp_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_tcp_counts counts = {0};
	struct netns_flows flows = {0};
	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	if (netns__read_tcp(text, &counts, &flows) == 0)
		assert(counts.established == flows.n && counts.outside <= counts.established);
	netns__flows_sort(&flows);
	for (size_t i = 0; i < flows.n && i < 4; i++) {
		char *name = netns__flow_text(&flows.list[i]);
		assert(name && netns__has_flow(&flows, &flows.list[i]));
		free(name);
	}
	netns__flows_clear(&flows);
	free(text);
	return 0;
}
