/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "wire/check.h"
#include "wire/cursor.h"
#include "wire/messages.h"

#define MODE_BITS 07777u
#define NSEC_PER_SEC 1000000000u

static const char *path_problem(const struct dmig_wire_entry *m, const char *path)
{
	bool may_be_root = m->type == DMIG_ENTRY_FOLDER || m->type == DMIG_ENTRY_FILE;
	if (*path == '\0')
		return may_be_root ? NULL : "no path";
	return dmig_wire_path_ok(path) ? NULL : "path is not a plain relative one";
}

/* Names without an inode of their own carry nothing but names. */
static const char *bare_problem(const struct dmig_wire_entry *m)
{
	bool bare = !m->mode && !m->uid && !m->gid && !m->mtime.sec && !m->mtime.nsec && !m->atime.sec &&
		    !m->atime.nsec && !m->n_xattrs;
	return bare ? NULL : "attributes where none belong";
}

static const char *flags_problem(const struct dmig_wire_entry *m)
{
	uint16_t may = 0;
	if (m->type == DMIG_ENTRY_FOLDER)
		may = DMIG_ENTRY_OPAQUE;
	if (m->type == DMIG_ENTRY_FILE)
		may = DMIG_ENTRY_SIZE_UNKNOWN;
	if (m->flags & ~may)
		return "unknown flags";
	return m->flags & DMIG_ENTRY_SIZE_UNKNOWN && m->size ? "size known and unknown" : NULL;
}

static const char *links_problem(const struct dmig_wire_entry *m, const char *target, const char *hardlink)
{
	if ((m->type == DMIG_ENTRY_SYMLINK) != (*target != '\0'))
		return "link target where none belongs, or none";
	if (m->type != DMIG_ENTRY_HARDLINK)
		return *hardlink ? "hard link where none belongs" : NULL;
	return dmig_wire_path_ok(hardlink) ? NULL : "hard link is not a plain relative path";
}

static const char *entry_problem(const struct dmig_wire_entry *m)
{
	const char *path = m->path ? m->path : "", *target = m->target ? m->target : "";
	const char *hardlink = m->hardlink ? m->hardlink : "", *problem;
	bool device = m->type == DMIG_ENTRY_CHAR || m->type == DMIG_ENTRY_BLOCK;

	if (m->type < DMIG_ENTRY_FILE || m->type > DMIG_ENTRY_WHITEOUT)
		return "unknown type";
	if ((problem = path_problem(m, path)) || (problem = flags_problem(m)) ||
		(problem = links_problem(m, target, hardlink)))
		return problem;
	if (m->mode & ~MODE_BITS)
		return "bad mode";
	if (m->rdev && !device)
		return "device number where none belongs";
	if (m->size > INT64_MAX || (m->size && m->type != DMIG_ENTRY_FILE))
		return "bad size";
	if (m->mtime.nsec >= NSEC_PER_SEC || m->atime.nsec >= NSEC_PER_SEC)
		return "bad time";
	if (m->type == DMIG_ENTRY_HARDLINK || m->type == DMIG_ENTRY_WHITEOUT)
		return bare_problem(m);
	return NULL;
}

static const char *xattr_problem(const struct dmig_wire_xattr *x)
{
	if (!x->name || *x->name == '\0')
		return "xattr without a name";
	return x->len > DMIG_WIRE_MAX_XATTR_VALUE ? "value of an xattr is too long" : NULL;
}

static void put_time(struct dmig_wire_put *p, const struct dmig_wire_time *t)
{
	dmig_wire_put_u64(p, (uint64_t)t->sec);
	dmig_wire_put_u32(p, t->nsec);
}

static void put_xattrs(struct dmig_wire_put *p, const struct dmig_wire_entry *m)
{
	if (m->n_xattrs > DMIG_WIRE_MAX_XATTRS) {
		dmig_wire_put_fail(p, EINVAL);
		return;
	}
	dmig_wire_put_u16(p, m->n_xattrs);
	for (size_t i = 0; i < m->n_xattrs; i++) {
		const struct dmig_wire_xattr *x = &m->xattrs[i];
		if (xattr_problem(x))
			dmig_wire_put_fail(p, EINVAL);
		dmig_wire_put_string(p, x->name, DMIG_WIRE_MAX_XATTR_NAME);
		dmig_wire_put_u32(p, x->len);
		dmig_wire_put_bytes(p, x->value, x->len);
	}
}

