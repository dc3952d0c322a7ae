/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "criu/internal.h"
#include "util/cleanup.h"

/*
 * CRIU copies a deleted file that is still open into the images, 1 MiB at most by default, and fails above
 * that. Databases keep larger temporary files. This is a limit and no reservation; the copy happens while
 * frozen, so it is not unlimited either.
 */
#define GHOST_LIMIT "512M"

/* The file has no quoting that survives every character: spaces end a value and # starts a comment, even in
 * quotes. */
static bool safe_in_config(const char *path)
{
	return path[0] == '/' && strpbrk(path, " \t\n\r\"\\#") == NULL;
}

static int check_paths(
	const struct dmig_dump_opts *o, const struct dmig_dump_facts *facts, struct dmig_error **err)
{
	const char *bad = NULL;
	if (!safe_in_config(facts->notify_path))
		bad = facts->notify_path;
	else if (!facts->has_notify_socket && o->hook && !safe_in_config(o->hook))
		bad = o->hook;
	if (bad)
		return dmig_error_set(err, EINVAL, "path %s cannot stand in CRIU's configuration", bad);
	if (!facts->has_notify_socket && !o->hook)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, ENOTSUP,
			"this CRIU has no notify-socket and there is no dmigrate-hook");
	return 0;
}

static void write_options(FILE *f, const struct dmig_dump_opts *o, const struct dmig_dump_facts *facts)
{
	if (facts->has_notify_socket)
		fprintf(f, "notify-socket %s\n", facts->notify_path);
	else
		fprintf(f, "action-script %s\n", o->hook);
	/* We cut the host's end of the links ourselves at post-freeze; CRIU's own lock spawns iptables while
	 * frozen. */
	fprintf(f, "network-lock skip\n");
	fprintf(f, "ghost-limit " GHOST_LIMIT "\n");
	if (o->log_level)
		fprintf(f, "verbosity %d\n", o->log_level);
	/* Connections are not dumped; inventory.img says so to the restore. */
	if (o->tcp_close)
		fprintf(f, "tcp-close\n");
	if (o->skip_in_flight)
		fprintf(f, "skip-in-flight\n");
	if (o->inline_tmpfs && facts->has_inline_tmpfs)
		fprintf(f, "inline-tmpfs\n"); /* starts no tar and gzip while frozen */
	if (o->external_netns)
		fprintf(f, "external net[%" PRIu64 "]:extRootNetNS\n", facts->netns_inode);
	if (o->tty)
		fprintf(f, "external mnt[/dev/pts]:/dev/pts\nexternal tty[%" PRIx64 ":%" PRIx64 "]\n",
			facts->tty.rdev, facts->tty.dev);
}

int dmig_criu__config(const struct dmig_dump_opts *o, const struct dmig_dump_facts *facts, char **ret,
	struct dmig_error **err)
{
	int r = check_paths(o, facts, err);
	if (r < 0)
		return r;
	size_t len;
	FILE *f = open_memstream(ret, &len);
	if (!f)
		return dmig_error_set(err, ENOMEM, "out of memory");
	write_options(f, o, facts);
	if (fclose(f) == 0)
		return 0;
	free(*ret);
	*ret = NULL;
	return dmig_error_set(err, ENOMEM, "out of memory");
}
