/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

/* The checks on the source, each with the description that must raise it. */

static struct dmig_findings check(json_t *root, const struct dmig_check_opts *opts, const char *info)
{
	static const struct dmig_check_opts none = {0};
	struct fake_docker *f = fake_docker_start();
	struct dmig_docker *d = NULL;
	struct dmig_container *c = NULL;
	struct dmig_findings findings = {0};
	struct dmig_error *err = NULL;
	fake_source(f, root);
	if (info)
		fake_docker_on(f, "GET", "/info", 200, info);
	assert_ok(dmig_docker_open(&d, &err), err);
	assert_ok(dmig_docker_inspect(d, "rich", &c, &err), err);
	assert_ok(dmig_docker_check_source(d, c, opts ? opts : &none, &findings, &err), err);
	dmig_container_free(c);
	dmig_docker_free(d);
	fake_docker_stop(f);
	return findings;
}

static void a_plain_container_may_go(void **state)
{
	static const char *const files[] = {SPEC_20, SPEC_28};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct dmig_findings f = check(load_json(files[i]), NULL, NULL);
		assert_null(f.blockers);
		assert_null(f.warnings);
	}
}

static void blockers(void **state)
{
	static const struct {
		const char *path, *value, *says;
	} table[] = {
		{"inspect.State.Running", "false", "not running"},
		{"inspect.State.Paused", "true", "docker unpause rich"},
		{"inspect.State.Restarting", "true", "being restarted"},
		{"inspect.Config.Labels", "{\"com.docker.swarm.task.id\":\"x\"}", "swarm"},
		{"inspect.HostConfig.Runtime", "\"nvidia\"", "runtime nvidia"},
		{"inspect.HostConfig.PidMode", "\"host\"", "--pid host"},
		{"inspect.HostConfig.PidMode", "\"container:x\"", "--pid container:x"},
		{"inspect.HostConfig.IpcMode", "\"host\"", "--ipc host"},
		{"inspect.HostConfig.IpcMode", "\"container:x\"", "--ipc container:x"},
		{"inspect.HostConfig.UTSMode", "\"host\"", "--uts host"},
		{"inspect.HostConfig.NetworkMode", "\"host\"", "--network host"},
		{"inspect.HostConfig.NetworkMode", "\"container:x\"", "--network container:x"},
		{"inspect.HostConfig.VolumesFrom", "[\"other\"]", "--volumes-from other"},
		{"inspect.HostConfig.Devices", "[{\"PathOnHost\":\"/dev/fuse\"}]", "device /dev/fuse"},
		{"inspect.HostConfig.DeviceRequests", "[{\"Count\":-1}]", "--gpus"},
		{"inspect.Mounts", "[{\"Type\":\"bind\",\"Source\":\"/srv/x\",\"Destination\":\"/x\"}]",
			"--bind /srv/x=copy"},
		{"inspect.Mounts",
			"[{\"Type\":\"bind\",\"Source\":\"/run/docker.sock\",\"Destination\":\"/x\"}]",
			"controls the Docker"},
		{"inspect.Mounts", "[{\"Type\":\"image\",\"Destination\":\"/x\"}]", "mount /x"},
		{"networks.0.Scope", "\"swarm\"", "network netx: it belongs to a swarm"},
		{"networks.0.ConfigFrom", "{\"Network\":\"base\"}", "config-from"},
		{"volumes.0.Options", "{\"type\":\"ext4\",\"device\":\"/dev/sdb\"}", "it is on /dev/sdb"},
		{"inspect.NetworkSettings.Networks", "{\"bridge\":{\"IPAddress\":\"172.17.0.2\"}}",
			"network bridge"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct dmig_findings f =
			check(edited(SPEC_28, table[i].path, table[i].value, NULL), NULL, NULL);
		if (!has_line(f.blockers, table[i].says))
			fail_msg("%s = %s: %s", table[i].path, table[i].value,
				f.blockers ? f.blockers[0] : "nothing");
		assert_int_equal(count_lines(f.blockers), 1);
		dmig_findings_clear(&f);
	}
}

static void warnings(void **state)
{
	static const struct {
		const char *path, *value, *says;
	} table[] = {
		{"inspect.HostConfig.Privileged", "true", "--privileged"},
		{"inspect.HostConfig.LogConfig", "{\"Type\":\"syslog\"}", "log driver syslog"},
		{"inspect.HostConfig.PortBindings", "{\"80/tcp\":[{\"HostPort\":\"\"}]}", "port 80/tcp"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct dmig_findings f =
			check(edited(SPEC_28, table[i].path, table[i].value, NULL), NULL, NULL);
		if (!has_line(f.warnings, table[i].says))
			fail_msg("%s = %s: %s", table[i].path, table[i].value,
				f.warnings ? f.warnings[0] : "nothing");
		assert_null(f.blockers);
		dmig_findings_clear(&f);
	}
}

static void engines_that_cannot(void **state)
{
	static const char *const table[][2] = {
		{"{\"DockerRootDir\":\"/d\",\"Driver\":\"btrfs\"}", "storage driver btrfs"},
		{"{\"DockerRootDir\":\"/d\",\"Driver\":\"overlay2\",\"SecurityOptions\":[\"name=userns\"]}",
			"userns-remap"},
		{"{\"DockerRootDir\":\"/d\",\"Driver\":\"overlay2\",\"SecurityOptions\":[\"name=rootless\"]}",
			"rootless"},
		/* The name alone does not make it the containerd store. */
		{"{\"DockerRootDir\":\"/d\",\"Driver\":\"overlayfs\"}", "storage driver overlayfs"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct dmig_findings f = check(load_json(SPEC_28), NULL, table[i][0]);
		assert_true(has_line(f.blockers, table[i][1]));
		assert_int_equal(count_lines(f.blockers), 1);
		dmig_findings_clear(&f);
	}
}

static void decisions_are_respected(void **state)
{
	const char *paths[] = {"/srv/x/", "/run/docker.sock", NULL};
	struct dmig_check_opts opts = {.bind_share = paths, .tcp_close = true};
	json_t *root = edited(SPEC_28, "inspect.Mounts",
		"[{\"Type\":\"bind\",\"Source\":\"/srv/x\",\"Destination\":\"/x\"},"
		"{\"Type\":\"bind\",\"Source\":\"/run/docker.sock\",\"Destination\":\"/y\"}]",
		"inspect.NetworkSettings.Networks", "{\"bridge\":{\"IPAddress\":\"172.17.0.2\"}}", NULL);
	(void)state;
	struct dmig_findings f = check(root, &opts, NULL);
	assert_null(f.blockers);
	assert_true(has_line(f.warnings, "docker.sock"));
	dmig_findings_clear(&f);
}

static void rm_and_keep_exclude_each_other(void **state)
{
	struct dmig_check_opts opts = {.source_keep = true};
	(void)state;
	struct dmig_findings f =
		check(edited(SPEC_28, "inspect.HostConfig.AutoRemove", "true", NULL), &opts, NULL);
	assert_true(has_line(f.blockers, "--rm"));
	dmig_findings_clear(&f);
	f = check(edited(SPEC_28, "inspect.HostConfig.AutoRemove", "true", NULL), NULL, NULL);
	assert_null(f.blockers);
}

static void volumes_that_others_use(void **state)
{
	struct fake_docker *f = fake_docker_start();
	struct dmig_docker *d = NULL;
	struct dmig_container *c = NULL;
	struct dmig_findings findings = {0};
	struct dmig_check_opts opts = {0};
	struct dmig_error *err = NULL;
	(void)state;
	fake_source(f, load_json(SPEC_28));
	fake_docker_on(f, "GET", "/containers/json", 200,
		"[{\"Id\":\"x\",\"Names\":[\"/backup\"],\"Mounts\":[{\"Name\":\"named\"}]}]");
	assert_ok(dmig_docker_open(&d, &err), err);
	assert_ok(dmig_docker_inspect(d, "rich", &c, &err), err);
	assert_ok(dmig_docker_check_source(d, c, &opts, &findings, &err), err);
	assert_true(has_line(findings.blockers, "volume named: running containers use it as well: backup"));
	assert_int_equal(count_lines(findings.blockers), 1); /* although it is mounted three times */
	dmig_findings_clear(&findings);
	dmig_container_free(c);
	dmig_docker_free(d);
	fake_docker_stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_container_may_go),
		cmocka_unit_test(blockers),
		cmocka_unit_test(warnings),
		cmocka_unit_test(engines_that_cannot),
		cmocka_unit_test(decisions_are_respected),
		cmocka_unit_test(rm_and_keep_exclude_each_other),
		cmocka_unit_test(volumes_that_others_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
