/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_FUZZ_FS_GROUND_H
#define DMIG_TEST_FUZZ_FS_GROUND_H

#include "fs/internal.h"

/*
 * Where hostile streams are let loose: "tree" to receive into and beside it "outside", which nothing may
 * touch. On a tmpfs of its own that is mounted nowhere and takes no devices, where we may have one; else in a
 * folder below TMPDIR.
 */

/* What the first byte of an input asks for. */
#define GROUND_OVERLAY 1
#define GROUND_KEEP_EXTRA 2
#define GROUND_NO_OPENAT2 4

/* Receive, then stop the program unless the result makes sense and outside is as it was; leaves an empty
 * tree. */
void ground_receive(struct dmig_fs__input in, uint8_t mode);

#endif
