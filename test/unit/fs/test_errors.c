/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "support/test.h"
#include "unit/fs/memory.h"
#include "unit/fs/place.h"

/* What goes wrong on the way: full disks, damage, an end in the middle, somebody who says stop. */

static const struct dmig_tree_send_opts send_opts = {.kind = DMIG_STREAM_VOLUME, .name = "data"};
static const struct dmig_tree_recv_opts recv_opts = {0};

static void full_disk_is_explained(void **state)
{
	(void)state;
	static const char *const limits[] = {"size=32k", "nr_inodes=5"};
	for (int i = 0; i < 2; i++) {
		struct place p;
		struct memory m = {0};
		struct dmig_tree_stats stats;
		cleanup_error struct dmig_error *err = NULL;
		place_new(&p, 0);
		for (int j = 0; j < 20; j++) {
			char name[32];
			snprintf(name, sizeof(name), "file%d", j);
			place_file(p.from_fd, name, "text", 4);
		}
		assert_int_equal(mount("tmpfs", p.to, "tmpfs", 0, limits[i]), 0);
		int to = open(p.to, O_RDONLY | O_DIRECTORY);
		assert_ok(memory_send(&m, p.from_fd, &send_opts, &stats, &err), err);
		assert_int_equal(memory_recv(&m, to, &recv_opts, &stats, &err), -ENOSPC);
		assert_non_null(strstr(err->message, "/file"));
		assert_non_null(strstr(err->message, "free some space"));
		close(to);
		assert_int_equal(umount(p.to), 0);
		memory_free(&m);
		place_free(&p);
	}
}

/* One byte of the contents, one of the sum, a frame too few, a frame twice: never a file that is not right.
 */
static void damage_is_found(void **state)
{
	(void)state;
	struct place p;
	struct memory m = {0};
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_wire_entry root = {.type = DMIG_ENTRY_FOLDER, .path = ""};
	struct dmig_wire_entry file = {.type = DMIG_ENTRY_FILE, .path = "f", .size = 4, .mode = 0644};
	place_new(&p, 0);
	for (int i = 0; i < 7; i++) {
		memory_put_entry(&m, &root);
		memory_put_entry(&m, &file);
		memory_put_data(&m, i == 1 ? 1 : 0, i == 0 ? "datA" : "data", i == 2 ? 3 : 4);
		if (i == 3)
			memory_put_data(&m, 4, "more", 4);
		if (i == 4)
			memory_put_entry(&m, &file);
		if (i == 5)
			memory_put_end(&m, 2, 1, 4);
		memory_put_entry_end(&m, dmig_sum_of("data", 4), 4);
		memory_put_end(&m, 2, 1, i == 6 ? 5 : 4);
		struct dmig_fs__receiver r = {.in = memory_input(&m), .opts = &recv_opts, .stats = &stats};
		assert_fails(dmig_fs__recv_tree(&r, p.to_fd, &err), err, i == 0 ? EBADMSG : EPROTO);
		memory_free(&m);
	}
	place_free(&p);
}

static void end_in_the_middle(void **state)
{
	(void)state;
	struct place p;
	struct memory m = {0};
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	place_new(&p, 0);
	place_file(p.from_fd, "file", "text", 4);
	assert_ok(memory_send(&m, p.from_fd, &send_opts, &stats, &err), err);
	m.len -= 10;
	assert_fails(memory_recv(&m, p.to_fd, &recv_opts, &stats, &err), err, EPIPE);
	memory_free(&m);
	place_free(&p);
}

/* The sender's own error reaches the receiver as an ABORT and both tell the same. */
static void sender_gives_up(void **state)
{
	(void)state;
	struct place p;
	struct memory m = {0};
	struct dmig_tree_stats stats;
	struct dmig_error *why = NULL, *err = NULL;
	place_new(&p, 0);
	place_file(p.from_fd, "file", "text", 4);
	dmig_error_set(&why, EIO, "cannot read /file");
	assert_ok(memory_send(&m, p.from_fd, &send_opts, &stats, &err), err);
	m.len -= sizeof(struct dmig_frame_header) + 24; /* the STREAM_END */
	struct dmig_fs__output out = memory_output(&m);
	assert_int_equal(dmig_fs__give_up(&out, -EIO, why, &err), -EIO);
	assert_ptr_equal(err, why);
	err = NULL;
	assert_int_equal(memory_recv(&m, p.to_fd, &recv_opts, &stats, &err), -EIO);
	assert_int_equal(err->side, DMIG_SIDE_SOURCE);
	assert_string_equal(err->message, "the sender gave up: cannot read /file");
	dmig_error_free(err);
	dmig_error_free(why);
	memory_free(&m);
	place_free(&p);
}

static int stop(const struct dmig_tree_stats *stats, void *opaque)
{
	(void)opaque;
	return stats->bytes > 2u << 20;
}

static void stopped_by_progress(void **state)
{
	(void)state;
	struct place p;
	struct memory m = {0};
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_tree_send_opts s = send_opts;
	struct dmig_tree_recv_opts r = recv_opts;
	char *data = calloc(1, 8 << 20);
	place_new(&p, 0);
	place_file(p.from_fd, "file", data, 8 << 20);
	free(data);
	s.progress = stop;
	assert_int_equal(memory_send(&m, p.from_fd, &s, &stats, &err), -ECANCELED);
	assert_int_equal(err->class, DMIG_ERR_CANCELLED);
	dmig_error_freep(&err);
	assert_in_range(m.len, 2 << 20, 4 << 20);
	memory_free(&m);
	assert_ok(memory_send(&m, p.from_fd, &send_opts, &stats, &err), err);
	r.progress = stop;
	assert_fails(memory_recv(&m, p.to_fd, &r, &stats, &err), err, ECANCELED);
	memory_free(&m);
	place_free(&p);
}

/* Messages are one line of text, whatever the name. */
static void names_in_messages_are_clean(void **state)
{
	(void)state;
	struct place p;
	struct memory m = {0};
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	place_new(&p, 0);
	place_file(p.from_fd, "a\nb\x1b[31m\xff", "x", 1);
	int fd = openat(p.from_fd, "a\nb\x1b[31m\xff", O_RDONLY);
	for (int i = 0; i <= DMIG_WIRE_MAX_XATTRS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "trusted.n%d", i);
		assert_int_equal(fsetxattr(fd, name, "x", 1, 0), 0);
	}
	close(fd);
	assert_int_equal(memory_send(&m, p.from_fd, &send_opts, &stats, &err), -E2BIG);
	for (const char *c = err->message; *c; c++)
		assert_in_range(*c, ' ', '~');
	memory_free(&m);
	place_free(&p);
}

static void too_long_paths_are_refused(void **state)
{
	(void)state;
	struct place p;
	struct memory m = {0};
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	char name[NAME_MAX + 1];
	place_new(&p, 0);
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	int fd = dup(p.from_fd);
	for (int i = 0; i < 17; i++) {
		assert_int_equal(mkdirat(fd, name, 0755), 0);
		int next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
	}
	close(fd);
	assert_fails(memory_send(&m, p.from_fd, &send_opts, &stats, &err), err, ENAMETOOLONG);
	memory_free(&m);
	place_free(&p);
}

int main(void)
{
	place_need_root();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_disk_is_explained),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(end_in_the_middle),
		cmocka_unit_test(sender_gives_up),
		cmocka_unit_test(stopped_by_progress),
		cmocka_unit_test(names_in_messages_are_clean),
		cmocka_unit_test(too_long_paths_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
