/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

/* What a peer may ask for: each request, refused with nothing allowed, and what lets it through. */

static struct dmig_findings check(json_t *root, const struct dmig_allow *allow)
{
	struct dmig_findings f = {0};
	struct dmig_spec *s = spec_of(root);
	json_t *here = json_pack("[{s:s}]", "Name", "here");
	dmig_docker__check_allow(s, allow, here, &f);
	json_decref(here);
	dmig_spec_free(s);
	return f;
}

static void ordinary_containers_need_nothing(void **state)
{
	static const char *const files[] = {SPEC_20, SPEC_28};
	struct dmig_allow none = {0};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		/* rich asks for a capability. */
		struct dmig_findings f =
			check(edited(files[i], "inspect.HostConfig.CapAdd", "null", NULL), &none);
		if (f.blockers)
			fail_msg("%s: %s", files[i], f.blockers[0]);
	}
}

#define HC "inspect.HostConfig."

static const struct {
	const char *path, *value;
	struct dmig_allow lets; /* all false: nothing does */
} requests[] = {
	{HC "Privileged", "true", {.privileged = true}},
	{HC "CapAdd", "[\"SYS_ADMIN\"]", {.any_capability = true}},
	{HC "NetworkMode", "\"host\"", {.host_network = true}},
	{HC "PidMode", "\"host\"", {.host_pid = true}},
	{HC "PidMode", "\"container:x\"", {0}},
	{HC "IpcMode", "\"host\"", {.privileged = true}},
	{HC "UTSMode", "\"host\"", {.privileged = true}},
	{HC "Devices", "[{\"PathOnHost\":\"/dev/sda\"}]", {.any_device = true}},
	{HC "Devices", "[{\"pathonhost\":\"/dev/sda\"}]", {.any_device = true}},
	{HC "Devices", "{}", {.any_device = false}},
	{HC "DeviceCgroupRules", "[\"a *:* rwm\"]", {.any_device = true}},
	{HC "DeviceRequests", "[{\"Count\":-1}]", {.any_device = true}},
	{HC "SecurityOpt", "[\"seccomp=unconfined\"]", {.privileged = true}},
	{HC "MaskedPaths", "[]", {.privileged = true}},
	{HC "MaskedPaths", "[\"/proc/kcore\"]", {.privileged = true}},
	{HC "ReadonlyPaths", "[\"/proc/bus\"]", {.privileged = true}},
	{HC "CgroupParent", "\"/\"", {.privileged = true}},
	{HC "Annotations", "{\"org.criu.config\":\"/tmp/x\"}", {.privileged = true}},
	{HC "Links", "[\"/db:/rich/db\"]", {.privileged = true}},
	{HC "LogConfig", "{\"Type\":\"syslog\",\"Config\":{\"syslog-address\":\"tcp://192.0.2.1\"}}",
		{.host_network = true}},
	{HC "FutureField", "\"anything\"", {.privileged = true}},
	{HC "Binds", "[\"/etc:/x\"]", {.any_bind = true}},
	{HC "Binds", "[\"/etc/../etc:/x\"]", {.any_bind = true}},
	{HC "Mounts", "[{\"Type\":\"bind\",\"Source\":\"/etc\",\"Target\":\"/x\"}]", {.any_bind = true}},
	{HC "Mounts", "[{\"type\":\"bind\",\"Source\":\"/etc\",\"Target\":\"/x\"}]", {0}},
	{HC "Mounts", "[{\"Type\":\"npipe\",\"Source\":\"x\"}]", {0}},
	{HC "Mounts", "[{\"Type\":\"volume\",\"VolumeOptions\":{\"driverconfig\":{}}}]", {0}},
	{HC "Mounts",
		"[{\"Type\":\"volume\",\"VolumeOptions\":{\"DriverConfig\":{\"Options\":{\"device\":\"/"
		"etc\"}}}}]",
		{.any_bind = true}},
	{HC "VolumeDriver", "\"x\"", {0}},
	{HC "VolumesFrom", "[\"other\"]", {0}},
	{"volumes.0.Options", "{\"type\":\"none\",\"o\":\"bind\",\"device\":\"/etc\"}", {.any_bind = true}},
	{"volumes.0.Options", "{\"type\":\"overlay\",\"device\":\"overlay\",\"o\":\"lowerdir=/etc\"}",
		{.any_bind = true}},
	{"volumes.0.Options", "{\"type\":\"nfs\",\"device\":\":/x\"}", {.any_bind = true}},
	{"networks.0.Driver", "\"macvlan\"", {.host_network = true}},
	{"networks.0.Options", "{\"com.docker.network.bridge.name\":\"br-lan\"}", {.host_network = true}},
};

static bool allows_something(const struct dmig_allow *a)
{
	return a->privileged || a->host_network || a->host_pid || a->any_device || a->any_bind ||
	       a->any_capability;
}

