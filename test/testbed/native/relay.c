/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes two TAP devices and passes frames between them, each a fixed time after
 * it came: the delay of a long link, for kernels without netem.
 *
 *	relay TAP TAP MICROSECONDS
 *
 * One thread per direction. Frames keep their virtio header, so that a large TCP
 * segment passes as one frame with its checksum still to be made.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* virtio header, Ethernet header with a VLAN tag, largest GSO segment */
#define FRAME_MAX (12 + 18 + 65536)
/* bytes on their way in one direction: 1 Gbit/s for half a second */
#define IN_FLIGHT_MAX (64u << 20)
/* frames read before those that are due are sent */
#define BATCH 64
#define NS_PER_SECOND 1000000000LL
/* the default of 50 us would be added to every delay */
#define TIMER_SLACK_NS 1000

struct frame {
	STAILQ_ENTRY(frame) link;
	int64_t due;
	size_t size;
	char data[];
};

struct direction {
	int from;
	int to;
	int64_t delay; /* ns */
	size_t in_flight; /* bytes */
	STAILQ_HEAD(, frame) queue; /* oldest first; the delay is fixed, so due first */
};

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_SECOND + ts.tv_nsec;
}

static int open_tap(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		err(1, "/dev/net/tun");
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	if (ioctl(fd, TUNSETIFF, &request) < 0)
		err(1, "TUNSETIFF %s", name);
	if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) < 0)
		err(1, "TUNSETOFFLOAD %s", name);
	return fd;
}

/* Reads one frame into the queue; false: there is none. */
static bool take_frame(struct direction *d, char *buffer)
{
	ssize_t size = read(d->from, buffer, FRAME_MAX);
	struct frame *frame;

	if (size <= 0)
		return false;
	if (d->in_flight + size > IN_FLIGHT_MAX)
		return true; /* dropped, as by any full queue */
	frame = malloc(sizeof(*frame) + size);
	if (!frame)
		err(1, "malloc");
	frame->due = now() + d->delay;
	frame->size = size;
	memcpy(frame->data, buffer, size);
	STAILQ_INSERT_TAIL(&d->queue, frame, link);
	d->in_flight += size;
	return true;
}

static void send_due(struct direction *d)
{
	struct frame *frame;

	while ((frame = STAILQ_FIRST(&d->queue)) && frame->due <= now()) {
		/* a device that is down refuses: the frame is lost, as on a wire */
		if (write(d->to, frame->data, frame->size) < 0 && errno == EBADFD)
			err(1, "write");
		STAILQ_REMOVE_HEAD(&d->queue, link);
		d->in_flight -= frame->size;
		free(frame);
	}
}

static void wait_for_work(struct direction *d)
{
	struct pollfd poll_from = { .fd = d->from, .events = POLLIN };
	struct frame *frame = STAILQ_FIRST(&d->queue);
	struct timespec timeout;
	int64_t left;

	if (!frame) {
		poll(&poll_from, 1, -1);
		return;
	}
	left = frame->due - now();
	if (left <= 0)
		return;
	timeout.tv_sec = left / NS_PER_SECOND;
	timeout.tv_nsec = left % NS_PER_SECOND;
	ppoll(&poll_from, 1, &timeout, NULL);
}

static void *run_direction(void *arg)
{
	struct direction *d = arg;
	char *buffer = malloc(FRAME_MAX);
	int i;

	if (!buffer)
		err(1, "malloc");
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	for (;;) {
		wait_for_work(d);
		for (i = 0; i < BATCH && take_frame(d, buffer); i++)
			;
		send_due(d);
	}
	return NULL;
}

static void announce_ready(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (!path)
		return;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    sendto(fd, "READY=1", 7, 0, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		err(1, "cannot notify %s", path);
	close(fd);
}

int main(int argc, char **argv)
{
	struct direction there, back;
	pthread_t thread;

	if (argc != 4)
		errx(2, "usage: relay TAP TAP MICROSECONDS");
	there = (struct direction){ .from = open_tap(argv[1]), .to = open_tap(argv[2]),
				    .delay = atoll(argv[3]) * 1000 };
	back = (struct direction){ .from = there.to, .to = there.from, .delay = there.delay };
	STAILQ_INIT(&there.queue);
	STAILQ_INIT(&back.queue);
	announce_ready();
	if (pthread_create(&thread, NULL, run_direction, &back))
		errx(1, "pthread_create");
	run_direction(&there);
	return 1;
}
