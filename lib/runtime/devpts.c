/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/internal.h"
#include "util/cleanup.h"
#include "util/io.h"

/*
 * The terminal of a `-t` container: Docker took the master when P was created, so the restored tasks must get
 * slaves of that very devpts. It is cloned out of P's mount namespace before P dies and attached at a folder
 * of ours.
 */

/* In a child: a threaded process cannot change its mount namespace. Only async-signal-safe calls. */
static void clone_in_child(const char *mntns, int sock)
{
	int ns = open(mntns, O_RDONLY | O_CLOEXEC);
	int tree = -1;
	if (ns >= 0 && setns(ns, CLONE_NEWNS) == 0)
		tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/dev/pts", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int e = tree < 0 ? errno : 0;
	dmig_send_fds(sock, &e, sizeof(e), &tree, tree >= 0);
	_exit(0);
}

static int clone_devpts(pid_t pid, int *ret_tree)
{
	char mntns[64];
	int pair[2], e = 0, tree = -1;
	size_t n = 0;
	snprintf(mntns, sizeof(mntns), "/proc/%d/ns/mnt", (int)pid);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	cleanup_fd int ours = pair[0];
	cleanup_fd int theirs = pair[1];
	pid_t child = fork();
	if (child < 0)
		return -errno;
	if (child == 0)
		clone_in_child(mntns, theirs);
	close(steal_fd(&theirs));
	ssize_t r = dmig_recv_fds(ours, &e, sizeof(e), &tree, 1, &n);
	waitpid(child, NULL, 0);
	if (r != sizeof(e) || n != 1)
		return r == sizeof(e) && e ? -e : -EIO;
	*ret_tree = tree;
	return 0;
}

int dmig_devpts_take(pid_t pid, const char *folder, int *ret_slave, struct dmig_error **err)
{
	cleanup_fd int tree = -1;
	int r = clone_devpts(pid, &tree);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot take the container's /dev/pts: %s", strerror(-r));
	r = dmig_mkdir_p(folder, 0755);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot make %s: %s", folder, strerror(-r));
	if (syscall(SYS_move_mount, tree, "", AT_FDCWD, folder, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return dmig_error_set(err, errno, "cannot attach the container's /dev/pts at %s: %m", folder);
	cleanup_free char *slave = dmig_asprintf("%s/0", folder);
	*ret_slave = slave ? open(slave, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
	return *ret_slave < 0 ? dmig_error_set(err, errno, "cannot open the container's terminal: %m") : 0;
}

void dmig_devpts_drop(const char *folder)
{
	umount2(folder, MNT_DETACH | UMOUNT_NOFOLLOW);
	rmdir(folder);
}
