/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small process tree that shows from outside whether it runs: each of its
 * threads and processes counts in a slot of its own of the shared file BEATS.
 *
 *     root (pid 1 of its namespace), one more thread
 *     `- child, with the uid given
 *        `- grandchild, with the uid given
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 4
/* Short enough that a few beats fit into any wait of the test, in microseconds */
#define BEAT_US 500

static volatile uint64_t *beats;

static _Noreturn void beat(int slot)
{
	for (;;) {
		beats[slot]++;
		usleep(BEAT_US);
	}
}

static void *beat_thread(void *arg)
{
	(void)arg;
	beat(1);
}

static void become(uid_t uid)
{
	struct rlimit soft;

	/* A limit that differs from everyone else's proves that it was restored */
	if (getrlimit(RLIMIT_NOFILE, &soft))
		exit(1);
	soft.rlim_cur = 333;
	if (setrlimit(RLIMIT_NOFILE, &soft))
		exit(1);

	if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		exit(1);
}

static void start_children(uid_t uid)
{
	if (fork())
		return;

	become(uid);
	if (fork() == 0)
		beat(3);
	beat(2);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int fd;

	if (argc != 3)
		return 2;

	fd = open(argv[1], O_RDWR);
	if (fd < 0)
		return 1;
	beats = mmap(NULL, SLOTS * sizeof(*beats), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (beats == MAP_FAILED || close(fd))
		return 1;

	setsid();
	start_children(atoi(argv[2]));
	if (pthread_create(&thread, NULL, beat_thread, NULL))
		return 1;
	beat(0);
}
