/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What runs in the test container: a parent with two threads and a child, a TCP connection between them that
 * is never idle, and a file lock. Each round trip adds one to the counter in the mapped file /beat/counter,
 * so that the test sees from outside whether it runs. Ends itself with 1 if a byte is lost or wrong.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE_US 500

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void loopback_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		die("lo");
	close(fd);
}

static void *sleeper(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static void echo(int fd)
{
	uint32_t n;
	while (recv(fd, &n, sizeof(n), MSG_WAITALL) == sizeof(n))
		if (send(fd, &n, sizeof(n), 0) != sizeof(n))
			die("echo");
	exit(0);
}

static void ask_for_ever(int fd, volatile uint32_t *counter)
{
	for (uint32_t n = 1;; n++) {
		uint32_t got;
		if (send(fd, &n, sizeof(n), 0) != sizeof(n) ||
			recv(fd, &got, sizeof(got), MSG_WAITALL) != sizeof(got))
			die("connection");
		if (got != n) {
			fprintf(stderr, "wrong: %u for %u\n", got, n);
			exit(1);
		}
		*counter = n;
		usleep(PAUSE_US);
	}
}

int main(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(7000), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	pthread_t t;
	loopback_up();
	int fd = open("/beat/counter", O_RDWR);
	volatile uint32_t *counter =
		fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED || flock(fd, LOCK_EX) < 0)
		die("counter");
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(server, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(server, 1) < 0 ||
		connect(client, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		die("connect");
	int peer = accept(server, NULL, NULL);
	if (pthread_create(&t, NULL, sleeper, NULL))
		die("thread");
	if (fork() == 0)
		echo(peer);
	close(peer);
	ask_for_ever(client, counter);
}
