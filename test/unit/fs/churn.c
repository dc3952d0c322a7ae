/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/fs/churn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "fs/internal.h"
#include "support/test.h"
#include "unit/fs/place.h"

/* Few names at few levels, so that changes meet. */
#define NAMES 5
#define LEVELS 4

static unsigned long state;

static unsigned pick(unsigned below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % below;
}

static const char *some_path(char buf[64])
{
	static const char *const names[NAMES] = {"a", "bb", "c c", "\xc3\xa4", "e\n"};
	buf[0] = '\0';
	for (unsigned i = 0, levels = 1 + pick(LEVELS); i < levels; i++) {
		strcat(buf, i ? "/" : "");
		strcat(buf, names[pick(NAMES)]);
	}
	return buf;
}

static void write_some(int fd)
{
	static char data[20000];
	unsigned len = pick(4) ? pick(100) : pick(sizeof(data));
	place_fill(data, len, pick(1000));
	if (pick(8) == 0 && ftruncate(fd, pick(1 << 20)) < 0)
		return;
	off_t at = pick(8) ? 0 : (off_t)pick(1 << 22);
	if (pwrite(fd, data, len, at) < 0)
		perror("pwrite");
}

static void change_contents(int root, const char *path)
{
	static const int flags[] = {O_CREAT, O_CREAT | O_TRUNC, O_CREAT | O_EXCL, O_APPEND, 0};
	int fd = openat(root, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags[pick(5)], 0666);
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		write_some(fd);
	if (fd >= 0)
		close(fd);
}

static void set_xattr(int root, const char *path)
{
	static const char *const names[] = {"user.one", "user.two", "trusted.one", "security.capability"};
	struct vfs_ns_cap_data caps = {.magic_etc = VFS_CAP_REVISION_2, .data[0].permitted = 1u << pick(20)};
	char full[128];
	const char *name = names[pick(4)];
	bool is_caps = name == names[3];
	snprintf(full, sizeof(full), "/proc/self/fd/%d/%s", root, path);
	if (pick(3) == 0)
		lremovexattr(full, name);
	else if (is_caps)
		lsetxattr(full, name, &caps, XATTR_CAPS_SZ_2, 0);
	else
		lsetxattr(full, name, path, strlen(path), 0);
}

static void change_attributes(int root, const char *path)
{
	struct stat st;
	struct timespec times[2] = {{.tv_sec = pick(1u << 30), .tv_nsec = pick(1000000000)},
		{.tv_sec = pick(1u << 30), .tv_nsec = pick(1000000000)}};
	if (fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	switch (pick(4)) {
	case 0:
		if (!S_ISLNK(st.st_mode))
			fchmodat(root, path, pick(010000), 0);
		break;
	case 1:
		fchownat(root, path, pick(100000), pick(100000), AT_SYMLINK_NOFOLLOW);
		break;
	case 2:
		utimensat(root, path, times, AT_SYMLINK_NOFOLLOW);
		break;
	default:
		set_xattr(root, path);
	}
}

static void remove_path(int root, const char *path)
{
	const char *name;
	struct dmig_fs__parent parent;
	dmig_fs__parent_init(&parent, root);
	if (dmig_fs__parent_of(&parent, path, &name) == 0)
		dmig_fs__remove(parent.fd, name, path, NULL);
	dmig_fs__parent_close(&parent);
}

static void make_node(int root, const char *path)
{
	static const mode_t types[] = {S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};
	mknodat(root, path, types[pick(4)] | 0640, 0x103);
}

/* Failures are part of the game: a name that is not there, a folder that would have to be renamed across
 * layers. */
static void change(int root)
{
	char a[64], b[64];
	some_path(a);
	some_path(b);
	switch (pick(12)) {
	case 0:
	case 1:
	case 2:
		mkdirat(root, a, 0755);
		break;
	case 3:
	case 4:
	case 5:
		change_contents(root, a);
		break;
	case 6:
		(void)!symlinkat(b, root, a);
		break;
	case 7:
		(void)!linkat(root, a, root, b, 0);
		break;
	case 8:
		(void)!renameat(root, a, root, b);
		break;
	case 9:
		if (pick(2))
			remove_path(root, a);
		else
			(void)!unlinkat(root, a, pick(2) ? AT_REMOVEDIR : 0);
		break;
	case 10:
		make_node(root, a);
		break;
	default:
		change_attributes(root, a);
	}
}

void churn(int root_fd, unsigned seed, int changes)
{
	state = seed * 2654435761u + 12345;
	while (changes--)
		change(root_fd);
}
