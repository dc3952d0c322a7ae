/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>

#include "support.h"

static void names_are_what_docker_allows(void **state)
{
	(void)state;
	assert_true(dmig_docker__is_name("web-1_a.b"));
	assert_false(dmig_docker__is_name(""));
	assert_false(dmig_docker__is_name(".."));
	assert_false(dmig_docker__is_name("a/b"));
	assert_false(dmig_docker__is_name("a\nb"));
	assert_true(dmig_docker__is_id(ID_A));
	assert_false(dmig_docker__is_id(ID_A "a"));
	assert_false(dmig_docker__is_id("AAAA"));
	assert_true(dmig_docker__is_digest(DIGEST_A));
	assert_false(dmig_docker__is_digest(ID_A));
	assert_true(dmig_docker__is_image_name("registry.local:5000/team/app:1.2"));
	assert_false(dmig_docker__is_image_name("<none>:<none>"));
	assert_false(dmig_docker__is_image_name("a/../b"));
	assert_true(dmig_docker__is_network_name("my net"));
	assert_false(dmig_docker__is_network_name("a\nb"));
}

static void paths_are_absolute_and_climb_nowhere(void **state)
{
	(void)state;
	assert_true(dmig_docker__is_path("/a/..b/c..d"));
	assert_false(dmig_docker__is_path("a"));
	assert_false(dmig_docker__is_path("/a/../b"));
	assert_false(dmig_docker__is_path("/a/.."));
	assert_false(dmig_docker__is_path("/a\n"));
}

static void clean_as(const char *path, const char *wanted)
{
	char *clean = dmig_docker__clean_path(path);
	assert_string_equal(clean, wanted);
	free(clean);
}

static void paths_are_cleaned(void **state)
{
	(void)state;
	clean_as("/", "/");
	clean_as("///", "/");
	clean_as("/a//b/./c/", "/a/b/c");
	assert_true(dmig_docker__below("/srv/a", "/srv"));
	assert_true(dmig_docker__below("/srv", "/srv"));
	assert_true(dmig_docker__below("/srv", "/"));
	assert_false(dmig_docker__below("/srv2", "/srv"));
}

static void addresses_and_subnets(void **state)
{
	struct dmig_docker__addr a, net, other;
	(void)state;
	assert_int_equal(dmig_docker__addr_parse("10.1.2.3", &a), 0);
	assert_int_equal(dmig_docker__addr_parse("10.1.0.0/20", &net), 0);
	assert_true(dmig_docker__addr_in(&a, &net));
	assert_int_equal(dmig_docker__addr_parse("10.1.16.0/20", &other), 0);
	assert_false(dmig_docker__addr_in(&a, &other));
	assert_false(dmig_docker__addr_overlap(&net, &other));
	assert_int_equal(dmig_docker__addr_parse("10.0.0.0/8", &other), 0);
	assert_true(dmig_docker__addr_overlap(&net, &other));
	assert_int_equal(dmig_docker__addr_parse("fd00::1", &a), 0);
	assert_int_equal(dmig_docker__addr_parse("fd00::/64", &net), 0);
	assert_true(dmig_docker__addr_in(&a, &net));
	assert_false(dmig_docker__addr_in(&a, &other));
	const char *const wrong[] = {
		"", "/8", "10.0.0", "10.0.0.1/33", "10.0.0.1/x", "10.0.0.1/ 8", "::1/129", "name"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(dmig_docker__addr_parse(wrong[i], &a), -EINVAL);
}

static void mac_addresses_that_follow_from_the_address(void **state)
{
	(void)state;
	assert_true(dmig_docker__mac_is_derived("02:42:0a:5b:00:02", "10.91.0.2"));
	assert_true(dmig_docker__mac_is_derived("02:42:0A:5B:00:02", "10.91.0.2"));
	assert_false(dmig_docker__mac_is_derived("02:42:0a:5b:00:03", "10.91.0.2"));
	assert_false(dmig_docker__mac_is_derived("02:42:0a:5b:00:02", ""));
}

static void findings_are_single_lines_of_limited_length(void **state)
{
	struct dmig_findings f = {0};
	char *longer = malloc(5001);
	(void)state;
	memset(longer, 'x', 5000);
	longer[5000] = '\0';
	memcpy(longer + 590, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 12);
	dmig_findings_add(&f.blockers, "a\nb: %s", "c\x1b");
	dmig_findings_add(&f.blockers, "%s", longer);
	free(longer);
	assert_string_equal(f.blockers[0], "a?b: c?");
	assert_true(strlen(f.blockers[1]) < 600);
	json_t *valid = json_string(f.blockers[1]); /* still UTF-8 */
	assert_non_null(valid);
	json_decref(valid);
	assert_null(f.blockers[2]);
	dmig_findings_clear(&f);
	assert_null(f.blockers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_what_docker_allows),
		cmocka_unit_test(paths_are_absolute_and_climb_nowhere),
		cmocka_unit_test(paths_are_cleaned),
		cmocka_unit_test(addresses_and_subnets),
		cmocka_unit_test(mac_addresses_that_follow_from_the_address),
		cmocka_unit_test(findings_are_single_lines_of_limited_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
