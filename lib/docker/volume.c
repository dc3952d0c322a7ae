/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "docker/internal.h"

/* Filesystems of the local driver's option "type" that live on another machine. */
static bool network_filesystem(const char *type)
{
	static const char *const names[] = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "glusterfs", "9p",
		"afs", "lustre", "beegfs", "ocfs2", "gfs2"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(type, names[i]))
			return true;
	return !strncmp(type, "fuse", 4);
}

enum dmig_docker__volume_kind dmig_docker__volume_kind(const char *driver, const json_t *options)
{
	const char *type = dmig_docker__text(options, "type");
	if (driver && *driver && strcmp(driver, "local"))
		return VOLUME_SHARED;
	if (network_filesystem(type))
		return VOLUME_SHARED;
	if (!strcmp(type, "tmpfs"))
		return VOLUME_TMPFS;
	if (!*dmig_docker__text(options, "device"))
		return VOLUME_PLAIN;
	return !*type || !strcmp(type, "none") ? VOLUME_BIND : VOLUME_DEVICE;
}

const char *dmig_docker__volume_device(const json_t *volume)
{
	json_t *options = json_object_get(volume, "Options");
	switch (dmig_docker__volume_kind(dmig_docker__text(volume, "Driver"), options)) {
	case VOLUME_BIND:
	case VOLUME_DEVICE:
		return dmig_docker__text(options, "device");
	default:
		return "";
	}
}

bool dmig_docker__is_volume_first(const struct dmig_container *c, size_t i)
{
	if (c->mounts[i].type != DMIG_MOUNT_VOLUME)
		return false;
	for (size_t j = 0; j < i; j++)
		if (c->mounts[j].type == DMIG_MOUNT_VOLUME && !strcmp(c->mounts[j].name, c->mounts[i].name))
			return false;
	return true;
}

int dmig_docker__volume_check(const json_t *volume, struct dmig_error **err)
{
	struct dmig_docker__reader r = {.what = "volume", .err = err};
	if (!json_is_object(volume))
		return dmig_docker__fail(&r, EINVAL, "not an object");
	if (!dmig_docker__is_name(dmig_docker__str(&r, volume, "Name")))
		dmig_docker__fail(&r, EINVAL, "Name is not a name");
	const char *driver = dmig_docker__str(&r, volume, "Driver");
	if (*driver && !dmig_docker__is_image_name(driver))
		dmig_docker__fail(&r, EINVAL, "Driver is not a name");
	dmig_docker__strmap(&r, volume, "Options");
	dmig_docker__strmap(&r, volume, "Labels");
	return r.failed;
}

int dmig_docker__volume_get(struct dmig_docker *d, const char *name, json_t **ret, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL;
	*ret = NULL;
	if (!dmig_docker__is_name(name))
		return dmig_error_set(err, EINVAL, "not a volume name");
	int r = dmig_docker__get(d, ret, &e, "/volumes/%s", name);
	if (r == 0 || r == -ENOENT)
		return 0;
	return dmig_error_set(err, -r, "volume %s: %s", name, e ? e->message : "");
}

int dmig_docker__volume_create(struct dmig_docker *d, const json_t *volume, struct dmig_error **err)
{
	struct dmig_docker__writer w = {0};
	cleanup_json json_t *body = json_object();
	const char *driver = dmig_docker__text(volume, "Driver"), *name = dmig_docker__text(volume, "Name");
	json_t *options = json_object_get(volume, "Options"), *labels = json_object_get(volume, "Labels");
	dmig_docker__put(&w, body, "Name", json_string(name));
	dmig_docker__put(&w, body, "Driver", json_string(*driver ? driver : "local"));
	if (json_object_size(options))
		dmig_docker__put(&w, body, "DriverOpts", json_incref(options));
	if (json_object_size(labels))
		dmig_docker__put(&w, body, "Labels", json_incref(labels));
	if (w.failed)
		return dmig_docker__oom(err);
	int r = dmig_docker__post(d, body, 0, NULL, err, "/volumes/create");
	return r < 0 ? dmig_error_wrap(err, "create volume %s", name) : 0;
}

bool dmig_docker__volume_holds_data(const json_t *volume)
{
	const char *path = dmig_docker__text(volume, "Mountpoint");
	cleanup_dir DIR *dir = *path ? opendir(path) : NULL;
	struct dirent *e;
	if (!dir)
		return *path && errno != ENOENT;
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			return true;
	return false;
}
