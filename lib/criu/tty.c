/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "criu/dump.h"
#include "util/cleanup.h"
#include "util/io.h"

/* Unix98 pty slaves, Documentation/admin-guide/devices.txt. */
#define PTY_SLAVE_MAJOR 136

/* The container chose what lies at its paths: stay inside its root and follow no link. */
static int open_inside(pid_t init_pid, const char *path, int flags)
{
	char root_path[64];
	snprintf(root_path, sizeof(root_path), "/proc/%d/root", (int)init_pid);
	cleanup_fd int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int count_others(int pts, unsigned console, unsigned *ret)
{
	cleanup_dir DIR *d = fdopendir(pts);
	if (!d) {
		close(pts);
		return -errno;
	}
	struct dirent *e;
	*ret = 0;
	while ((e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && strtoul(e->d_name, NULL, 10) != console)
			++*ret;
	return 0;
}

int dmig_criu_tty(pid_t init_pid, struct dmig_criu_tty *ret, struct dmig_error **err)
{
	struct stat console, slave;
	struct statfs fs;
	char path[64];
	cleanup_fd int con = open_inside(init_pid, "dev/console", O_PATH);
	if (con < 0 || fstat(con, &console) < 0)
		return dmig_error_set(
			err, con < 0 ? -con : errno, "cannot look at the container's /dev/console");
	if (!S_ISCHR(console.st_mode) || major(console.st_rdev) != PTY_SLAVE_MAJOR)
		return dmig_error_set(err, ENOTTY, "the container's /dev/console is no pseudo terminal");
	snprintf(path, sizeof(path), "dev/pts/%u", minor(console.st_rdev));
	cleanup_fd int pty = open_inside(init_pid, path, O_PATH);
	if (pty < 0 || fstat(pty, &slave) < 0 || fstatfs(pty, &fs) < 0)
		return dmig_error_set(
			err, pty < 0 ? -pty : errno, "cannot look at the container's /%s", path);
	if (fs.f_type != DEVPTS_SUPER_MAGIC || slave.st_rdev != console.st_rdev ||
		slave.st_dev != console.st_dev)
		return dmig_error_set(
			err, ENOTTY, "the container's /dev/console is not the terminal /%s", path);
	int pts = open_inside(init_pid, "dev/pts", O_RDONLY | O_DIRECTORY);
	int r = pts < 0 ? pts : count_others(pts, minor(console.st_rdev), &ret->other_ptys);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot list the container's terminals: %s", strerror(-r));
	ret->rdev = slave.st_rdev;
	ret->dev = slave.st_dev;
	return 0;
}
