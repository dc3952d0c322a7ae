/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_FS_TREE_H
#define DMIG_FS_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/net.h"
#include "util/error.h"

/*
 * A tree of files as one stream of frames: every name with type, owner, mode, times (ns), xattrs (file
 * capabilities and ACLs among them), hard links, symlinks, devices, fifos, sockets, sparse holes; contents in
 * DATA frames of at most 256 KiB, LZ4 where it shrinks, with an XXH3 sum per file in ENTRY_END.
 *
 * Two meanings of a tree:
 *  plain    exact copy: the receiver empties its folder first, or with keep_extra leaves what is not in the
 * stream overlay  the upper directory of an overlay mount: character device 0/0 = whiteout, xattr
 * trusted.overlay.opaque = "y" hides what is below. The receiver applies it through the *merged* tree (names
 * must change there once it is mounted): whiteout = remove, opaque = empty the folder first.
 * trusted.overlay.* is never sent as an xattr (marks of an overlay inside the container, which ours escapes,
 * are sent under the name seen there); redirect, metacopy and hard links under index=on make the sender fail
 * with a clear error. The receiver treats every name as hostile:
 * openat2(RESOLVE_BENEATH|RESOLVE_NO_SYMLINKS|RESOLVE_NO_XDEV where it can), components checked, counts and
 * sizes against the limits of wire/proto.h, entry order parent first. Source files that vanish between
 * listing and reading are skipped (only possible for trees that others share).
 */
struct dmig_tree_stats {
	uint64_t files, bytes, wire_bytes; /* regular files; content bytes; bytes of frames */
	uint64_t entries;                  /* all names */
};

/* Called from the sending/receiving thread after each file and at least every MiB. Return non-zero to stop
 * (-ECANCELED). */
typedef int dmig_tree_progress_fn(const struct dmig_tree_stats *stats, void *opaque);

struct dmig_tree_send_opts {
	enum dmig_stream_kind kind;
	const char *name;    /* of the stream, "" if the kind needs none */
	bool overlay;        /* root_fd is an upper directory */
	bool userxattr;      /* of an overlay mounted with "userxattr": its marks are user.overlay.* */
	bool one_filesystem; /* do not descend into other mounts (always true for overlay) */
	bool compress;
	dmig_tree_progress_fn *progress;
	void *opaque;
};
/*
 * Send the tree below root_fd (borrowed) and wait for nothing: STREAM_DONE is read by whoever reads conn. On
 * failure an ABORT has told the receiver why. When it is the connection that failed (-EPIPE), the receiver
 * may have given up: dmig_stream_wait_done() still brings its reason, if it told one. stats may be NULL, here
 * and below.
 */
int dmig_tree_send(struct dmig_conn *conn, int root_fd, const struct dmig_tree_send_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err);
/* One regular file as a stream of its own (image tar, log): from offset to its present end. Size may be
 * unknown (pipe). */
int dmig_file_send(struct dmig_conn *conn, int fd, uint64_t offset, const struct dmig_tree_send_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err);

struct dmig_tree_recv_opts {
	bool overlay;    /* apply to a merged tree as described above */
	bool keep_extra; /* plain: leave names that are not in the stream */
	bool sync;       /* syncfs before it is called done */
	dmig_tree_progress_fn *progress;
	void *opaque;
};
/* Call after STREAM_BEGIN was read; reads up to and including STREAM_END. root_fd borrowed. */
int dmig_tree_recv(struct dmig_conn *conn, int root_fd, const struct dmig_tree_recv_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err);
/* The counterpart of dmig_file_send: contents are written to fd (file or pipe) in order. */
int dmig_file_recv(struct dmig_conn *conn, int fd, const struct dmig_tree_recv_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err);

/* How much there is, without reading contents: for predictions and progress. */
int dmig_tree_measure(int root_fd, bool one_filesystem, struct dmig_tree_stats *ret, struct dmig_error **err);

/* Can this upper directory be sent at all? Fails with what dmig_tree_send would fail with: redirect,
 * metacopy, index. */
int dmig_tree_check_upper(int root_fd, bool userxattr, struct dmig_error **err);

/* First thing on a data connection or after a STREAM_END: which stream comes. -EPIPE at an orderly end of the
 * connection. */
struct dmig_stream {
	enum dmig_stream_kind kind;
	char name[DMIG_WIRE_MAX_STREAM_NAME + 1];
};
int dmig_stream_next(struct dmig_conn *conn, struct dmig_stream *ret, struct dmig_error **err);
/* Receiver's answer on the same connection (error NULL = fine), and the sender's wait for it. */
int dmig_stream_done(struct dmig_conn *conn, const struct dmig_error *result, struct dmig_error **err);
int dmig_stream_wait_done(struct dmig_conn *conn, int timeout_ms, struct dmig_error **err);

/*
 * What became of a stream whose send returned `sent` (and *err): the receiver's answer, as above. Where the
 * connection broke because the receiver had given up, *err becomes its reason.
 */
int dmig_stream_result(struct dmig_conn *conn, int sent, int timeout_ms, struct dmig_error **err);

#endif
