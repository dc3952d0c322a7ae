/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_DOCKER_DOCKER_H
#define DMIG_DOCKER_DOCKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * The Docker Engine over its unix socket (DOCKER_HOST=unix://..., default /var/run/docker.sock), API version
 * negotiated by /_ping. Every answer is checked: sizes, types, names. One thread at a time per client; a
 * client is cheap. All calls have a time limit (timeout_ms of the client, start and load have longer ones of
 * their own).
 */
struct dmig_docker;
int dmig_docker_open(struct dmig_docker **ret, struct dmig_error **err);
void dmig_docker_free(struct dmig_docker *d);
void dmig_docker_set_timeout(struct dmig_docker *d, int timeout_ms); /* of one ordinary call; 30 s at first */
/* While fd (lent, -1: none) is readable calls fail with -ECANCELED, within a second also those under way. */
void dmig_docker_set_cancel_fd(struct dmig_docker *d, int fd);
const char *dmig_docker_version(const struct dmig_docker *d);        /* "20.10.24" */
const char *dmig_docker_api_version(const struct dmig_docker *d);    /* what we speak */
const char *dmig_docker_root_dir(const struct dmig_docker *d);       /* /var/lib/docker */
/* overlay2, overlayfs (containerd store), ... */
const char *dmig_docker_storage_driver(const struct dmig_docker *d);
bool dmig_docker_has_runtime(const struct dmig_docker *d, const char *name);
/* The program of a runtime, NULL if there is no such runtime; lent. */
const char *dmig_docker_runtime_path(const struct dmig_docker *d, const char *name);
const char *dmig_docker_socket(const struct dmig_docker *d); /* its path; lent */
/* Names of all containers, also stopped ones, that were made with this runtime. NULL-terminated; free each,
 * and the list. */
int dmig_docker_runtime_users(
	struct dmig_docker *d, const char *runtime, char ***ret_names, struct dmig_error **err);

/* ------------------------------------------------------------------ a container as it is */

enum dmig_mount_type { DMIG_MOUNT_BIND, DMIG_MOUNT_VOLUME, DMIG_MOUNT_TMPFS, DMIG_MOUNT_OTHER };

struct dmig_mount {
	enum dmig_mount_type type;
	char *name;        /* volume name, else NULL */
	char *source;      /* host path (volume: its mount point) */
	char *destination; /* path in the container */
	char *driver;      /* volume driver, else NULL */
	bool anonymous;    /* volume without a name of its own */
	bool shared;       /* on network storage or a plugin's: attach, do not copy */
	bool read_only;
};

struct dmig_network {
	char *name, *id, *driver;
	char *ipv4, *ipv6, *mac; /* NULL or "" = none */
	char *gateway;
};

/* Read-only for users of the module; freed with dmig_container_free(). Strings are never NULL unless it says
 * so. */
struct dmig_container {
	char *id, *name; /* name without the leading slash */
	char *image_id, *image_name;
	pid_t pid;
	bool running, paused, restarting, tty, open_stdin, auto_remove, privileged;
	char *runtime;      /* runc, dmigrate, ... */
	char *network_mode; /* HostConfig.NetworkMode */
	char *pid_mode, *ipc_mode, *userns_mode, *uts_mode;
	char *log_driver, *log_path; /* log_path "" if there is none */
	char *sandbox_key;
	char *restart_policy; /* "no", "always", "unless-stopped", "on-failure" */
	int restart_max;      /* of on-failure */
	char *json;           /* the whole inspect answer, as text */
	struct dmig_mount *mounts;
	size_t n_mounts;
	struct dmig_network *networks;
	size_t n_networks;
	char **volumes_from; /* NULL-terminated */
	char **exec_ids;     /* NULL-terminated: running execs */
	bool swarm_task;
};
/* ref: name or id (prefix). -ENOENT when there is no such container. */
int dmig_docker_inspect(
	struct dmig_docker *d, const char *ref, struct dmig_container **ret, struct dmig_error **err);
