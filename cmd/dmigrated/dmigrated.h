/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIGRATED_H
#define DMIGRATED_H

#include <stdbool.h>
#include <stdint.h>

#include "docker/docker.h"
#include "util/error.h"

enum daemon_mode { DAEMON_NONE = 0, DAEMON_LISTEN, DAEMON_BOOTSTRAP, DAEMON_SOURCE };

struct daemon_options {
	enum daemon_mode mode;
	const char *address, *key_file, *id; /* lent from argv */
	uint16_t port_low, port_high;
	int request_fd, ready_fd;
	bool verbose;
	struct dmig_allow allow;
};
#define DAEMON_PORT 7788      /* of --listen */
#define DAEMON_DATA_LOW 7790  /* data connections, one port per migration */
#define DAEMON_DATA_HIGH 7889
#define DAEMON_OPTIONS_INIT                                                                                            \
	{                                                                                                              \
		.key_file = "/etc/dmigrate/key", .port_low = DAEMON_DATA_LOW, .port_high = DAEMON_DATA_HIGH,           \
		.request_fd = -1, .ready_fd = -1                                                                       \
	}

/* options.c: all copy or check; -EINVAL with *err. */
int daemon_parse_ports(const char *text, struct daemon_options *o, struct dmig_error **err);
int daemon_parse_allow(const char *text, struct daemon_options *o, struct dmig_error **err);
int daemon_parse_fd(const char *text, int *ret, struct dmig_error **err);
void daemon_options_clear(struct daemon_options *o);

/* run.c: exit code, or -errno with *err for what stops it from starting. */
int daemon_run(const struct daemon_options *o, struct dmig_error **err);

#endif
