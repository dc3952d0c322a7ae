/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_FS_INTERNAL_H
#define DMIG_FS_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "codec/codec.h"
#include "fs/tree.h"
#include "wire/messages.h"

/*
 * What the files of this module share. Each block is headed by the file that defines it.
 *
 *   source:       walk.c -> send.c -> content.c, xattr.c, links.c -> stream.c
 *   destination:  stream.c -> recv.c -> apply.c (apply_overlay.c), attrs.c, xattr.c, times.c
 *   both:         beneath.c (how a name is reached), remove.c, fail.c (what an error says)
 */

/* Bytes of content read at once and sent as one DATA: TLS and LZ4 are at full speed, a blocked progress is
 * short. */
#define DMIG_FS_CHUNK (256u << 10)
/* Content bytes between two calls of a progress function within one file. */
#define DMIG_FS_PROGRESS_STEP (1u << 20)

/* ---- stream.c: frames to and from a connection, or whatever a test puts there ---- */
struct dmig_fs__output {
	int (*send)(void *opaque, enum dmig_msg type, uint16_t flags, const void *head, size_t head_len,
		const void *body, size_t body_len, struct dmig_error **err);
	void *opaque;
};
struct dmig_fs__input {
	int (*recv)(void *opaque, struct dmig_frame *ret, struct dmig_error **err);
	void *opaque;
};
struct dmig_fs__output dmig_fs__output_to(struct dmig_conn *conn);
struct dmig_fs__input dmig_fs__input_from(struct dmig_conn *conn);
/* A sender failed: tell the receiver, hand the error over to *err (or free it). Returns r. */
int dmig_fs__give_up(
	const struct dmig_fs__output *out, int r, struct dmig_error *why, struct dmig_error **err);
/* The error that an unexpected frame (an ABORT among them) stands for; never returns 0. */
int dmig_fs__unexpected(const struct dmig_frame *frame, struct dmig_error **err);

/* ---- fail.c ---- */
/* "cannot DOING /PATH: reason", for a full disk and the like also what to do. Returns -code. */
int dmig_fs__fail(struct dmig_error **err, int code, const char *doing, const char *path);
/* The same for a problem that has no errno of its own. */
int dmig_fs__refuse(struct dmig_error **err, int code, const char *path, const char *problem);

/* Into the log. */
void dmig_fs__warn(const char *path, const char *problem);

/* ---- beneath.c ---- */
#define DMIG_FS_STAY 1 /* fail with -EXDEV instead of entering another mount */
/* Folder at a relative path ("" = root_fd itself) without following any link or leaving root_fd. Readable fd
 * or -errno. */
int dmig_fs__open_folder(int root_fd, const char *path, int flags);
/* Tests take the way of a kernel (or seccomp filter) without openat2(2). */
extern bool dmig_fs__no_openat2;

/* The folder that names are changed in; the last one stays open, because neighbours come one after the other.
 */
struct dmig_fs__parent {
	int root_fd;      /* borrowed */
	int fd;           /* -1: none open */
	bool default_acl; /* new names inherit one: what they inherit has to be taken off again */
	char path[PATH_MAX];
};
void dmig_fs__parent_init(struct dmig_fs__parent *p, int root_fd);
void dmig_fs__parent_close(struct dmig_fs__parent *p);
/* Open the folder that holds path; *ret_name is the last component (lent from path). 0 or -errno. */
int dmig_fs__parent_of(struct dmig_fs__parent *p, const char *path, const char **ret_name);

/* ---- remove.c ---- */
/* rm -r of one name; a missing one is fine. path ends with that name and is for messages. Never enters
 * another mount. */
int dmig_fs__remove(int dir_fd, const char *name, const char *path, struct dmig_error **err);
/* Everything below dir_fd, the root of a tree. */
int dmig_fs__empty(int dir_fd, struct dmig_error **err);

