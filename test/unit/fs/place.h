/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_UNIT_FS_PLACE_H
#define DMIG_TEST_UNIT_FS_PLACE_H

/* Two empty folders to move between, each on a tmpfs of its own in a mount namespace of this program. */
struct place {
	char *base, *from, *to;
	int from_fd, to_fd;
};

/* Leaves the program as skipped unless root (devices, owners, trusted xattrs, mounts). */
void place_need_root(void);
/* on_disk: folders below TMPDIR instead of tmpfs, for what tmpfs cannot do. */
void place_new(struct place *p, int on_disk);
void place_free(struct place *p);

/* A file of len bytes that do not repeat, below dir_fd. Returns its fd if keep, else 0. */
void place_file(int dir_fd, const char *name, const void *data, long len);
void place_fill(void *buf, unsigned long len, unsigned long seed);

#endif
