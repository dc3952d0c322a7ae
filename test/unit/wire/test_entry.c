/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire_test.h"

static uint8_t buf[DMIG_WIRE_MAX_PAYLOAD + 1];

static struct dmig_wire_entry file_entry(void)
{
	return (struct dmig_wire_entry){
		.type = DMIG_ENTRY_FILE,
		.mode = 04755,
		.uid = 100,
		.gid = UINT32_MAX - 1,
		.size = 1ull << 40,
		.mtime = {.sec = -5, .nsec = 999999999},
		.atime = {.sec = 1ll << 34, .nsec = 1},
		.path = "usr/bin/ping",
		.n_xattrs = 2,
		.xattrs = {{.name = "security.capability", .value = "\1\0\0", .len = 3},
			{.name = "user.empty"}},
	};
}

static int decode(const void *data, size_t len)
{
	struct dmig_wire_entry back;
	return dmig_wire_decode_entry(data, len, &back, NULL);
}

/* What encode says; what it accepts must be accepted on the other side too. */
static int try(const struct dmig_wire_entry *m)
{
	ssize_t n = dmig_wire_encode_entry(m, buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	assert_int_equal(decode(buf, (size_t)n), 0);
	return 0;
}

static void file_round_trip(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	const struct dmig_wire_entry m = file_entry();
	struct dmig_wire_entry back;
	ssize_t n = dmig_wire_encode_entry(&m, buf, sizeof(buf));
	assert_true(n > 0);
	assert_ok(dmig_wire_decode_entry(buf, (size_t)n, &back, &err), err);
	assert_int_equal(back.type, DMIG_ENTRY_FILE);
	assert_int_equal(back.mode, 04755);
	assert_int_equal(back.uid, 100);
	assert_int_equal(back.gid, m.gid);
	assert_true(back.size == m.size);
	assert_memory_equal(&back.mtime.sec, &m.mtime.sec, sizeof(m.mtime.sec));
	assert_int_equal(back.mtime.nsec, 999999999);
	assert_true(back.atime.sec == m.atime.sec);
	assert_string_equal(back.path, m.path);
	assert_string_equal(back.target, "");
	assert_string_equal(back.hardlink, "");
	assert_int_equal(back.n_xattrs, 2);
	assert_string_equal(back.xattrs[0].name, "security.capability");
	assert_int_equal(back.xattrs[0].len, 3);
	assert_memory_equal(back.xattrs[0].value, "\1\0\0", 3);
	assert_int_equal(back.xattrs[1].len, 0);
	assert_exact_length(decode, buf, n);
}

static void every_type(void **state)
{
	(void)state;
	struct dmig_wire_entry m = {.type = DMIG_ENTRY_FOLDER, .path = "", .flags = DMIG_ENTRY_OPAQUE};
	assert_int_equal(try(&m), 0);
	m = (struct dmig_wire_entry){.type = DMIG_ENTRY_FILE, .path = "", .flags = DMIG_ENTRY_SIZE_UNKNOWN};
	assert_int_equal(try(&m), 0);
	m = (struct dmig_wire_entry){
		.type = DMIG_ENTRY_SYMLINK, .path = "l", .target = "../../any//thing/", .mode = 0777};
	assert_int_equal(try(&m), 0);
	m = (struct dmig_wire_entry){.type = DMIG_ENTRY_BLOCK, .path = "dev/b", .rdev = 0x801};
	assert_int_equal(try(&m), 0);
	m = (struct dmig_wire_entry){.type = DMIG_ENTRY_CHAR, .path = "dev/zero-zero"};
	assert_int_equal(try(&m), 0);
	m = (struct dmig_wire_entry){.type = DMIG_ENTRY_FIFO, .path = "f"};
	assert_int_equal(try(&m), 0);
	m = (struct dmig_wire_entry){.type = DMIG_ENTRY_SOCKET, .path = "run/s"};
	assert_int_equal(try(&m), 0);
	m = (struct dmig_wire_entry){.type = DMIG_ENTRY_HARDLINK, .path = "b", .hardlink = "a"};
	assert_int_equal(try(&m), 0);
	m = (struct dmig_wire_entry){.type = DMIG_ENTRY_WHITEOUT, .path = "gone"};
	assert_int_equal(try(&m), 0);
}

static void what_does_not_belong(void **state)
{
	(void)state;
	const struct dmig_wire_entry bad[] = {
		{.type = (enum dmig_entry_type)0, .path = "a"},
		{.type = (enum dmig_entry_type)10, .path = "a"},
		{.type = DMIG_ENTRY_FILE, .path = "../a"},
		{.type = DMIG_ENTRY_FILE, .path = "/a"},
		{.type = DMIG_ENTRY_FILE, .path = "a", .mode = 0100644},
		{.type = DMIG_ENTRY_FILE, .path = "a", .flags = DMIG_ENTRY_OPAQUE},
		{.type = DMIG_ENTRY_FILE, .path = "a", .flags = DMIG_ENTRY_SIZE_UNKNOWN, .size = 1},
		{.type = DMIG_ENTRY_FILE, .path = "a", .flags = 4},
		{.type = DMIG_ENTRY_FILE, .path = "a", .size = 1ull << 63},
		{.type = DMIG_ENTRY_FILE, .path = "a", .rdev = 1},
		{.type = DMIG_ENTRY_FILE, .path = "a", .target = "b"},
		{.type = DMIG_ENTRY_FILE, .path = "a", .hardlink = "b"},
		{.type = DMIG_ENTRY_FILE, .path = "a", .mtime = {.nsec = 1000000000}},
		{.type = DMIG_ENTRY_FILE, .path = "a", .n_xattrs = 1},
		{.type = DMIG_ENTRY_FILE, .path = "a", .n_xattrs = 1, .xattrs = {{.name = ""}}},
		{.type = DMIG_ENTRY_FILE, .path = "a", .n_xattrs = DMIG_WIRE_MAX_XATTRS + 1},
		{.type = DMIG_ENTRY_FOLDER, .path = "a", .size = 1},
		{.type = DMIG_ENTRY_SYMLINK, .path = "", .target = "b"},
		{.type = DMIG_ENTRY_SYMLINK, .path = "a"},
		{.type = DMIG_ENTRY_FIFO, .path = ""},
		{.type = DMIG_ENTRY_HARDLINK, .path = "a"},
		{.type = DMIG_ENTRY_HARDLINK, .path = "a", .hardlink = "/b"},
		{.type = DMIG_ENTRY_HARDLINK, .path = "a", .hardlink = "b", .mode = 1},
		{.type = DMIG_ENTRY_WHITEOUT, .path = "a", .uid = 1},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(try(&bad[i]), -EINVAL);
}

static void xattr_limits(void **state)
{
	(void)state;
	struct dmig_wire_entry m = {.type = DMIG_ENTRY_FILE, .path = "a", .n_xattrs = DMIG_WIRE_MAX_XATTRS};
	char *value = calloc(1, DMIG_WIRE_MAX_XATTR_VALUE + 1);
	for (size_t i = 0; i < DMIG_WIRE_MAX_XATTRS; i++)
		m.xattrs[i] = (struct dmig_wire_xattr){.name = "user.x", .value = value, .len = 1000};
	assert_int_equal(try(&m), 0);
	for (size_t i = 0; i < DMIG_WIRE_MAX_XATTRS; i++)
		m.xattrs[i].len = DMIG_WIRE_MAX_XATTR_VALUE; /* 4 MiB: above one frame */
	assert_int_equal(try(&m), -EMSGSIZE);
	m.n_xattrs = 1;
	assert_int_equal(try(&m), 0);
	m.xattrs[0].len++;
	assert_int_equal(try(&m), -EINVAL);
	free(value);
}

/* Every byte of a good message set to each of a few values: decode must not crash and never hand out a bad
 * path. */
static void damaged_bytes(void **state)
{
	(void)state;
	const struct dmig_wire_entry m = file_entry();
	struct dmig_wire_entry back;
	static const uint8_t values[] = {0, 1, '.', '/', 0x7f, 0x80, 0xff};
	ssize_t n = dmig_wire_encode_entry(&m, buf, sizeof(buf));
	for (ssize_t at = 0; at < n; at++) {
		uint8_t saved = buf[at];
		for (size_t i = 0; i < sizeof(values); i++) {
			buf[at] = values[i];
			if (dmig_wire_decode_entry(buf, (size_t)n, &back, NULL) == 0)
				assert_true(*back.path == '\0' || dmig_wire_path_ok(back.path));
		}
		buf[at] = saved;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_round_trip),
		cmocka_unit_test(every_type),
		cmocka_unit_test(what_does_not_belong),
		cmocka_unit_test(xattr_limits),
		cmocka_unit_test(damaged_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
