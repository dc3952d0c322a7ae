/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wrapper.h"

#include <errno.h>

#include "util/cleanup.h"
#include "util/io.h"

int connect_owner(const char *id)
{
	cleanup_free char *path = dmig_target_run_path(id, ".sock");
	cleanup_fd int fd = path ? dmig_unix_connect(path) : -ENOMEM;
	if (fd < 0)
		return fd;
	if (dmig_unix_peer_uid(fd) != 0)
		return -EPERM;
	return steal_fd(&fd);
}

int ask_owner(const struct wrapper *w, enum dmig_target_type type, int value, int timeout_ms,
	struct dmig_packet *ret)
{
	cleanup_fd int fd = connect_owner(w->args.id);
	if (fd < 0)
		return fd;
	int r = dmig_packet_send(fd, type, value, NULL, 0, NULL, 0);
	return r < 0 ? r : dmig_packet_recv(fd, timeout_ms, ret);
}
