/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fuzz/fuzz.h"

#include "docker/internal.h"

static void network(const json_t *n, const char *address)
{
	if (dmig_docker__network_check(n, NULL) < 0)
		return;
	dmig_docker__network_holds(n, address);
	dmig_docker__network_overlap(n, n);
	dmig_docker__network_looks_automatic(n);
}

/* {"network": ..., "volume": ..., "a": image, "b": image, "address": ...}: the Engine's other answers. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json json_t *root = NULL;
	if (dmig_docker__json("input", (const char *)data, size, 65536, &root, NULL) < 0)
		return 0;
	json_t *v = json_object_get(root, "volume"), *a = json_object_get(root, "a"),
	       *b = json_object_get(root, "b");
	network(json_object_get(root, "network"), dmig_docker__text(root, "address"));
	if (dmig_docker__volume_check(v, NULL) == 0)
		dmig_docker__volume_device(v);
	dmig_docker__image_equal(json_object_get(a, "Config"), json_object_get(a, "Layers"),
		json_object_get(b, "Config"), json_object_get(b, "Layers"));
	return 0;
}
