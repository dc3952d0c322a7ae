/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wrapper.h"

/*
 * CRIU inherits the container's terminal by descriptor number, and runc passes no descriptor of ours on. So
 * for containers with -t the first `criu` in runc's PATH is this program: it opens the terminal and becomes
 * the real one.
 */
int launch_criu(int argc, char **argv)
{
	const char *criu = getenv("DMIGRATE_CRIU");
	const char *tty = getenv("DMIGRATE_TTY");
	const char *number = getenv("DMIGRATE_TTY_FD");
	(void)argc;
	if (!criu || !tty || !number) {
		fprintf(stderr, "criu: this is dmigrate-runc, started without DMIGRATE_CRIU, DMIGRATE_TTY or "
				"DMIGRATE_TTY_FD\n");
		return 127;
	}
	int fd = open(tty, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || dup2(fd, atoi(number)) < 0) {
		fprintf(stderr, "criu: cannot open %s: %s\n", tty, strerror(errno));
		return 126;
	}
	execv(criu, argv);
	fprintf(stderr, "criu: cannot execute %s: %s\n", criu, strerror(errno));
	return 126;
}
