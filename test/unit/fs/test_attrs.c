/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "support/test.h"
#include "unit/fs/compare.h"
#include "unit/fs/memory.h"
#include "unit/fs/place.h"
#include "util/cleanup.h"

/* Owner, mode, times, xattrs. On a disk: tmpfs lacks user xattrs before 6.6 and large ones later. */

static const struct dmig_tree_send_opts send_opts = {.kind = DMIG_STREAM_VOLUME, .name = "data"};
static const struct dmig_tree_recv_opts recv_opts = {0}, keep_opts = {.keep_extra = true};

static void set(int dir_fd, const char *name, const char *xattr, const void *value, size_t len)
{
	char path[4096];
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir_fd, name);
	if (lsetxattr(path, xattr, value, len, 0) < 0)
		fail_msg("%s of %s: %s", xattr, name, strerror(errno));
}

static ssize_t get(int dir_fd, const char *name, const char *xattr)
{
	char path[4096], value[4096];
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir_fd, name);
	return lgetxattr(path, xattr, value, sizeof(value));
}

/* user::rwx user:1234:r-x group::r-- mask::r-x other::--- */
static size_t acl(uint8_t buf[64])
{
	static const struct {
		uint16_t tag, perm;
		uint32_t id;
	} entries[] = {{0x01, 7, ~0u}, {0x02, 5, 1234}, {0x04, 4, ~0u}, {0x10, 5, ~0u}, {0x20, 0, ~0u}};
	uint32_t version = POSIX_ACL_XATTR_VERSION;
	memcpy(buf, &version, sizeof(version));
	memcpy(buf + sizeof(version), entries, sizeof(entries));
	return sizeof(version) + sizeof(entries);
}

static void move_and_compare(struct place *p)
{
	memory_move(p->from_fd, &send_opts, p->to_fd, &recv_opts);
	assert_int_equal(compare_trees(p->from, p->to, COMPARE_LINKS), 0);
}

static void modes_and_owners(void **state)
{
	(void)state;
	static const mode_t modes[] = {0, 0400, 0644, 04755, 02755, 06711, 01777, 07777, 04000};
	struct place p;
	place_new(&p, 1);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		char name[32];
		snprintf(name, sizeof(name), "file-%o", modes[i]);
		place_file(p.from_fd, name, name, 4);
		assert_int_equal(fchownat(p.from_fd, name, (uid_t)(1000 + i), (gid_t)(70000 + i), 0), 0);
		assert_int_equal(fchmodat(p.from_fd, name, modes[i], 0), 0);
		snprintf(name, sizeof(name), "folder-%o", modes[i]);
		assert_int_equal(mkdirat(p.from_fd, name, 0755), 0);
		char *below = dmig_asprintf("%s/file", name);
		place_file(p.from_fd, below, "x", 1);
		free(below);
		assert_int_equal(fchownat(p.from_fd, name, (uid_t)(1000 + i), (gid_t)(70000 + i), 0), 0);
		assert_int_equal(fchmodat(p.from_fd, name, modes[i], 0), 0);
	}
	assert_int_equal(mkdirat(p.from_fd, "folder-2755/sub", 0700), 0);
	assert_int_equal(fchmodat(p.from_fd, "folder-2755/sub", 0700, 0), 0);
	move_and_compare(&p);
	place_free(&p);
}

static void times_to_the_nanosecond(void **state)
{
	(void)state;
	struct place p;
	static const struct timespec times[][2] = {
		{{.tv_sec = 1000000000, .tv_nsec = 1}, {.tv_sec = 2000000000, .tv_nsec = 999999999}},
		{{.tv_sec = -1, .tv_nsec = 5}, {.tv_sec = -1000, .tv_nsec = 1}},
		{{.tv_sec = 0}, {.tv_sec = 0}},
		{{.tv_sec = 1l << 33}, {.tv_sec = 1l << 33, .tv_nsec = 7}},
	};
	place_new(&p, 1);
	for (int i = 0; i < 4; i++) {
		char name[32];
		snprintf(name, sizeof(name), "folder%d", i);
		assert_int_equal(mkdirat(p.from_fd, name, 0755), 0);
		snprintf(name, sizeof(name), "folder%d/file", i);
		place_file(p.from_fd, name, "x", 1);
		assert_int_equal(utimensat(p.from_fd, name, times[i], 0), 0);
		snprintf(name, sizeof(name), "folder%d/sub", i);
		assert_int_equal(mkdirat(p.from_fd, name, 0755), 0);
		assert_int_equal(utimensat(p.from_fd, name, times[i], 0), 0);
		snprintf(name, sizeof(name), "folder%d", i);
		assert_int_equal(utimensat(p.from_fd, name, times[i], 0), 0);
	}
	move_and_compare(&p);
	place_free(&p);
}

