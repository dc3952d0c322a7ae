/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "fs/internal.h"
#include "util/log.h"
#include "wire/check.h"

/* Bytes of a path that a message shows; the rest is of no use to a reader. */
#define SHOWN 512

static const char *advice(int code)
{
	switch (code) {
	case ENOSPC:
		return ": free some space (or inodes: see df -i) there and try again";
	case EDQUOT:
		return ": raise the disk quota there and try again";
	case EIO:
		return ": the disk reports a fault, see dmesg there";
	case EROFS:
		return ": mount it writable";
	case EBUSY:
		return ": something is mounted on it";
	case EXDEV:
		return ": another filesystem is mounted on it";
	case EMFILE:
	case ENFILE:
		return ": raise the limit of open files (ulimit -n)";
	default:
		return "";
	}
}

/* Names hold any byte, a message is one line of text. */
static void show(const char *path, char to[SHOWN])
{
	to[0] = '/';
	dmig_wire_text_clean(path, to + 1, SHOWN - 1);
}

int dmig_fs__fail(struct dmig_error **err, int code, const char *doing, const char *path)
{
	char shown[SHOWN];
	show(path, shown);
	return dmig_error_set(err, code, "cannot %s %s: %s%s", doing, shown, strerror(code), advice(code));
}

int dmig_fs__refuse(struct dmig_error **err, int code, const char *path, const char *problem)
{
	char shown[SHOWN];
	show(path, shown);
	return dmig_error_set_class(err, DMIG_ERR_REFUSED, code, "%s: %s", shown, problem);
}

void dmig_fs__warn(const char *path, const char *problem)
{
	char shown[SHOWN];
	show(path, shown);
	log_warn("%s: %s", shown, problem);
}
