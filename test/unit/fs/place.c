/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/fs/place.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "support/test.h"

void place_need_root(void)
{
	if (geteuid() != 0)
		test_skip_program("needs root: devices, owners, trusted xattrs, mounts");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		test_skip_program("cannot make a mount namespace");
	umask(022);
}

static int folder(char **ret, const char *base, const char *name, int on_disk)
{
	*ret = dmig_asprintf("%s/%s", base, name);
	assert_non_null(*ret);
	assert_int_equal(mkdir(*ret, 0755), 0);
	if (!on_disk)
		assert_int_equal(mount("tmpfs", *ret, "tmpfs", 0, NULL), 0);
	int fd = open(*ret, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

void place_new(struct place *p, int on_disk)
{
	p->base = test_mkdir();
	p->from_fd = folder(&p->from, p->base, "from", on_disk);
	p->to_fd = folder(&p->to, p->base, "to", on_disk);
}

void place_free(struct place *p)
{
	close(p->from_fd);
	close(p->to_fd);
	umount2(p->from, MNT_DETACH);
	umount2(p->to, MNT_DETACH);
	free(p->from);
	free(p->to);
	test_rmdir(p->base);
}

void place_file(int dir_fd, const char *name, const void *data, long len)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(dmig_write_full(fd, data, (size_t)len), 0);
	close(fd);
}

void place_fill(void *buf, unsigned long len, unsigned long seed)
{
	unsigned char *p = buf;
	unsigned long x = seed * 2654435761u + 1;
	for (unsigned long i = 0; i < len; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		p[i] = (unsigned char)(x >> 56);
	}
}
