/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "util/cleanup.h"
#include "wrapper.h"

/*
 * The owner runs the real `runc create` with our arguments. The container's stdio goes to it as well, except
 * with a console socket: then 0-2 are only pipes for messages, and a duplicate in dmigrated would keep
 * containerd reading them for ever.
 */
static int send_create(const struct wrapper *w, int fd)
{
	static const int stdio[] = {0, 1, 2};
	cleanup_free char *data = NULL;
	size_t len = 0;
	int r = dmig_strings_join((const char *const *)w->argv, (size_t)w->argc, &data, &len);
	return r < 0 ? r
		     : dmig_packet_send(
			       fd, DMIG_TARGET_CREATE, 0, data, len, stdio, w->args.console_socket ? 0 : 3);
}

int create_target(const struct wrapper *w)
{
	cleanup_packet struct dmig_packet answer = DMIG_PACKET_INIT;
	cleanup_fd int fd = connect_owner(w->args.id);
	if (fd < 0)
		return fail(w, "this container is the target of a migration that is not running any more; "
			       "remove it");
	int r = send_create(w, fd);
	if (r == 0)
		r = dmig_packet_recv(fd, DMIG_TARGET_CREATE_MS, &answer);
	if (r < 0)
		return fail(w, "dmigrated did not create the container: %s", strerror(-r));
	if (answer.head.type != DMIG_TARGET_CREATED)
		return fail(w, "%s", answer.data);
	return 0;
}
