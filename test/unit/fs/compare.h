/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_UNIT_FS_COMPARE_H
#define DMIG_TEST_UNIT_FS_COMPARE_H

#define COMPARE_LINKS                                                                                        \
	1 /* the same names share an inode, and link counts are the same (not those of folders) */
#define COMPARE_BLOCKS 2 /* holes are where they were: about the same space is used */

/*
 * Number of differences between two trees (names, type, mode, owner, device, size, mtime, xattrs, contents,
 * link targets; atime of files), each printed. Roots are compared as well.
 */
int compare_trees(const char *a, const char *b, int flags);

#endif
