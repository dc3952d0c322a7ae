/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_UNIT_FS_CHURN_H
#define DMIG_TEST_UNIT_FS_CHURN_H

/* Random changes to a tree: what a container could do to its own. The same seed does the same. */
void churn(int root_fd, unsigned seed, int changes);

#endif
