/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The payload of ENTRY: every name that comes out must stay below the root, and encode to the same bytes. */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "wire/check.h"
#include "wire/messages.h"

static uint8_t again[DMIG_WIRE_MAX_PAYLOAD];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_wire_entry m;
	if (dmig_wire_decode_entry(data, size, &m, NULL) < 0)
		return 0;
	assert(*m.path == '\0' || dmig_wire_path_ok(m.path));
	assert(*m.hardlink == '\0' || dmig_wire_path_ok(m.hardlink));
	assert(m.n_xattrs <= DMIG_WIRE_MAX_XATTRS);
	for (size_t i = 0; i < m.n_xattrs; i++)
		assert(*m.xattrs[i].name && m.xattrs[i].len <= DMIG_WIRE_MAX_XATTR_VALUE);
	assert(dmig_wire_encode_entry(&m, again, sizeof(again)) == (ssize_t)size);
	assert(memcmp(again, data, size) == 0);
	return 0;
}
