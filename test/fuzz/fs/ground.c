/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fuzz/fs/ground.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"

static int base = -1, tree = -1;
static struct stat before[3];
static const char *const watched[] = {"outside", "outside/file", "outside/folder"};
static char folder[256];

/* Not sys/mount.h: it does not go together with linux/mount.h, and old C libraries have no wrappers. */
static int detached_tmpfs(void)
{
	cleanup_fd int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

static void remove_folder(void)
{
	dmig_remove_tree(folder);
}

static int plain_folder(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(folder, sizeof(folder), "%s/dmig-fuzz-XXXXXX", tmp ? tmp : "/tmp");
	assert(mkdtemp(folder));
	atexit(remove_folder);
	return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void make_ground(void)
{
	base = detached_tmpfs();
	if (base < 0)
		base = plain_folder();
	assert(base >= 0);
	assert(mkdirat(base, "tree", 0755) == 0 && mkdirat(base, "outside", 0755) == 0);
	assert(mkdirat(base, "outside/folder", 0755) == 0);
	int fd = openat(base, "outside/file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert(fd >= 0 && write(fd, "keep", 4) == 4 && close(fd) == 0);
	tree = openat(base, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(tree >= 0);
	for (int i = 0; i < 3; i++)
		assert(fstatat(base, watched[i], &before[i], AT_SYMLINK_NOFOLLOW) == 0);
}

/* Every change of an inode, its attributes, its contents or the names in it, moves its ctime. */
static void check_outside(void)
{
	for (int i = 0; i < 3; i++) {
		struct stat now;
		assert(fstatat(base, watched[i], &now, AT_SYMLINK_NOFOLLOW) == 0);
		assert(now.st_ino == before[i].st_ino && now.st_nlink == before[i].st_nlink);
		assert(now.st_ctim.tv_sec == before[i].st_ctim.tv_sec);
		assert(now.st_ctim.tv_nsec == before[i].st_ctim.tv_nsec);
	}
	int names = 0, fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fdopendir(fd);
	assert(d);
	while (readdir(d))
		names++;
	assert(names == 4); /* ".", "..", "tree", "outside" */
}

void ground_receive(struct dmig_fs__input in, uint8_t mode)
{
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_tree_recv_opts opts = {
		.overlay = mode & GROUND_OVERLAY, .keep_extra = mode & GROUND_KEEP_EXTRA};
	if (base < 0)
		make_ground();
	dmig_fs__no_openat2 = mode & GROUND_NO_OPENAT2;
	struct dmig_fs__receiver r = {.in = in, .opts = &opts, .stats = &stats};
	int result = dmig_fs__recv_tree(&r, tree, &err);
	assert(result <= 0 && (result < 0) == (err != NULL));
	check_outside();
	assert(dmig_fs__empty(tree, NULL) == 0);
	check_outside();
}
