/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "docker/internal.h"

/*
 * Names of the fields that Docker reads. Its reader ignores the case of letters, and Config is spread over
 * the request itself, so a description with "hostconfig" or "privileged" in it would say something else to
 * Docker than to our checks. Hence: plain ASCII names only, none that differs from a known one by case alone,
 * none twice.
 */

static const struct {
	const char *name;
	enum dmig_docker__field kind;
} host_fields[] = {
	{"Annotations", FIELD_GUARDED},
	{"AutoRemove", FIELD_FREE},
	{"Binds", FIELD_GUARDED},
	{"BlkioDeviceReadBps", FIELD_FREE},
	{"BlkioDeviceReadIOps", FIELD_FREE},
	{"BlkioDeviceWriteBps", FIELD_FREE},
	{"BlkioDeviceWriteIOps", FIELD_FREE},
	{"BlkioWeight", FIELD_FREE},
	{"BlkioWeightDevice", FIELD_FREE},
	{"CapAdd", FIELD_GUARDED},
	{"CapDrop", FIELD_FREE},
	{"Cgroup", FIELD_GUARDED},
	{"CgroupParent", FIELD_GUARDED},
	{"CgroupnsMode", FIELD_FREE},
	{"ConsoleSize", FIELD_FREE},
	{"ContainerIDFile", FIELD_FREE}, /* only the command line writes it */
	{"CpuCount", FIELD_FREE},
	{"CpuPercent", FIELD_FREE},
	{"CpuPeriod", FIELD_FREE},
	{"CpuQuota", FIELD_FREE},
	{"CpuRealtimePeriod", FIELD_FREE},
	{"CpuRealtimeRuntime", FIELD_FREE},
	{"CpuShares", FIELD_FREE},
	{"CpusetCpus", FIELD_FREE},
	{"CpusetMems", FIELD_FREE},
	{"DeviceCgroupRules", FIELD_GUARDED},
	{"DeviceRequests", FIELD_GUARDED},
	{"Devices", FIELD_GUARDED},
	{"Dns", FIELD_FREE},
	{"DnsOptions", FIELD_FREE},
	{"DnsSearch", FIELD_FREE},
	{"ExtraHosts", FIELD_FREE},
	{"GroupAdd", FIELD_FREE},
	{"IOMaximumBandwidth", FIELD_FREE},
	{"IOMaximumIOps", FIELD_FREE},
	{"Init", FIELD_FREE},
	{"IpcMode", FIELD_GUARDED},
	{"Isolation", FIELD_FREE},
	{"KernelMemory", FIELD_FREE},
	{"KernelMemoryTCP", FIELD_FREE},
	{"Links", FIELD_GUARDED},
	{"LogConfig", FIELD_GUARDED},
	{"MaskedPaths", FIELD_GUARDED},
	{"Memory", FIELD_FREE},
	{"MemoryReservation", FIELD_FREE},
	{"MemorySwap", FIELD_FREE},
	{"MemorySwappiness", FIELD_FREE},
	{"Mounts", FIELD_GUARDED},
	{"NanoCpus", FIELD_FREE},
	{"NetworkMode", FIELD_GUARDED},
	{"OomKillDisable", FIELD_FREE},
	{"OomScoreAdj", FIELD_FREE},
	{"PidMode", FIELD_GUARDED},
	{"PidsLimit", FIELD_FREE},
	{"PortBindings", FIELD_FREE},
	{"Privileged", FIELD_GUARDED},
	{"PublishAllPorts", FIELD_FREE},
	{"ReadonlyPaths", FIELD_GUARDED},
	{"ReadonlyRootfs", FIELD_FREE},
	{"RestartPolicy", FIELD_FREE},
	{"Runtime", FIELD_FREE}, /* always replaced by ours */
	{"SecurityOpt", FIELD_GUARDED},
	{"ShmSize", FIELD_FREE},
	{"StorageOpt", FIELD_FREE},
	{"Sysctls", FIELD_FREE}, /* Docker itself takes only those of namespaces */
	{"Tmpfs", FIELD_FREE},
	{"UTSMode", FIELD_GUARDED},
	{"Ulimits", FIELD_FREE},
	{"UsernsMode", FIELD_FREE},
	{"VolumeDriver", FIELD_GUARDED},
	{"VolumesFrom", FIELD_GUARDED},
};

static const char *const config_fields[] = {
	"ArgsEscaped",
	"AttachStderr",
	"AttachStdin",
	"AttachStdout",
	"Cmd",
	"Domainname",
	"Entrypoint",
	"Env",
	"ExposedPorts",
	"Healthcheck",
	"Hostname",
	"Image",
	"Labels",
	"MacAddress",
	"NetworkDisabled",
	"OnBuild",
	"OpenStdin",
	"Shell",
	"StdinOnce",
	"StopSignal",
	"StopTimeout",
	"Tty",
	"User",
	"Volumes",
	"WorkingDir",
	/* Beside Config in the request, never in it. */
	"HostConfig",
	"NetworkingConfig",
};

enum dmig_docker__field dmig_docker__host_field(const char *key)
{
	for (size_t i = 0; i < sizeof(host_fields) / sizeof(*host_fields); i++)
		if (!strcmp(host_fields[i].name, key))
			return host_fields[i].kind;
	return FIELD_UNKNOWN;
}

static bool plain_name(const char *key)
{
	if (*key < 'A' || *key > 'Z')
		return false;
	for (; *key; key++)
		if (!((*key >= 'A' && *key <= 'Z') || (*key >= 'a' && *key <= 'z') ||
			    (*key >= '0' && *key <= '9')))
			return false;
	return true;
}

/* Known names that this one imitates? */
static bool imitates_host_field(const char *key)
{
	for (size_t i = 0; i < sizeof(host_fields) / sizeof(*host_fields); i++)
		if (!strcasecmp(host_fields[i].name, key) && strcmp(host_fields[i].name, key))
			return true;
	return false;
}

static bool imitates_config_field(const char *key)
{
	for (size_t i = 0; i < sizeof(config_fields) / sizeof(*config_fields); i++)
		if (!strcasecmp(config_fields[i], key) && strcmp(config_fields[i], key))
			return true;
	return !strcmp(key, "HostConfig") || !strcmp(key, "NetworkingConfig");
}

static bool same_but_case(const json_t *object, const char *key)
{
	const char *other;
	json_t *v;
	json_object_foreach(
		(json_t *)object, other, v) if (strcmp(other, key) && !strcasecmp(other, key)) return true;
	return false;
}

static int check_names(
	const json_t *object, bool (*imitates)(const char *), const char *what, struct dmig_error **err)
{
	const char *key;
	json_t *v;
	json_object_foreach(
		(json_t *)object, key, v) if (!plain_name(key) || imitates(key) ||
					      same_but_case(object, key)) return dmig_error_set(err, EINVAL,
		"container: %s has a member with a misleading name", what);
	return 0;
}

int dmig_docker__check_fields(const json_t *config, const json_t *host_config, struct dmig_error **err)
{
	int r = check_names(config, imitates_config_field, "Config", err);
	return r < 0 ? r : check_names(host_config, imitates_host_field, "HostConfig", err);
}

/*
 * The same for the entries of HostConfig.Mounts, Devices and the like, which are lists of objects: names may
 * only be the given ones.
 */
bool dmig_docker__only_members(const json_t *object, const char *const *names)
{
	const char *key;
	json_t *v;
	json_object_foreach((json_t *)object, key, v)
	{
		size_t i = 0;
		while (names[i] && strcmp(names[i], key))
			i++;
		if (!names[i])
			return false;
	}
	return true;
}