/* The same reader on text: used by tests and the fuzz target, and on what a peer sent. */
int dmig_container_parse(const char *json, size_t len, struct dmig_container **ret, struct dmig_error **err);
void dmig_container_free(struct dmig_container *c);
/* The container's writable layer as seen by the kernel: upperdir of the overlay mounted at / of pid. Works
 * for both image stores. -EOPNOTSUPP for other storage drivers. Caller frees. */
int dmig_docker_upper_dir(struct dmig_docker *d, pid_t pid, char **ret, struct dmig_error **err);
/* Containers other than id that use this volume and run: names joined by ", " or NULL if there are none. */
int dmig_docker_volume_users(struct dmig_docker *d, const char *volume, const char *except_id, char **ret,
	struct dmig_error **err);

/* ------------------------------------------------------------------ what travels */

/*
 * The description that the source sends: one JSON object {version, inspect, image, networks, volumes}; image
 * = {id, names, config, diff_ids}; networks and volumes as the Engine describes them. Secrets in the
 * environment are part of it: it only travels inside TLS and is never logged.
 */
int dmig_docker_describe(
	struct dmig_docker *d, const struct dmig_container *c, char **ret_json, struct dmig_error **err);

struct dmig_spec; /* a received description, checked */
int dmig_spec_parse(const char *json, size_t len, struct dmig_spec **ret, struct dmig_error **err);
void dmig_spec_free(struct dmig_spec *s);
const struct dmig_container *dmig_spec_container(const struct dmig_spec *s); /* lent */
size_t dmig_spec_layers(const struct dmig_spec *s);                          /* diff IDs of its image */
/* Change before use: the name at the destination, connections dropped and no fixed address (--tcp close). */
int dmig_spec_rename(struct dmig_spec *s, const char *name, struct dmig_error **err);

/* What a peer may ask for (dmigrated --allow); everything else is refused with the reason. NULL where it is
 * asked for: all. */
