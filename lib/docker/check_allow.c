/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "docker/check.h"

/*
 * What a peer may ask of this host. The table has one rule for each guarded member of HostConfig; whatever
 * else reaches outside the container (volumes on host paths, networks on host interfaces) has a rule of its
 * own below.
 */
struct asking {
	const struct dmig_spec *s;
	const struct dmig_allow *allow;
	const json_t *networks;
	struct dmig_findings *f;
};

static void refuse(const struct asking *a, const char *what, const char *why, const char *option)
{
	dmig_findings_add(&a->f->blockers, "%s: %s: allow it with dmigrated --allow %s", what, why, option);
}

/* ------------------------------------------------------------------ paths */

/* Where a path leads to: links resolved as far as it exists. Caller frees. */
static char *resolved(const char *path)
{
	char buf[PATH_MAX];
	cleanup_free char *head = dmig_docker__clean_path(path);
	if (!head)
		return NULL;
	size_t full = strlen(head), len = full;
	for (;;) {
		if (realpath(len ? head : "/", buf))
			break;
		if (errno != ENOENT || !len)
			return NULL;
		while (len && head[--len] != '/')
			;
		head[len] = '\0';
	}
	/* The part that does not exist cannot be a link. */
	cleanup_free char *clean = dmig_docker__clean_path(path);
	size_t base = strcmp(buf, "/") ? strlen(buf) : 0;
	char *out = clean && base + full - len < PATH_MAX ? malloc(base + full - len + 2) : NULL;
	if (!out)
		return NULL;
	memcpy(out, buf, base);
	strcpy(out + base, clean + len);
	if (!*out)
		strcpy(out, "/");
	return out;
}

static bool path_allowed(const struct asking *a, const char *path)
{
	cleanup_free char *clean = dmig_docker__clean_path(path), *real = resolved(path);
	if (a->allow->any_bind)
		return true;
	if (!clean || !real || !dmig_docker__is_path(path))
		return false;
	for (char **p = a->allow->binds; p && *p; p++) {
		cleanup_free char *prefix = dmig_docker__clean_path(*p), *real_prefix = resolved(*p);
		/* As it is written, and where it leads to: a link below the prefix must not lead out of it.
		 */
		if (prefix && real_prefix && dmig_docker__below(clean, prefix) &&
			dmig_docker__below(real, real_prefix))
			return true;
	}
	return false;
}

static void check_path(const struct asking *a, const char *path)
{
	char option[80];
	snprintf(option, sizeof(option), "bind=%.60s", path);
	if (!path_allowed(a, path))
		refuse(a, path, "a path of this host", option);
}

/* ------------------------------------------------------------------ rules for members of HostConfig */

typedef void rule_fn(const struct asking *a, const char *field, const json_t *v);

/* Nothing that --allow could name. */
static void never(const struct asking *a, const char *field, const json_t *v)
{
	(void)v;
	dmig_findings_add(
		&a->f->blockers, "%s: a peer may not ask for it: create the container without it", field);
}

static void needs_privileged(const struct asking *a, const char *field, const json_t *v)
{
	(void)v;
	if (!a->allow->privileged)
		refuse(a, field, "it loosens the walls of the container", "privileged");
}

static void namespace_mode(const struct asking *a, const char *field, const json_t *v)
{
	static const char *const fine[] = {"", "private", "shareable", "none"};
	const char *mode = json_string_value(v);
	for (size_t i = 0; mode && i < sizeof(fine) / sizeof(*fine); i++)
		if (!strcmp(mode, fine[i]))
			return;
	if (mode && !strcmp(mode, "host") && !strcmp(field, "PidMode") && a->allow->host_pid)
		return;
	if (!strcmp(field, "PidMode"))
		refuse(a, field, "it shares processes of this host", "host_pid");
	else
		needs_privileged(a, field, v);
}

static void network_mode(const struct asking *a, const char *field, const json_t *v)
{
	const char *mode = json_string_value(v);
	bool shared = !mode || !strcmp(mode, "host") || !strncmp(mode, "container:", 10);
	if (shared && !a->allow->host_network)
		refuse(a, field, "it shares a network of this host", "host_network");
}

static void capabilities(const struct asking *a, const char *field, const json_t *v)
{
	(void)v;
	if (!a->allow->any_capability && !a->allow->privileged)
		refuse(a, field, "capabilities beyond Docker's own set", "any_capability");
}

