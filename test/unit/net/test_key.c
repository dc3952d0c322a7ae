/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net_test.h"

#include <fcntl.h>
#include <sys/stat.h>

#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static int parse(const char *text)
{
	struct dmig_key *key = NULL;
	int r = dmig_key_parse(text, strlen(text), &key, NULL);
	if (r == 0) {
		cleanup_free char *back = dmig_key_format(key);
		assert_int_equal(strncmp(back, text, strlen("dmigrate-key-1 x " HEX)), 0);
	}
	dmig_key_free(key);
	return r;
}

static void good_lines(void **state)
{
	(void)state;
	assert_int_equal(parse("dmigrate-key-1 a " HEX), 0);
	assert_int_equal(parse("dmigrate-key-1 a " HEX "\n"), 0);
	assert_int_equal(parse("dmigrate-key-1 host-A_1.example " HEX "\n"), 0);
}

static void bad_lines(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"\n",
		"dmigrate-key-1",
		"dmigrate-key-2 a " HEX,
		"dmigrate-key-1 a" HEX,
		"dmigrate-key-1  " HEX,
		"dmigrate-key-1 a b " HEX,
		"dmigrate-key-1 a/b " HEX,
		"dmigrate-key-1 a " HEX "0",
		"dmigrate-key-1 a " HEX "\n\n",
		"dmigrate-key-1 a " HEX " ",
		"dmigrate-key-1 a 0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
		"dmigrate-key-1 a 00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff",
		"dmigrate-key-1 a 0011223344556677889xaabbccddeeff00112233445566778899aabbccddeeff",
		"dmigrate-key-1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa " HEX,
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i]), -EINVAL);
	struct dmig_key *key = NULL;
	static const char nul[] = "dmigrate-key-1 a\0b " HEX;
	assert_int_equal(dmig_key_parse(nul, sizeof(nul) - 1, &key, NULL), -EINVAL);
}

static void message_hides_the_key(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_key *key = NULL;
	assert_int_equal(dmig_key_parse("key " HEX, strlen("key " HEX), &key, &err), -EINVAL);
	assert_null(strstr(err->message, "00112233"));
	assert_int_equal(err->class, DMIG_ERR_USAGE);
}

static void generated_keys_differ(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_key *a, *b;
	assert_ok(dmig_key_generate(&a, &err), err);
	assert_ok(dmig_key_generate(&b, &err), err);
	cleanup_free char *a_text = dmig_key_format(a), *b_text = dmig_key_format(b);
	assert_string_not_equal(a_text, b_text);
	assert_int_equal(strlen(a_text), strlen("dmigrate-key-1 ") + 16 + 1 + 64 + 1);
	dmig_key_free(a);
	dmig_key_free(b);
	dmig_key_free(NULL);
}

static void save_and_load(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	char *folder = test_mkdir();
	cleanup_free char *path = dmig_asprintf("%s/key", folder);
	struct dmig_key *key, *back;
	struct stat st;
	assert_ok(dmig_key_generate(&key, &err), err);
	mode_t saved = umask(0);
	assert_ok(dmig_key_save(key, path, &err), err);
	umask(saved);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_fails(dmig_key_save(key, path, &err), err, EEXIST);
	assert_ok(dmig_key_load(path, &back, &err), err);
	cleanup_free char *a = dmig_key_format(key), *b = dmig_key_format(back);
	assert_string_equal(a, b);
	assert_int_equal(chmod(path, 0400), 0);
	dmig_key_free(back);
	assert_ok(dmig_key_load(path, &back, &err), err);
	dmig_key_free(back);
	dmig_key_free(key);
	test_rmdir(folder);
}

static void load_refuses(void **state)
{
	(void)state;
	cleanup_error struct dmig_error *err = NULL;
	char *folder = test_mkdir();
	cleanup_free char *path = dmig_asprintf("%s/key", folder), *link = dmig_asprintf("%s/link", folder);
	cleanup_free char *fifo = dmig_asprintf("%s/fifo", folder), *none = dmig_asprintf("%s/none", folder);
	struct dmig_key *key = NULL;
	assert_ok(dmig_key_generate(&key, &err), err);
	assert_ok(dmig_key_save(key, path, &err), err);
	dmig_key_free(key);
	static const mode_t modes[] = {0644, 0640, 0604, 0660, 0700, 04600};
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_fails(dmig_key_load(path, &key, &err), err, EPERM);
	}
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(symlink(path, link), 0);
	assert_fails(dmig_key_load(link, &key, &err), err, ELOOP);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_fails(dmig_key_load(fifo, &key, &err), err, EINVAL);
	assert_fails(dmig_key_load(folder, &key, &err), err, EINVAL);
	assert_fails(dmig_key_load(none, &key, &err), err, ENOENT);
	assert_int_equal(truncate(path, 100000), 0);
	assert_fails(dmig_key_load(path, &key, &err), err, EINVAL);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 1, 1), 0);
		assert_fails(dmig_key_load(path, &key, &err), err, EPERM);
	}
	test_rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_lines),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(message_hides_the_key),
		cmocka_unit_test(generated_keys_differ),
		cmocka_unit_test(save_and_load),
		cmocka_unit_test(load_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