/* ---- walk.c ---- */
struct dmig_fs__walk {
	int root_fd; /* borrowed */
	bool one_filesystem;
	/* Each folder before what it holds; fd is that folder. Names of a folder follow it at once,
	 * subfolders later. */
	int (*folder)(
		void *opaque, int fd, const char *path, const struct statx *stx, struct dmig_error **err);
	/* Everything else; d_type may be DT_UNKNOWN and is only a hint. */
	int (*name)(void *opaque, int dir_fd, const char *name, const char *path, unsigned char d_type,
		struct dmig_error **err);
	void *opaque;
};
int dmig_fs__walk(const struct dmig_fs__walk *w, struct dmig_error **err);
#define DMIG_FS_STATX (STATX_BASIC_STATS | STATX_MNT_ID)

/* ---- links.c: first name of each inode that has several ---- */
struct dmig_fs__links;
struct dmig_fs__links *dmig_fs__links_new(void);
void dmig_fs__links_free(struct dmig_fs__links *links);
/* Lent until the next add; NULL if not known. */
const char *dmig_fs__links_find(const struct dmig_fs__links *links, uint64_t dev, uint64_t ino);
int dmig_fs__links_add(struct dmig_fs__links *links, uint64_t dev, uint64_t ino, const char *path);

/* ---- xattr.c ---- */
/* A name to work on: by its own fd, or (links, devices: not to be opened) by folder and name. */
struct dmig_fs__object {
	int fd; /* -1: use the two below */
	int dir_fd;
	const char *name;
};
/* Whose marks an upper directory carries: they are no xattrs for those who use the merged tree. */
enum dmig_fs__marks { DMIG_FS_MARKS_NONE, DMIG_FS_MARKS_TRUSTED, DMIG_FS_MARKS_USER };
struct dmig_fs__xattrs {
	char *names;     /* as listxattr gives them */
	uint8_t *values; /* all of them, one behind the other */
	struct dmig_wire_xattr list[DMIG_WIRE_MAX_XATTRS];
	uint16_t n;
	bool opaque; /* the overlay's mark for "nothing below shines through" */
};
int dmig_fs__xattrs_init(struct dmig_fs__xattrs *x, struct dmig_error **err);
void dmig_fs__xattrs_free(struct dmig_fs__xattrs *x);
int dmig_fs__xattrs_read(struct dmig_fs__xattrs *x, const struct dmig_fs__object *o,
	enum dmig_fs__marks marks, const char *path, struct dmig_error **err);
/* Remove what entry does not have, then (after the mode) set what it has. */
int dmig_fs__xattrs_drop_others(
	const struct dmig_fs__object *o, const struct dmig_wire_entry *entry, struct dmig_error **err);
int dmig_fs__xattrs_set(
	const struct dmig_fs__object *o, const struct dmig_wire_entry *entry, struct dmig_error **err);
bool dmig_fs__has_default_acl(int dir_fd);

/* ---- send.c, content.c: one stream on its way out ---- */
struct dmig_fs__sender {
	struct dmig_fs__output out;
	const struct dmig_tree_send_opts *opts;
	struct dmig_tree_stats *stats;
	uint64_t next_report;    /* stats->bytes at which progress is told again */
	uint8_t *plain, *packed; /* DMIG_FS_CHUNK each */
	uint8_t *entry;          /* DMIG_WIRE_MAX_PAYLOAD: an encoded ENTRY */
	struct dmig_sum *sum;
	struct dmig_fs__links *links; /* trees only */
	struct dmig_fs__xattrs xattrs;
};
int dmig_fs__sender_init(struct dmig_fs__sender *s, struct dmig_error **err);
void dmig_fs__sender_free(struct dmig_fs__sender *s);
int dmig_fs__send_begin(struct dmig_fs__sender *s, struct dmig_error **err);
int dmig_fs__send_end(struct dmig_fs__sender *s, struct dmig_error **err);
int dmig_fs__send_entry(
	struct dmig_fs__sender *s, const struct dmig_wire_entry *entry, struct dmig_error **err);
int dmig_fs__send_frame(struct dmig_fs__sender *s, enum dmig_msg type, const void *head, ssize_t len,
	struct dmig_error **err);