static void xattrs_of_every_kind(void **state)
{
	(void)state;
	struct vfs_ns_cap_data caps = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1u << CAP_NET_BIND_SERVICE};
	uint8_t buf[64];
	char large[3000];
	struct place p;
	place_new(&p, 1);
	place_file(p.from_fd, "file", "x", 1);
	place_file(p.from_fd, "large", "x", 1);
	assert_int_equal(mkdirat(p.from_fd, "folder", 0755), 0);
	assert_int_equal(symlinkat("file", p.from_fd, "link"), 0);
	assert_int_equal(mknodat(p.from_fd, "fifo", S_IFIFO | 0600, 0), 0);
	assert_int_equal(mknodat(p.from_fd, "device", S_IFCHR | 0600, 0x103), 0);
	memset(large, 'l', sizeof(large));
	set(p.from_fd, "file", "user.empty", "", 0);
	set(p.from_fd, "file", "user.binary", "\0\1\2", 3);
	set(p.from_fd, "file", "security.capability", &caps, XATTR_CAPS_SZ_2);
	set(p.from_fd, "file", "system.posix_acl_access", buf, acl(buf));
	set(p.from_fd, "large", "user.large", large, sizeof(large));
	set(p.from_fd, "folder", "user.x", "y", 1);
	set(p.from_fd, "folder", "trusted.overlay.opaque", "y", 1); /* somebody's overlay, kept in a volume */
	set(p.from_fd, "folder", "system.posix_acl_default", buf, acl(buf));
	set(p.from_fd, "folder", "system.posix_acl_access", buf, acl(buf));
	set(p.from_fd, "link", "trusted.of-link", "1", 1);
	set(p.from_fd, "fifo", "trusted.of-fifo", "1", 1);
	set(p.from_fd, "device", "trusted.of-device", "1", 1);
	move_and_compare(&p);
	assert_int_equal(get(p.to_fd, "file", "security.capability"), XATTR_CAPS_SZ_2);
	assert_int_equal(get(p.to_fd, "link", "trusted.of-link"), 1);
	place_free(&p);
}

/* What a new name inherits from its folder must not stay. */
static void default_acls_do_not_leak(void **state)
{
	(void)state;
	uint8_t buf[64];
	struct place p;
	place_new(&p, 1);
	assert_int_equal(mkdirat(p.from_fd, "plain", 0775), 0);
	assert_int_equal(mkdirat(p.from_fd, "plain/folder", 0775), 0);
	place_file(p.from_fd, "plain/file", "x", 1);
	assert_int_equal(mknodat(p.from_fd, "plain/fifo", S_IFIFO | 0600, 0), 0);
	set(p.from_fd, "plain", "system.posix_acl_default", buf, acl(buf));
	move_and_compare(&p);
	assert_int_equal(get(p.to_fd, "plain/file", "system.posix_acl_access"), -1);

	/* A folder that is kept, with a default ACL that the source does not have. */
	set(p.to_fd, "plain", "user.extra", "x", 1);
	set(p.to_fd, ".", "system.posix_acl_default", buf, acl(buf));
	assert_int_equal(unlinkat(p.to_fd, "plain/file", 0), 0);
	memory_move(p.from_fd, &send_opts, p.to_fd, &keep_opts);
	assert_int_equal(compare_trees(p.from, p.to, COMPARE_LINKS), 0);
	place_free(&p);
}

static void too_many_xattrs_are_refused(void **state)
{
	(void)state;
	struct place p;
	struct memory m = {0};
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	place_new(&p, 0);
	place_file(p.from_fd, "file", "x", 1);
	for (int i = 0; i <= DMIG_WIRE_MAX_XATTRS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "trusted.n%d", i);
		set(p.from_fd, "file", name, "x", 1);
	}
	assert_fails(memory_send(&m, p.from_fd, &send_opts, &stats, &err), err, E2BIG);
	memory_free(&m);
	place_free(&p);
}

static void unsupported_xattrs_are_named(void **state)
{
	(void)state;
	struct place p;
	struct memory m = {0};
	struct dmig_tree_stats stats;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_wire_entry root = {.type = DMIG_ENTRY_FOLDER,
		.path = "",
		.mode = 0755,
		.n_xattrs = 1,
		.xattrs[0] = {.name = "unknown.kind", .value = "x", .len = 1}};
	place_new(&p, 0);
	memory_put_entry(&m, &root);
	struct dmig_fs__receiver r = {.in = memory_input(&m), .opts = &recv_opts, .stats = &stats};
	assert_int_equal(dmig_fs__recv_tree(&r, p.to_fd, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err->message, "extended attribute"));
	memory_free(&m);
	place_free(&p);
}

int main(void)
{
	place_need_root();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_and_owners),
		cmocka_unit_test(times_to_the_nanosecond),
		cmocka_unit_test(xattrs_of_every_kind),
		cmocka_unit_test(default_acls_do_not_leak),
		cmocka_unit_test(too_many_xattrs_are_refused),
		cmocka_unit_test(unsupported_xattrs_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