struct dmig_allow {
	bool privileged, host_network, host_pid, any_device, any_bind, any_capability;
	char **binds;   /* NULL-terminated path prefixes */
	char **devices; /* NULL-terminated */
};
/* Findings as a NULL-terminated list of lines "what: why: what to do"; blockers stop the migration. */
struct dmig_findings {
	char **blockers, **warnings; /* NULL-terminated; freed with dmig_findings_clear() */
};
void dmig_findings_add(char ***list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void dmig_findings_clear(struct dmig_findings *f);

struct dmig_check_opts {
	bool tcp_close;                /* --tcp close: a new address is fine */
	bool source_keep;              /* --source keep */
	const char *const *bind_share; /* NULL-terminated paths with --bind PATH=share or copy */
	/*
	 * Destination: our state folder. Volumes that an earlier move left here (dmig_docker_stale_mark) may be
	 * replaced; any other that holds data is a blocker. NULL: nothing is known, only a warning.
	 */
	const char *state_dir;
};
/* On the source: blockers of the container itself (swarm, foreign runtime, namespaces, mounts, volumes used
 * by others, ...). */
int dmig_docker_check_source(struct dmig_docker *d, const struct dmig_container *c,
	const struct dmig_check_opts *opts, struct dmig_findings *f, struct dmig_error **err);
/* On the destination: name, address, port, subnet, volume conflicts, runtime registered, what --allow
 * forbids. */
int dmig_docker_check_target(struct dmig_docker *d, const struct dmig_spec *s,
	const struct dmig_check_opts *opts, const struct dmig_allow *allow, struct dmig_findings *f,
	struct dmig_error **err);

/*
 * On the source, when the move is done: remember in state_dir that its named volumes are stale, so that they may be
 * replaced when the container comes back. On the destination, when it runs: they are no longer.
 */
int dmig_docker_stale_mark(
	struct dmig_docker *d, const char *state_dir, const struct dmig_container *c, struct dmig_error **err);
void dmig_docker_stale_forget(const char *state_dir, const struct dmig_container *c);

/* ------------------------------------------------------------------ images */

/*
 * Is an image with the same configuration and diff IDs here (IDs differ between Docker's two stores)? Its id
 * in *ret_id, or NULL. Else *ret_have = how many of its layers, from the bottom, are here in some image.
 */
int dmig_docker_image_find(struct dmig_docker *d, const struct dmig_spec *s, char **ret_id, size_t *ret_have,
	struct dmig_error **err);
/*
 * Save image to fd (an empty regular file; its offset is 0 afterwards) as `docker save` does, without the
 * contents of the first skip_layers layers. The file first holds all layers: it needs room for them.
 */
int dmig_docker_image_save(
	struct dmig_docker *d, const char *image_id, size_t skip_layers, int fd, struct dmig_error **err);
/* Load from fd (read from its offset to its end); afterwards dmig_docker_image_find() must find it. */
int dmig_docker_image_load(struct dmig_docker *d, int fd, struct dmig_error **err);
int dmig_docker_image_tag(
	struct dmig_docker *d, const char *image_id, const char *name, struct dmig_error **err);
/* An id, or a name: then the image goes only with its last name. Missing is fine. */
int dmig_docker_image_remove(struct dmig_docker *d, const char *image, struct dmig_error **err);

/* ------------------------------------------------------------------ the target */

/*
 * Called right after something was made, so that the caller can journal its undo: kind "network", "volume",
 * "container"; id. Kind "image": a name that the image got, for dmig_docker_image_remove().
 */
typedef int dmig_docker_made_fn(const char *kind, const char *id, void *opaque);

struct dmig_target_opts {
	const char *image_id; /* at this host */
	const char *runtime;  /* "dmigrate" */
	bool tcp_close;
	/* As in dmig_check_opts: volumes left by an earlier move are reused, their contents will be replaced. */
	const char *state_dir;
	dmig_docker_made_fn *made;
	void *opaque;
};
/* Networks and volumes that are missing, then the container (created, not started): runtime as asked, restart
 * policy "no". */
int dmig_docker_create_target(struct dmig_docker *d, const struct dmig_spec *s,
	const struct dmig_target_opts *opts, char **ret_container_id, struct dmig_error **err);

int dmig_docker_start(struct dmig_docker *d, const char *id, struct dmig_error **err);
int dmig_docker_pause(struct dmig_docker *d, const char *id, bool pause, struct dmig_error **err);
int dmig_docker_set_restart_policy(
	struct dmig_docker *d, const char *id, const char *policy, int max, struct dmig_error **err);
/* force: kills it. Missing is fine. volumes: anonymous ones too. */
int dmig_docker_remove_container(
	struct dmig_docker *d, const char *id, bool force, bool volumes, struct dmig_error **err);
int dmig_docker_remove_network(struct dmig_docker *d, const char *id, struct dmig_error **err);
int dmig_docker_remove_volume(struct dmig_docker *d, const char *name, struct dmig_error **err);
int dmig_docker_kill(struct dmig_docker *d, const char *id, int signal, struct dmig_error **err);
/* Wait until the engine says that it does not run. */
int dmig_docker_wait_stopped(struct dmig_docker *d, const char *id, int timeout_ms, struct dmig_error **err);
/* Path of the json-file log that the engine will use or uses. Caller frees. -EOPNOTSUPP for other drivers. */
int dmig_docker_log_file(
	struct dmig_docker *d, const struct dmig_container *c, char **ret, struct dmig_error **err);
/* runc's state folder for this container (the parent of ID/state.json), e.g. /run/docker/runtime-runc/moby.
 * Caller frees. */
int dmig_docker_runc_root(const char *container_id, char **ret, struct dmig_error **err);

#endif
