/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "fs/internal.h"

/* A stream of one file: an ENTRY without a path, its contents, and no tree around it. */

static int send_one(struct dmig_fs__sender *s, int fd, uint64_t offset, struct dmig_error **err)
{
	struct stat st;
	struct dmig_wire_entry e = {.type = DMIG_ENTRY_FILE, .path = "", .mode = 0600};
	if (fstat(fd, &st) < 0)
		return dmig_error_set(
			err, errno, "cannot read the attributes of a file: %s", strerror(errno));
	bool regular = S_ISREG(st.st_mode);
	uint64_t end = (uint64_t)st.st_size > offset ? (uint64_t)st.st_size : offset;
	if (regular)
		e.size = end - offset;
	else
		e.flags = DMIG_ENTRY_SIZE_UNKNOWN;
	int r = dmig_fs__send_begin(s, err);
	if (r == 0)
		r = dmig_fs__send_entry(s, &e, err);
	if (r == 0)
		r = regular ? dmig_fs__send_content(s, fd, "", offset, end, false, err)
			    : dmig_fs__send_pipe(s, fd, err);
	return r < 0 ? r : dmig_fs__send_end(s, err);
}

int dmig_fs__send_file(struct dmig_fs__sender *s, int fd, uint64_t offset, struct dmig_error **err)
{
	int r = dmig_fs__sender_init(s, err);
	if (r == 0)
		r = send_one(s, fd, offset, err);
	dmig_fs__sender_free(s);
	return r;
}

int dmig_file_send(struct dmig_conn *conn, int fd, uint64_t offset, const struct dmig_tree_send_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err)
{
	struct dmig_tree_stats own;
	struct dmig_error *why = NULL;
	struct dmig_fs__sender s = {
		.out = dmig_fs__output_to(conn), .opts = opts, .stats = stats ? stats : &own};
	int r = dmig_fs__send_file(&s, fd, offset, &why);
	return r < 0 ? dmig_fs__give_up(&s.out, r, why, err) : 0;
}

int dmig_file_recv(struct dmig_conn *conn, int fd, const struct dmig_tree_recv_opts *opts,
	struct dmig_tree_stats *stats, struct dmig_error **err)
{
	struct dmig_tree_stats own;
	struct dmig_fs__receiver r = {
		.in = dmig_fs__input_from(conn), .opts = opts, .stats = stats ? stats : &own};
	return dmig_fs__recv_file(&r, fd, err);
}