static void any_device(const struct asking *a, const char *field, const json_t *v)
{
	(void)v;
	if (!a->allow->any_device && !a->allow->privileged)
		refuse(a, field, "devices of this host", "any_device");
}

static bool device_allowed(const struct asking *a, const char *path)
{
	cleanup_free char *clean = dmig_docker__clean_path(path), *real = resolved(path);
	if (a->allow->any_device || a->allow->privileged)
		return true;
	for (char **p = a->allow->devices; clean && real && p && *p; p++)
		if (!strcmp(*p, clean) && !strcmp(*p, real))
			return true;
	return false;
}

static void devices(const struct asking *a, const char *field, const json_t *list)
{
	static const char *const names[] = {"PathOnHost", "PathInContainer", "CgroupPermissions", NULL};
	json_t *v;
	size_t i;
	json_array_foreach(list, i, v)
	{
		const char *path = dmig_docker__text(v, "PathOnHost");
		if (!dmig_docker__only_members(v, names))
			any_device(a, field, v);
		else if (!device_allowed(a, path))
			refuse(a, path, "a device of this host", "device=PATH");
	}
	if (!json_is_array(list))
		any_device(a, field, list);
}

/* "SOURCE:PLACE[:options]"; without a leading slash it is a volume. */
static void binds(const struct asking *a, const char *field, const json_t *list)
{
	json_t *v;
	size_t i;
	if (!json_is_array(list))
		never(a, field, list);
	json_array_foreach(list, i, v)
	{
		const char *text = json_is_string(v) ? json_string_value(v) : "/";
		cleanup_free char *source = strndup(text, strcspn(text, ":"));
		if (!source || (*source == '/' && strchr(text, ':')))
			check_path(a, source ? source : "/");
	}
}

static void volume_options(const struct asking *a, const json_t *options)
{
	static const char *const names[] = {"NoCopy", "Labels", "DriverConfig", "Subpath", NULL};
	static const char *const driver_names[] = {"Name", "Options", NULL};
	json_t *driver = json_object_get(options, "DriverConfig");
	if (!dmig_docker__only_members(options, names) || !dmig_docker__only_members(driver, driver_names))
		never(a, "Mounts", options);
	/* The volume is made from its own description, so these only repeat it; a device would be used for a
	 * new one. */
	const char *device = dmig_docker__text(json_object_get(driver, "Options"), "device");
	if (*device)
		check_path(a, device);
}

static void mounts(const struct asking *a, const char *field, const json_t *list)
{
	static const char *const names[] = {"Type", "Source", "Target", "ReadOnly", "Consistency",
		"BindOptions", "VolumeOptions", "TmpfsOptions", NULL};
	json_t *v;
	size_t i;
	if (!json_is_array(list))
		never(a, field, list);
	json_array_foreach(list, i, v)
	{
		const char *type = dmig_docker__text(v, "Type");
		if (!json_is_object(v) || !dmig_docker__only_members(v, names))
			never(a, field, v);
		else if (!strcmp(type, "bind"))
			check_path(a, dmig_docker__text(v, "Source"));
		else if (!strcmp(type, "volume"))
			volume_options(a, json_object_get(v, "VolumeOptions"));
		else if (strcmp(type, "tmpfs"))
			never(a, field, v);
	}
}

static void security_options(const struct asking *a, const char *field, const json_t *list)
{
	json_t *v;
	size_t i;
	json_array_foreach(list, i, v)
	{
		const char *text = json_is_string(v) ? json_string_value(v) : "";
		if (strcmp(text, "no-new-privileges") && strcmp(text, "no-new-privileges:true") &&
			strcmp(text, "no-new-privileges=true"))
			needs_privileged(a, field, v);
	}
	if (!json_is_array(list))
		needs_privileged(a, field, list);
}

/* What every version of Docker hides or write-protects; a list without them was opened on purpose. */
static void protected_paths(const struct asking *a, const char *field, const json_t *list)
{
	static const char *const masked[] = {
		"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware", NULL};
	static const char *const read_only[] = {
		"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", NULL};
	const char *const *wanted = !strcmp(field, "MaskedPaths") ? masked : read_only;
	json_t *v;
	size_t i;
	for (; *wanted; wanted++) {
		bool found = false;
		json_array_foreach(list, i, v) found |=
			json_is_string(v) && !strcmp(json_string_value(v), *wanted);
		if (!found) {
			needs_privileged(a, field, list);
			return;
		}
	}
}

