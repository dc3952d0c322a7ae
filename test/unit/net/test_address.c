/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net_test.h"

static void good(const char *text, uint16_t default_port, const char *host, uint16_t port)
{
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_address a;
	assert_ok(dmig_address_parse(text, default_port, &a, &err), err);
	assert_string_equal(a.host, host);
	assert_int_equal(a.port, port);
}

static void bad(const char *text, uint16_t default_port)
{
	cleanup_error struct dmig_error *err = NULL;
	struct dmig_address a;
	assert_int_equal(dmig_address_parse(text, default_port, &a, &err), -EINVAL);
	assert_int_equal(err->class, DMIG_ERR_USAGE);
}

static void what_is_taken(void **state)
{
	(void)state;
	good("host:1", 0, "host", 1);
	good("host.example:65535", 7, "host.example", 65535);
	good("host", 7788, "host", 7788);
	good("10.0.0.1:7788", 0, "10.0.0.1", 7788);
	good("[fe80::1%eth0]:80", 0, "fe80::1%eth0", 80);
	good("[::1]", 7788, "::1", 7788);
	good("::1", 7788, "::1", 7788);
	good("2001:db8::5", 7788, "2001:db8::5", 7788);
}

static void what_is_not(void **state)
{
	(void)state;
	static const char *const always[] = {"", ":", ":80", "host:", "host:0", "host:65536",
		"host:99999999999999999999", "host:-1", "host:+1", "host: 1", "host:1 ", "host:1x", "ho st:1",
		"ho/st:1", "user@host:1", "-o:1", "[::1", "[]:1", "[::1]x", "[::1]1", "[::1]:", "[::1]:0",
		"]:1", "h%eth0:1", "host\n:1"};
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		bad(always[i], 7788);
	bad("host", 0);
	bad("[::1]", 0);
	bad("::1", 0);
	char text[400];
	memset(text, 'a', sizeof(text));
	memcpy(text + sizeof(text) - 3, ":1", 3);
	bad(text, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken),
		cmocka_unit_test(what_is_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
