/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_DOCKER_INTERNAL_H
#define DMIG_DOCKER_INTERNAL_H

#include <curl/curl.h>
#include <jansson.h>

#include "docker/docker.h"
#include "util/cleanup.h"

/* What the files of this module share. Only they see libcurl and jansson. */

/* API versions as minor numbers of 1.x. */
#define API_OLDEST 41      /* Docker 20.10: the oldest whose answers we know */
#define API_NEWEST 51      /* Docker 28; Docker 29 still speaks it (its minimum is 1.44) */
#define API_ANNOTATIONS 43 /* HostConfig.Annotations */
#define API_ENDPOINTS 44   /* several networks and a MAC address for each at create */
#define API_SUBPATH 45     /* a volume's subfolder */
#define API_GW_PRIORITY 48 /* GwPriority, networks without IPv4, mounts of an image */

/* Limits on what is read: real answers are far below, hostile ones must not fill memory or stack. */
#define MAX_ANSWER (32u << 20) /* bytes; a list of some thousand containers is 10 MiB */
#define MAX_INSPECT (4u << 20) /* bytes; health check logs make the largest, some 100 KiB */
#define MAX_SPEC (1u << 20)    /* bytes; what one message of the protocol may hold */
#define SPEC_VERSION 1         /* of the description that travels */
#define MAX_DEPTH 64           /* nested objects; real answers have at most 10 */
#define MAX_STRING 65536       /* bytes in a string that we read ourselves */
#define MAX_LIST 4096          /* entries: mounts, networks, execs, layers */

/* Milliseconds. */
#define TIMEOUT_DEFAULT 30000 /* a daemon under load answers an inspect within seconds */
#define TIMEOUT_START 120000  /* wires networks, may wait for a busy disk */
#define TIMEOUT_CREATE 300000 /* copies the image's contents into new volumes */
#define TIMEOUT_IMAGE 3600000 /* save and load of many GiB */

struct dmig_docker {
	CURL *curl;
	char *socket;
	char *version, *root_dir, *driver, *default_runtime;
	char api[8];
	int api_minor;
	int timeout_ms;
	int cancel_fd; /* readable: calls end; -1: none */
	bool containerd_store; /* images are in containerd: no chain of layers without their contents */
	bool userns_remap, rootless;
	json_t *info;     /* the whole answer of /info; the next two are lent from it */
	json_t *runtimes; /* object: name to {path, ...} */
	json_t *plugins;  /* {Volume: [...], Network: [...], Log: [...]} */
	char error[CURL_ERROR_SIZE];
};

/* ------------------------------------------------------------------ http.c */

struct dmig_docker__request {
	const char *method;
	const char *path;   /* below the version, escaped, with its query */
	const json_t *body; /* sent as JSON; NULL: none */
	int upload_fd;      /* sent as the body when upload is set */
	int download_fd;    /* takes a successful answer when download is set */
	bool upload, download, no_version;
	int timeout_ms; /* 0: the client's */
	size_t max;     /* bytes of the answer; 0: MAX_ANSWER */
};

struct dmig_docker__answer {
	long status;
	char *text; /* NUL-terminated, never NULL after success */
	size_t len;
	char api[8], os[16]; /* headers of /_ping */
};
void dmig_docker__answer_clear(struct dmig_docker__answer *a);
#define cleanup_answer __attribute__((cleanup(dmig_docker__answer_clear)))

/*
 * 0 for 2xx and 304; else the errno that fits: ENOENT 404, EINVAL 400, EBUSY 409, EPERM 403, EOPNOTSUPP 501,
 * EIO. What the daemon said is part of the message, made one line.
 */
int dmig_docker__http(struct dmig_docker *d, const struct dmig_docker__request *rq,
	struct dmig_docker__answer *ret, struct dmig_error **err);
