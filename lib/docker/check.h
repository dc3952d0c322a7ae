/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_DOCKER_CHECK_H
#define DMIG_DOCKER_CHECK_H

#include "docker/internal.h"

/*
 * The checks before a migration. Each is a function that adds lines "what: why: what to do"; it returns a
 * negative errno only when it could not look. check_source.c and check_target.c hold the two tables.
 */
struct dmig_docker__check {
	struct dmig_docker *d;
	const struct dmig_container *c;
	const struct dmig_check_opts *opts;
	struct dmig_findings *f;
	struct dmig_error **err;
	const json_t *host_config;
	json_t *networks; /* list of the networks at this host */
	/* Destination only. */
	const struct dmig_spec *s;
	const struct dmig_allow *allow; /* NULL: everything is allowed */
	json_t *containers;             /* list of what runs at this host */
};
typedef int dmig_docker__check_fn(struct dmig_docker__check *k);

#define blocker(k, ...) dmig_findings_add(&(k)->f->blockers, __VA_ARGS__)
#define warning(k, ...) dmig_findings_add(&(k)->f->warnings, __VA_ARGS__)

/* Both sides: storage driver, user namespaces. */
dmig_docker__check_fn dmig_docker__check_engine;
/* check_ports.c, check_networks.c: parts of the destination's table. */
dmig_docker__check_fn dmig_docker__check_ports;
dmig_docker__check_fn dmig_docker__check_networks;

#endif
