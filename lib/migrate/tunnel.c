/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/tunnel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/spawn.h"

int dmig_tunnel_open(const char *const *argv, struct dmig_error **err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return dmig_error_set(err, errno, "socketpair: %m");
	cleanup_fd int ours = pair[0];
	cleanup_fd int theirs = pair[1];
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	s.argv = argv;
	s.stdin_fd = theirs;
	s.stdout_fd = theirs;
	pid_t pid = dmig_spawn(&s, NULL, err);
	if (pid < 0)
		return pid;
	return steal_fd(&ours);
}