/* The common forms. fmt gives the path; only escaped text may go into it. ret may be NULL. */
int dmig_docker__get(struct dmig_docker *d, json_t **ret, struct dmig_error **err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int dmig_docker__post(struct dmig_docker *d, const json_t *body, int timeout_ms, json_t **ret,
	struct dmig_error **err, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* A missing object is fine. */
int dmig_docker__delete(struct dmig_docker *d, struct dmig_error **err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* For a URL: all but letters, digits and "-._~/:@" as %XX. Caller frees; NULL: no memory. */
char *dmig_docker__escape(const char *text);

/* ------------------------------------------------------------------ json.c */

static inline void dmig_json_decrefp(json_t **j)
{
	json_decref(*j);
	*j = NULL;
}
#define cleanup_json __attribute__((cleanup(dmig_json_decrefp)))

int dmig_docker__oom(struct dmig_error **err);
/* Text to value: at most max bytes, MAX_DEPTH deep, no key twice. Messages never repeat the text. */
int dmig_docker__json(
	const char *what, const char *text, size_t len, size_t max, json_t **ret, struct dmig_error **err);

/*
 * Reads members and checks their types. The first mistake is kept and everything after it gives empty values,
 * so a function can read what it wants and look at failed once. Absent and null are empty.
 */
struct dmig_docker__reader {
	const char *what; /* for the message: "container" */
	int failed;       /* negative errno */
	struct dmig_error **err;
};
const char *dmig_docker__str(
	struct dmig_docker__reader *r, const json_t *o, const char *key); /* lent, never NULL */
char *dmig_docker__strdup(struct dmig_docker__reader *r, const json_t *o, const char *key); /* caller frees */
bool dmig_docker__bool(struct dmig_docker__reader *r, const json_t *o, const char *key);
json_int_t dmig_docker__int(
	struct dmig_docker__reader *r, const json_t *o, const char *key, json_int_t min, json_int_t max);
json_t *dmig_docker__obj(
	struct dmig_docker__reader *r, const json_t *o, const char *key); /* lent, NULL: absent */
json_t *dmig_docker__arr(
	struct dmig_docker__reader *r, const json_t *o, const char *key); /* lent, NULL: absent */
/* Array of strings; caller frees with dmig_docker__strv_free(). NULL only on failure. */
char **dmig_docker__strv(struct dmig_docker__reader *r, const json_t *o, const char *key);
void dmig_docker__strv_free(char **v);
static inline void dmig_docker__strv_freep(char ***v)
{
	dmig_docker__strv_free(*v);
	*v = NULL;
}
#define cleanup_strv __attribute__((cleanup(dmig_docker__strv_freep)))
int dmig_docker__fail(struct dmig_docker__reader *r, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Writes members; a failure (no memory) sticks. Takes the reference of value; NULL value counts as a failure.
 */
struct dmig_docker__writer {
	bool failed;
};
void dmig_docker__put(struct dmig_docker__writer *w, json_t *o, const char *key, json_t *value);
void dmig_docker__add(struct dmig_docker__writer *w, json_t *array, json_t *value);

/* Without a reader, for text that was checked before: "" or NULL when it is something else. */
static inline const char *dmig_docker__text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

/* ------------------------------------------------------------------ names.c */

bool dmig_docker__is_id(const char *s);     /* 64 hexadecimal digits */
bool dmig_docker__is_digest(const char *s); /* sha256:64 hexadecimal digits */
bool dmig_docker__is_name(const char *s);   /* [A-Za-z0-9][A-Za-z0-9_.-]*, at most 255 */
bool dmig_docker__is_image_name(const char *s);
bool dmig_docker__is_network_name(const char *s);
bool dmig_docker__is_path(const char *s); /* absolute, no "..", no control characters */
/* Lexically clean: no "//", "/./", trailing "/". Caller frees; NULL: no memory. */
char *dmig_docker__clean_path(const char *path);
/* Is path at or below dir? Both clean. */
bool dmig_docker__below(const char *path, const char *dir);

/* ------------------------------------------------------------------ addr.c */

struct dmig_docker__addr {
	int family; /* AF_INET, AF_INET6 */
	unsigned char bytes[16];
	int bits; /* of the prefix */
};
/* "10.0.0.1", "10.0.0.0/8", IPv6 likewise. 0 or -EINVAL. */
int dmig_docker__addr_parse(const char *text, struct dmig_docker__addr *ret);
bool dmig_docker__addr_in(const struct dmig_docker__addr *a, const struct dmig_docker__addr *net);
bool dmig_docker__addr_overlap(const struct dmig_docker__addr *a, const struct dmig_docker__addr *b);
/* The MAC address that bridges derive from an IPv4 address before Docker 28. */
bool dmig_docker__mac_is_derived(const char *mac, const char *ipv4);

/* ------------------------------------------------------------------ network.c, volume.c */

/* Is the member absent or an object of short strings? A mistake goes to the reader. */
json_t *dmig_docker__strmap(struct dmig_docker__reader *r, const json_t *o, const char *key);

/* Networks that every engine has and nobody creates: bridge, host, none, default. */
bool dmig_docker__network_builtin(const char *name);
/* Entry of list with exactly this name, else NULL. Lent. */
json_t *dmig_docker__network_named(const json_t *list, const char *name);
int dmig_docker__networks(struct dmig_docker *d, json_t **ret, struct dmig_error **err);
/* Types and addresses of a description: 0 or -EINVAL. */
int dmig_docker__network_check(const json_t *network, struct dmig_error **err);
enum dmig_docker__holds {
	HOLDS_NOT,   /* no subnet of the network contains the address */
	HOLDS_TAKEN, /* it is the gateway's or an auxiliary address */
	HOLDS_IT,
};
enum dmig_docker__holds dmig_docker__network_holds(const json_t *network, const char *address);
/* First subnet of a that overlaps one of b, or NULL. Lent. */
const char *dmig_docker__network_overlap(const json_t *a, const json_t *b);
/* Could its subnet have been chosen by Docker itself? Such a network may refuse a chosen address. */
bool dmig_docker__network_looks_automatic(const json_t *network);
/* Make it as described. *ret_id is the new id. */
int dmig_docker__network_create(
	struct dmig_docker *d, const json_t *network, char **ret_id, struct dmig_error **err);

enum dmig_docker__volume_kind {
	VOLUME_PLAIN,  /* a folder below Docker's root */
	VOLUME_BIND,   /* local driver, binds a host path */
	VOLUME_TMPFS,  /* local driver, memory */
	VOLUME_DEVICE, /* local driver, a block device: cannot move */
	VOLUME_SHARED, /* network storage or a plugin: attached on the other side, not copied */
};
enum dmig_docker__volume_kind dmig_docker__volume_kind(const char *driver, const json_t *options);
/* What a local volume mounts: a host path or device, else "". Lent. */
const char *dmig_docker__volume_device(const json_t *volume);
int dmig_docker__volume_check(const json_t *volume, struct dmig_error **err);
/* Is mount i a volume that no mount before it is? One may be mounted at several places. */
bool dmig_docker__is_volume_first(const struct dmig_container *c, size_t i);
/* NULL in *ret when there is none. */
int dmig_docker__volume_get(struct dmig_docker *d, const char *name, json_t **ret, struct dmig_error **err);
int dmig_docker__volume_create(struct dmig_docker *d, const json_t *volume, struct dmig_error **err);
/* Is it one that a move left here, untouched since? stale.c */
bool dmig_docker__is_stale(const char *state_dir, const json_t *volume);
/* From now on it is replaced: it counts as stale, however it looks. */
int dmig_docker__stale_take(const char *state_dir, const json_t *volume, struct dmig_error **err);
/* Anything in its mount point? What cannot be read counts as data. */
bool dmig_docker__volume_holds_data(const json_t *volume);

/* ------------------------------------------------------------------ spec.c, schema.c */

struct dmig_spec {
	json_t *root;
	json_t *inspect, *config, *host_config; /* lent from root */
	json_t *image, *networks, *volumes;     /* lent from root */
	struct dmig_container *container;
};
/* Description of a network or volume by name, or NULL. Lent. */
json_t *dmig_docker__spec_network(const struct dmig_spec *s, const char *name);
json_t *dmig_docker__spec_volume(const struct dmig_spec *s, const char *name);

/* Members of HostConfig. */
enum dmig_docker__field {
	FIELD_UNKNOWN = 0,
	FIELD_FREE,    /* anybody may ask for it */
	FIELD_GUARDED, /* check_allow.c has a rule for it */
};
enum dmig_docker__field dmig_docker__host_field(const char *key);
/* Spelling of the members of Config and HostConfig: 0 or -EINVAL. */
int dmig_docker__check_fields(const json_t *config, const json_t *host_config, struct dmig_error **err);
/* Has the object only members with these names (NULL-terminated)? */
bool dmig_docker__only_members(const json_t *object, const char *const *names);

/* ------------------------------------------------------------------ endpoint.c, mounts.c, body.c */

/* The network that HostConfig.NetworkMode means, or NULL (none, host, container:X). Lent. */
const struct dmig_network *dmig_docker__primary(const struct dmig_container *c);
/* Shall the address of n be kept in network, as it is here (NULL: it will be made as described)? */
bool dmig_docker__keeps_address(
	const struct dmig_spec *s, const struct dmig_network *n, const json_t *network, bool tcp_close);
/* The endpoint's configuration as create and connect want it. keep: with its address. NULL: no memory. */
json_t *dmig_docker__endpoint(
	const struct dmig_spec *s, const struct dmig_network *n, int api_minor, bool keep);
/* MAC address that must be asked for to get it here, or NULL when it comes by itself or cannot be chosen.
 * Lent. */
const char *dmig_docker__wanted_mac(const struct dmig_network *n, int api_minor, bool keep);
/* The same, and with a new address the one that a person chose. Lent. */
const char *dmig_docker__endpoint_mac(
	const struct dmig_spec *s, const struct dmig_network *n, int api_minor, bool keep);

/* HostConfig.Binds and .Mounts that give the container its volumes by name. host: a copy of HostConfig,
 * changed. */
/* Whether Docker makes this volume by itself, with the container and under a new name. */
bool dmig_docker__is_unnamed(const struct dmig_spec *s, const struct dmig_mount *m);
int dmig_docker__rewrite_mounts(const struct dmig_spec *s, json_t *host, struct dmig_error **err);

struct dmig_docker__body_opts {
	const char *image; /* as it shall show in Config.Image */
	const char *runtime;
	int api_minor;
	bool tcp_close;
	const json_t *networks; /* list of the networks here */
};
/* Body of containers/create. */
int dmig_docker__body(const struct dmig_spec *s, const struct dmig_docker__body_opts *o, json_t **ret,
	struct dmig_error **err);

/* ------------------------------------------------------------------ image_equal.c, tar.c */

/* Do two images start the same thing from the same layers? Configurations as in image inspect, layers as diff
 * IDs. */
bool dmig_docker__image_equal(
	const json_t *config_a, const json_t *layers_a, const json_t *config_b, const json_t *layers_b);
size_t dmig_docker__layers_common(const json_t *layers_a, const json_t *layers_b);
/*
 * Drop the contents of the first `skip` layers from the `docker save` archive in fd, in place; a layer that
 * is needed again further up stays. -EBADMSG: not an archive that we understand; fd's contents are then
 * undefined.
 */
int dmig_docker__tar_drop_layers(int fd, size_t skip, struct dmig_error **err);

/* ------------------------------------------------------------------ host.c, check_allow.c */

/* upperdir of the overlay at / in the text of /proc/PID/mountinfo. -EOPNOTSUPP: not an overlay. Caller frees.
 */
int dmig_docker__mountinfo_upper(const char *text, size_t len, char **ret);
/* Refuse what --allow does not permit. networks: list of the networks here. */
void dmig_docker__check_allow(const struct dmig_spec *s, const struct dmig_allow *allow,
	const json_t *networks, struct dmig_findings *f);

#endif
