/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

#include "fs/internal.h"
#include "util/cleanup.h"

bool dmig_fs__no_openat2;

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int open_beneath(int root_fd, const char *path, bool stay)
{
	struct open_how how = {
		.flags = FOLDER_FLAGS,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   (stay ? RESOLVE_NO_XDEV : 0),
	};
	long fd;
	do
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	while (fd < 0 &&
		(errno == EINTR || errno == EAGAIN)); /* EAGAIN: a rename elsewhere raced with the look-up */
	return fd < 0 ? -errno : (int)fd;
}

static int step_into(int fd, const char *name, bool stay)
{
	struct stat from, to;
	cleanup_fd int next = openat(fd, name, FOLDER_FLAGS);
	if (next < 0)
		return errno == ENOTDIR || errno == ELOOP ? -ENOTDIR : -errno;
	if (stay && (fstat(fd, &from) < 0 || fstat(next, &to) < 0))
		return -errno;
	if (stay && from.st_dev != to.st_dev)
		return -EXDEV;
	return steal_fd(&next);
}

/* Without openat2(2): one component after the other, none of them a link. */
static int open_stepwise(int root_fd, const char *path, bool stay)
{
	char name[NAME_MAX + 1];
	cleanup_fd int fd = openat(root_fd, ".", FOLDER_FLAGS);
	if (fd < 0)
		return -errno;
	while (*path) {
		size_t len = strcspn(path, "/");
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, len);
		name[len] = '\0';
		if (len == 0 || !strcmp(name, ".."))
			return -EXDEV;
		int next = step_into(fd, name, stay);
		if (next < 0)
			return next;
		close(fd);
		fd = next;
		path += len + (path[len] == '/');
	}
	return steal_fd(&fd);
}

int dmig_fs__open_folder(int root_fd, const char *path, int flags)
{
	bool stay = flags & DMIG_FS_STAY;
	if (!dmig_fs__no_openat2) {
		int fd = open_beneath(root_fd, *path ? path : ".", stay);
		if (fd == -ELOOP)
			return -ENOTDIR;           /* a link is not a folder; callers then treat both alike */
		if (fd != -ENOSYS && fd != -EPERM) /* EPERM: a seccomp filter that does not know the call */
			return fd;
	}
	return open_stepwise(root_fd, path, stay);
}

void dmig_fs__parent_init(struct dmig_fs__parent *p, int root_fd)
{
	*p = (struct dmig_fs__parent){.root_fd = root_fd, .fd = -1};
}

void dmig_fs__parent_close(struct dmig_fs__parent *p)
{
	dmig_closep(&p->fd);
}

int dmig_fs__parent_of(struct dmig_fs__parent *p, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	*ret_name = slash ? slash + 1 : path;
	if (len >= sizeof(p->path))
		return -ENAMETOOLONG;
	if (p->fd >= 0 && !strncmp(p->path, path, len) && p->path[len] == '\0')
		return 0;
	dmig_closep(&p->fd);
	memcpy(p->path, path, len);
	p->path[len] = '\0';
	int fd = dmig_fs__open_folder(p->root_fd, p->path, DMIG_FS_STAY);
	if (fd < 0)
		return fd;
	p->fd = fd;
	p->default_acl = dmig_fs__has_default_acl(fd);
	return 0;
}
