/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What comes in over a target's socket, and the info file beside it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "runtime/message.h"
#include "runtime/record.h"

static void run_packet(const uint8_t *data, size_t size)
{
	struct dmig_target_msg head;
	char **strings = NULL;
	size_t n = 0;
	if (dmig_packet_check(data, size, &head) < 0)
		return;
	assert(head.length == size - sizeof(head) && head.type < DMIG_TARGET_TYPES);
	char *copy = malloc(head.length + 1u);
	memcpy(copy, data + sizeof(head), head.length);
	copy[head.length] = '\0';
	if (dmig_strings_split(copy, head.length, &strings, &n) == 0) {
		char *joined = NULL;
		size_t len = 0;
		assert(dmig_strings_join((const char *const *)strings, n, &joined, &len) == 0);
		assert(len == head.length && !memcmp(joined, copy, len));
		free(joined);
		free(strings);
	}
	free(copy);
}

static void run_info(const uint8_t *data, size_t size)
{
	struct dmig_target_info info = {0};
	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	if (dmig_target_info_parse(text, &info) == 0)
		assert(info.pid > 1 && info.root[0] == '/' && info.bundle[0] == '/' && info.start);
	dmig_target_info_clear(&info);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	run_packet(data, size);
	run_info(data, size);
	return 0;
}
