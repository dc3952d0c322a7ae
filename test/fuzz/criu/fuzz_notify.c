/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <string.h>

#include "criu/internal.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_notify_event ev;
	bool one_stage;
	if (dmig_notify__parse(data, size, &ev, &one_stage) == 0)
		assert(memchr(ev.name, '\0', sizeof(ev.name)) && ev.root_pid >= 0);
	return 0;
}