/* Set out, opts and stats, all else 0. Return when everything is sent. */
int dmig_fs__send_tree(struct dmig_fs__sender *s, int root_fd, struct dmig_error **err);
/* ---- file.c ---- */
int dmig_fs__send_file(struct dmig_fs__sender *s, int fd, uint64_t offset, struct dmig_error **err);
/* ---- content.c ---- */
/* DATA and HOLE of bytes start..end of fd, then ENTRY_END. Ends early where the file does. path is for
 * messages. */
int dmig_fs__send_content(struct dmig_fs__sender *s, int fd, const char *path, uint64_t start, uint64_t end,
	bool holes, struct dmig_error **err);
/* The same from a pipe. */
int dmig_fs__send_pipe(struct dmig_fs__sender *s, int fd, struct dmig_error **err);
int dmig_fs__progress(dmig_tree_progress_fn *fn, void *opaque, const struct dmig_tree_stats *stats,
	struct dmig_error **err);

/* ---- times.c: folders get their times when nothing changes in them any more ---- */
struct dmig_fs__times;
struct dmig_fs__times *dmig_fs__times_new(void);
void dmig_fs__times_free(struct dmig_fs__times *t);
int dmig_fs__times_add(struct dmig_fs__times *t, const struct dmig_wire_entry *entry);
int dmig_fs__times_apply(
	const struct dmig_fs__times *t, struct dmig_fs__parent *parent, struct dmig_error **err);
void dmig_fs__timespecs(const struct dmig_wire_entry *entry, struct timespec ret[2]);

/* ---- recv.c, apply.c: one stream on its way in ---- */
struct dmig_fs__receiver {
	struct dmig_fs__input in;
	const struct dmig_tree_recv_opts *opts;
	struct dmig_tree_stats *stats;
	uint64_t next_report;
	int root_fd;                   /* borrowed; -1 while a single file is received */
	struct dmig_fs__parent parent; /* of the entry */
	struct dmig_fs__parent linked; /* of what a hard link names */
	struct dmig_fs__times *times;
	uint8_t *copy;  /* the last ENTRY's payload: its attributes are applied after the contents */
	uint8_t *plain; /* DMIG_WIRE_MAX_DATA: an unpacked DATA */
	bool rooted;    /* the root folder was there: everything else may come */
	/* The file whose contents are arriving. */
	struct dmig_wire_entry entry; /* lends from copy */
	bool in_file;                 /* between a file's ENTRY and its ENTRY_END */
	int fd;                       /* -1: none */
	bool borrowed_fd;             /* a stream of one file: fd is the caller's, maybe a pipe */
	bool existed;                 /* it was there before: attributes that are not in the entry must go */
	uint64_t pos;
	bool hole_last; /* the size must be set by hand */
	struct dmig_sum *sum;
};
/* Set in, opts and stats, all else 0. Return when the stream has ended. */
int dmig_fs__recv_tree(struct dmig_fs__receiver *r, int root_fd, struct dmig_error **err);
int dmig_fs__recv_file(struct dmig_fs__receiver *r, int fd, struct dmig_error **err);
/* Make r->entry; for a file leaves r->fd open. */
int dmig_fs__apply(struct dmig_fs__receiver *r, struct dmig_error **err);

/* ---- apply_overlay.c: what an upper directory's marks mean for the merged tree ---- */
int dmig_fs__apply_whiteout(struct dmig_fs__receiver *r, const char *name, struct dmig_error **err);
/* An empty file that is to be an empty file again stays the same inode. fd, or -errno: it has to be replaced.
 */
int dmig_fs__reuse_empty(int dir_fd, const char *name);

/* ---- attrs.c ---- */
/* Owner, mode, xattrs in the order in which they do not undo each other; times unless a folder. */
int dmig_fs__attrs_apply(const struct dmig_fs__object *o, const struct dmig_wire_entry *entry, bool exact,
	struct dmig_error **err);

#endif
