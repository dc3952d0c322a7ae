/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * victim BEATS UID [ROOT]: a small process tree that shows from outside whether
 * it runs: each of its tasks counts in a slot of its own of the shared file BEATS.
 * With ROOT, a mount, that first becomes the root of all; it holds a copy of us.
 *
 *     slot 0  root, pid 1 of its namespace
 *     slot 1  a thread of root
 *     slot 2  `- child with the user id UID
 *     slot 3     `- grandchild with UID and a seccomp filter
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOTS 4
/* A few beats fit into any wait of the test; microseconds */
#define BEAT_US 500
/* A soft limit that no one else has proves that limits are restored */
#define CHILD_NOFILE 333

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
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		exit(1);
	limit.rlim_cur = CHILD_NOFILE;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		exit(1);

	if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		exit(1);
}

/* CRIU makes tasks call munmap(): only a suspended filter lets them live */
static void forbid_munmap(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(1);
}

static void start_children(uid_t uid)
{
	if (fork())
		return;

	become(uid);
	if (fork() == 0) {
		forbid_munmap();
		beat(3);
	}
	beat(2);
}

static void enter(char **argv)
{
	if (chdir(argv[3]) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH))
		exit(1);
	execl("/victim", "victim", argv[1], argv[2], NULL);
	exit(1);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int fd;

	if (argc == 4)
		enter(argv);
	if (argc != 3 || setsid() < 0)
		return 2;

	fd = open(argv[1], O_RDWR);
	if (fd < 0)
		return 1;
	beats = mmap(NULL, SLOTS * sizeof(*beats), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (beats == MAP_FAILED || close(fd))
		return 1;

	start_children(atoi(argv[2]));
	if (pthread_create(&thread, NULL, beat_thread, NULL))
		return 1;
	beat(0);
}
