/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_RUNC_CONTAINER_H
#define DMIG_TEST_RUNC_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A real container under runc that runs beat.c, everything of it below one scratch folder. Fails the test by
 * cmocka. */
struct container {
	char *dir, *root, *bundle, *images, *run, *id;
	pid_t init;
	int master; /* -1: no terminal */
	volatile uint32_t *counter;
};

/* tty: with a terminal of its own, as `docker run -t`; its master is c->master then. */
void container_start(struct container *c, bool tty);
/* DMIGRATE_TEST_RUNC, or what PATH has. */
const char *container_runc(void);
void container_end(struct container *c);
/* Fresh folders for one dump. */
void container_new_run(struct container *c);
/* Does it go on within a bounded time? */
bool container_runs(const struct container *c);
/* Has it stopped for a while? */
bool container_stands(const struct container *c);
/* Init has ended (and may be a zombie of whoever has it now). */
bool container_dead(const struct container *c);
/* 77 if runc, CRIU or the rights are missing. */
void container_require(void);

#endif