ssize_t dmig_wire_encode_entry(const struct dmig_wire_entry *m, void *buf, size_t size)
{
	struct dmig_wire_put p;
	dmig_wire_put_init(&p, buf, size < DMIG_WIRE_MAX_PAYLOAD ? size : DMIG_WIRE_MAX_PAYLOAD);
	if (entry_problem(m))
		dmig_wire_put_fail(&p, EINVAL);
	dmig_wire_put_u16(&p, (uint16_t)m->type);
	dmig_wire_put_u16(&p, m->flags);
	dmig_wire_put_u32(&p, m->mode);
	dmig_wire_put_u32(&p, m->uid);
	dmig_wire_put_u32(&p, m->gid);
	dmig_wire_put_u64(&p, m->rdev);
	dmig_wire_put_u64(&p, m->size);
	put_time(&p, &m->mtime);
	put_time(&p, &m->atime);
	dmig_wire_put_string(&p, m->path, DMIG_WIRE_MAX_PATH);
	dmig_wire_put_string(&p, m->target, DMIG_WIRE_MAX_PATH);
	dmig_wire_put_string(&p, m->hardlink, DMIG_WIRE_MAX_PATH);
	put_xattrs(&p, m);
	return dmig_wire_put_done(&p);
}

static struct dmig_wire_time get_time(struct dmig_wire_get *g)
{
	int64_t sec = (int64_t)dmig_wire_get_u64(g);
	return (struct dmig_wire_time){.sec = sec, .nsec = dmig_wire_get_u32(g)};
}

static void get_xattrs(struct dmig_wire_get *g, struct dmig_wire_entry *ret)
{
	uint16_t n = dmig_wire_get_u16(g);
	if (n > DMIG_WIRE_MAX_XATTRS) {
		dmig_wire_get_fail(g, "too many xattrs");
		return;
	}
	for (ret->n_xattrs = 0; ret->n_xattrs < n && !g->problem; ret->n_xattrs++) {
		struct dmig_wire_xattr *x = &ret->xattrs[ret->n_xattrs];
		x->name = dmig_wire_get_string(g, DMIG_WIRE_MAX_XATTR_NAME);
		x->len = dmig_wire_get_u32(g);
		const char *problem = xattr_problem(x);
		if (problem)
			dmig_wire_get_fail(g, problem);
		x->value = dmig_wire_get_bytes(g, x->len);
	}
}

int dmig_wire_decode_entry(
	const void *payload, size_t len, struct dmig_wire_entry *ret, struct dmig_error **err)
{
	struct dmig_wire_get g;
	dmig_wire_get_init(&g, payload, len);
	ret->type = (enum dmig_entry_type)dmig_wire_get_u16(&g);
	ret->flags = dmig_wire_get_u16(&g);
	ret->mode = dmig_wire_get_u32(&g);
	ret->uid = dmig_wire_get_u32(&g);
	ret->gid = dmig_wire_get_u32(&g);
	ret->rdev = dmig_wire_get_u64(&g);
	ret->size = dmig_wire_get_u64(&g);
	ret->mtime = get_time(&g);
	ret->atime = get_time(&g);
	ret->path = dmig_wire_get_string(&g, DMIG_WIRE_MAX_PATH);
	ret->target = dmig_wire_get_string(&g, DMIG_WIRE_MAX_PATH);
	ret->hardlink = dmig_wire_get_string(&g, DMIG_WIRE_MAX_PATH);
	ret->n_xattrs = 0;
	get_xattrs(&g, ret);
	const char *problem = entry_problem(ret);
	if (problem)
		dmig_wire_get_fail(&g, problem);
	return dmig_wire_get_done(&g, "ENTRY", err);
}
