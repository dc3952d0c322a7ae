/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_FUZZ_FUZZ_H
#define DMIG_TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What a fuzz target defines: called with hostile bytes, must return 0 and keep no state. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
