/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "migrate/dest_internal.h"
#include "util/log.h"

/*
 * A target can end by itself: somebody asks Docker to stop the waiting container, its helper or CRIU dies. The phases
 * wait for messages of the source meanwhile, so a thread watches and stops the worker.
 */
static void *watch(void *opaque)
{
	struct dest *d = opaque;
	struct pollfd p[2] = {
		{.fd = dmig_target_event_fd(d->target), .events = POLLIN}, {.fd = d->watch_stop, .events = POLLIN}};
	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	struct dmig_error *why = NULL;
	if (!p[1].revents && p[0].revents && dmig_target_check(d->target, &why) < 0) {
		dmig_error_side(why, DMIG_SIDE_DESTINATION);
		dmig_stop_now(d->w->stop, why);
	}
	return NULL;
}

int dest__watch_target(struct dest *d, struct dmig_error **err)
{
	d->watch_stop = eventfd(0, EFD_CLOEXEC);
	if (d->watch_stop < 0)
		return dmig_error_set(err, errno, "eventfd: %m");
	int r = pthread_create(&d->watcher, NULL, watch, d);
	if (r)
		return dmig_error_set(err, r, "cannot start a thread: %s", strerror(r));
	d->watching = true;
	return 0;
}

void dest__unwatch_target(struct dest *d)
{
	uint64_t one = 1;
	if (!d->watching)
		return;
	d->watching = false;
	if (write(d->watch_stop, &one, sizeof(one)) < 0)
		log_error("eventfd: %m");
	pthread_join(d->watcher, NULL);
	close(d->watch_stop);
}