static void log_config(const struct asking *a, const char *field, const json_t *v)
{
	static const char *const names[] = {"Type", "Config", NULL}, *const fine[] = {"", "json-file",
									     "local", "none", "journald"};
	const char *type = dmig_docker__text(v, "Type");
	if (!dmig_docker__only_members(v, names))
		never(a, field, v);
	for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++)
		if (!strcmp(type, fine[i]))
			return;
	if (!a->allow->host_network)
		refuse(a, field, "Docker itself would send the log over the network of this host",
			"host_network");
}

static const struct {
	const char *field;
	rule_fn *rule;
	bool even_empty; /* an empty list says something as well */
} rules[] = {
	{"Annotations", needs_privileged, false}, /* org.criu.config and the like reach the runtime */
	{"Binds", binds, false},
	{"CapAdd", capabilities, false},
	{"Cgroup", needs_privileged, false},
	{"CgroupParent", needs_privileged, false},
	{"DeviceCgroupRules", any_device, false},
	{"DeviceRequests", any_device, false},
	{"Devices", devices, false},
	{"IpcMode", namespace_mode, false},
	{"Links", needs_privileged, false}, /* the other container's environment is shown */
	{"LogConfig", log_config, false},
	{"MaskedPaths", protected_paths, true},
	{"Mounts", mounts, false},
	{"NetworkMode", network_mode, false},
	{"PidMode", namespace_mode, false},
	{"Privileged", needs_privileged, false},
	{"ReadonlyPaths", protected_paths, true},
	{"SecurityOpt", security_options, false},
	{"UTSMode", namespace_mode, false},
	{"VolumeDriver", never, false},
	{"VolumesFrom", never, false},
};

static bool says_nothing(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_NULL:
	case JSON_FALSE:
		return true;
	case JSON_STRING:
		return json_string_length(v) == 0;
	case JSON_INTEGER:
		return json_integer_value(v) == 0;
	case JSON_ARRAY:
		return json_array_size(v) == 0;
	case JSON_OBJECT:
		return json_object_size(v) == 0;
	default:
		return false;
	}
}

static void check_field(const struct asking *a, const char *field, const json_t *v)
{
	bool empty = says_nothing(v);
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (strcmp(rules[i].field, field))
			continue;
		if (!empty || (rules[i].even_empty && !json_is_null(v)))
			rules[i].rule(a, field, v);
		return;
	}
	/* A member that this version does not know could open anything. */
	if (!empty && dmig_docker__host_field(field) != FIELD_FREE)
		needs_privileged(a, field, v);
}

/* ------------------------------------------------------------------ beside HostConfig */

static void check_volume(const struct asking *a, const json_t *volume)
{
	const char *name = dmig_docker__text(volume, "Name"), *driver = dmig_docker__text(volume, "Driver");
	const char *device = dmig_docker__volume_device(volume);
	if (*device)
		check_path(a, device);
	else if (dmig_docker__volume_kind(driver, json_object_get(volume, "Options")) == VOLUME_SHARED &&
		 !a->allow->any_bind)
		refuse(a, name, "a volume on storage that this host would have to reach", "any_bind");
}

/* A network that is here was made by the operator; one that is not may only be a bridge of its own. */
static void check_network(const struct asking *a, const json_t *network)
{
	const char *name = dmig_docker__text(network, "Name");
	json_t *options = json_object_get(network, "Options");
	bool plain = !strcmp(dmig_docker__text(network, "Driver"), "bridge") &&
		     !json_object_get(options, "com.docker.network.bridge.name");
	if (!plain && !a->allow->host_network && !dmig_docker__network_builtin(name) &&
		!dmig_docker__network_named(a->networks, name))
		refuse(a, name, "a network on interfaces of this host: create it beforehand or",
			"host_network");
}

void dmig_docker__check_allow(const struct dmig_spec *s, const struct dmig_allow *allow,
	const json_t *networks, struct dmig_findings *f)
{
	const struct asking a = {.s = s, .allow = allow, .networks = networks, .f = f};
	const char *field;
	json_t *v;
	size_t i;
	json_object_foreach(s->host_config, field, v) check_field(&a, field, v);
	json_array_foreach(s->volumes, i, v) check_volume(&a, v);
	json_array_foreach(s->networks, i, v) check_network(&a, v);
}