static void requests_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		struct dmig_allow none = {0};
		bool empty = !strcmp(requests[i].value, "{}"); /* asks for nothing */
		json_t *root =
			edited(SPEC_28, HC "CapAdd", "null", requests[i].path, requests[i].value, NULL);
		struct dmig_findings f = check(root, &none);
		if ((count_lines(f.blockers) == 0) != empty)
			fail_msg("%s = %s: %s", requests[i].path, requests[i].value,
				f.blockers ? f.blockers[0] : "let through");
		dmig_findings_clear(&f);
	}
}

static void the_right_word_lets_them_through(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		if (!allows_something(&requests[i].lets))
			continue;
		json_t *root =
			edited(SPEC_28, HC "CapAdd", "null", requests[i].path, requests[i].value, NULL);
		struct dmig_findings f = check(root, &requests[i].lets);
		if (f.blockers)
			fail_msg("%s = %s: %s", requests[i].path, requests[i].value, f.blockers[0]);
	}
}

static void some_stay_refused(void **state)
{
	struct dmig_allow all = {true, true, true, true, true, true, NULL, NULL};
	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		if (allows_something(&requests[i].lets) || !strcmp(requests[i].value, "{}"))
			continue;
		json_t *root = edited(SPEC_28, requests[i].path, requests[i].value, NULL);
		struct dmig_findings f = check(root, &all);
		if (!f.blockers)
			fail_msg("%s = %s: let through", requests[i].path, requests[i].value);
		dmig_findings_clear(&f);
	}
}

static bool bind_allowed(const char *source, char **prefixes)
{
	struct dmig_allow a = {.binds = prefixes};
	char *value = dmig_asprintf("[\"%s:/x\"]", source);
	struct dmig_findings f = check(edited(SPEC_28, HC "CapAdd", "null", HC "Binds", value, NULL), &a);
	bool ok = !f.blockers;
	free(value);
	dmig_findings_clear(&f);
	return ok;
}

static void paths_below_a_prefix(void **state)
{
	char *folder = test_mkdir(), *inside = dmig_asprintf("%s/data", folder);
	char *escape = dmig_asprintf("%s/escape", folder), *below = dmig_asprintf("%s/escape/passwd", folder);
	char *climb = dmig_asprintf("%s/../../etc", folder), *beside = dmig_asprintf("%s2", folder);
	char *absent = dmig_asprintf("%s/not/yet/there", folder), *prefixes[] = {folder, NULL};
	(void)state;
	assert_int_equal(symlink("/etc", escape), 0);
	assert_int_equal(dmig_mkdir_p(inside, 0700), 0);
	assert_true(bind_allowed(folder, prefixes));
	assert_true(bind_allowed(inside, prefixes));
	assert_true(bind_allowed(absent, prefixes));
	assert_false(bind_allowed(beside, prefixes));
	assert_false(bind_allowed(climb, prefixes));
	assert_false(bind_allowed(escape, prefixes));
	assert_false(bind_allowed(below, prefixes));
	assert_false(bind_allowed("/etc", prefixes));
	assert_false(bind_allowed("/", prefixes));
	free(inside);
	free(escape);
	free(below);
	free(climb);
	free(beside);
	free(absent);
	test_rmdir(folder);
}

static void named_devices(void **state)
{
	char *devices[] = {(char *)"/dev/null", NULL};
	struct dmig_allow a = {.devices = devices};
	(void)state;
	struct dmig_findings f = check(
		edited(SPEC_28, HC "CapAdd", "null", HC "Devices", "[{\"PathOnHost\":\"/dev/null\"}]", NULL),
		&a);
	assert_null(f.blockers);
	f = check(edited(SPEC_28, HC "CapAdd", "null", HC "Devices",
			  "[{\"PathOnHost\":\"/dev/null\"},{\"PathOnHost\":\"/dev/zero\"}]", NULL),
		&a);
	assert_int_equal(count_lines(f.blockers), 1);
	dmig_findings_clear(&f);
}

static void networks_of_the_operator(void **state)
{
	struct dmig_allow none = {0};
	json_t *root = edited(SPEC_28, HC "CapAdd", "null", "networks.0.Driver", "\"macvlan\"",
		"networks.0.Name", "\"here\"", NULL);
	json_t *networks = at(root, "inspect.NetworkSettings.Networks");
	(void)state;
	json_object_set(networks, "here", json_object_get(networks, "netx"));
	json_object_del(networks, "netx");
	struct dmig_findings f = check(root, &none);
	assert_null(f.blockers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_containers_need_nothing),
		cmocka_unit_test(requests_are_refused),
		cmocka_unit_test(the_right_word_lets_them_through),
		cmocka_unit_test(some_stay_refused),
		cmocka_unit_test(paths_below_a_prefix),
		cmocka_unit_test(named_devices),
		cmocka_unit_test(networks_of_the_operator),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
