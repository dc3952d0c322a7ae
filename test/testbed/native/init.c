/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pid 1 of a testbed host: reaps every orphan, forwards nothing. A tombstone
 * that dmigrate leaves behind must find its zombie reaped, as systemd would.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void)
{
	sigset_t all;

	sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0)
		return 1;
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		/* SIGCHLD stays pending while blocked, so none is missed */
		if (sigwaitinfo(&all, NULL) < 0 && errno != EINTR)
			return 1;
	}
}
