/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "docker/internal.h"

/* The Engine's inspect answer. What was taken keeps its promises: no NULL strings, names that are names. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_container *c = NULL;
	cleanup_error struct dmig_error *err = NULL;
	if (dmig_container_parse((const char *)data, size, &c, &err) < 0) {
		assert(err && err->message);
		return 0;
	}
	assert(strlen(c->id) == 64 && c->name[0] && !strchr(c->name, '/'));
	assert(c->runtime && c->network_mode && c->log_path && c->sandbox_key && c->restart_policy);
	for (size_t i = 0; i < c->n_mounts; i++)
		assert(c->mounts[i].destination[0] == '/' && c->mounts[i].source);
	for (size_t i = 0; i < c->n_networks; i++)
		assert(c->networks[i].name[0] && c->networks[i].ipv4 && c->networks[i].mac);
	dmig_container_free(c);
	return 0;
}
