/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a command on a testbed host: joins the host's cgroups, then all the
 * namespaces of its pid 1, then forks so that the command is in its pid
 * namespace. The exit code is the command's.
 *
 *	enter [-d] PID CGROUP_DIR... -- COMMAND [ARG...]
 *
 * -d: the command becomes a daemon, an orphan that the host's pid 1 reaps. If
 *     NOTIFY_SOCKET is set, "STARTED=1" is sent there just before the exec:
 *     its credentials tell the receiver the daemon's pid.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* exit code of "cannot even try", as env(1) and docker run use it */
#define EXIT_CANNOT_RUN 125

static volatile sig_atomic_t child;

static void forward_signal(int sig)
{
	if (child > 0)
		kill(child, sig);
}

static void join_cgroup(const char *dir)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		err(EXIT_CANNOT_RUN, "cannot join cgroup %s", dir);
	close(fd);
}

static void join_namespaces(pid_t pid)
{
	int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS |
		    CLONE_NEWIPC | CLONE_NEWCGROUP;
	int fd = syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		err(EXIT_CANNOT_RUN, "no host: pid %d", pid);
	/* a kernel without time namespaces refuses the flag: go without */
	if (setns(fd, flags | CLONE_NEWTIME) < 0 && setns(fd, flags) < 0)
		err(EXIT_CANNOT_RUN, "cannot enter the namespaces of pid %d", pid);
	close(fd);
}

static void announce_start(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (!path)
		return;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, "STARTED=1", 9, 0, (struct sockaddr *)&addr,
			     sizeof(addr)) < 0)
		err(EXIT_CANNOT_RUN, "cannot notify %s", path);
	close(fd);
}

static void run(char **argv)
{
	execvp(argv[0], argv);
	warn("%s", argv[0]);
	_exit(errno == ENOENT ? 127 : 126);
}

static void run_daemon(char **argv)
{
	pid_t pid = fork();

	if (pid < 0)
		err(EXIT_CANNOT_RUN, "fork");
	if (pid > 0)
		_exit(0);
	setsid();
	announce_start();
	run(argv);
}

static int wait_for_child(void)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			err(EXIT_CANNOT_RUN, "waitpid");
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	bool daemonize = false;
	sigset_t forwarded, before;
	char cwd[PATH_MAX];
	int arg = 1;
	pid_t pid;

	if (arg < argc && !strcmp(argv[arg], "-d")) {
		daemonize = true;
		arg++;
	}
	if (arg + 2 >= argc)
		errx(EXIT_CANNOT_RUN, "usage: enter [-d] PID CGROUP_DIR... -- COMMAND");
	pid = atoi(argv[arg++]);
	for (; arg < argc && strcmp(argv[arg], "--"); arg++)
		join_cgroup(argv[arg]);
	argv += arg + 1;
	if (arg + 1 >= argc)
		errx(EXIT_CANNOT_RUN, "no command");

	if (!getcwd(cwd, sizeof(cwd)))
		strcpy(cwd, "/");
	join_namespaces(pid);
	if (chdir(cwd) < 0 && chdir("/") < 0)
		err(EXIT_CANNOT_RUN, "chdir /");

	/* a signal must meet either no child or one that it can be forwarded to */
	sigemptyset(&forwarded);
	sigaddset(&forwarded, SIGTERM);
	sigaddset(&forwarded, SIGHUP);
	sigprocmask(SIG_BLOCK, &forwarded, &before);
	child = fork();
	if (child < 0)
		err(EXIT_CANNOT_RUN, "fork");
	if (child > 0) {
		/* the terminal sends these to the command itself */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		signal(SIGTERM, forward_signal);
		signal(SIGHUP, forward_signal);
		sigprocmask(SIG_SETMASK, &before, NULL);
		return wait_for_child();
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (daemonize)
		run_daemon(argv);
	/* who kills us means the command */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run(argv);
}
