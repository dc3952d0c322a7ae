/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support.h"

static const struct dmig_mount *mount_at(const struct dmig_container *c, const char *destination)
{
	for (size_t i = 0; i < c->n_mounts; i++)
		if (!strcmp(c->mounts[i].destination, destination))
			return &c->mounts[i];
	fail_msg("no mount at %s", destination);
	return NULL;
}

static void check_rich(const char *file, const char *mac)
{
	struct dmig_container *c = container_of(load_json(file));
	assert_string_equal(c->name, "rich");
	assert_string_equal(c->image_name, "busybox");
	assert_true(c->running && !c->paused && !c->tty && !c->auto_remove && !c->swarm_task);
	assert_true(c->pid > 0);
	assert_string_equal(c->runtime, "runc");
	assert_string_equal(c->network_mode, "netx");
	assert_string_equal(c->restart_policy, "on-failure");
	assert_int_equal(c->restart_max, 3);
	assert_string_equal(c->log_driver, "json-file");
	assert_int_equal(c->n_networks, 2);
	assert_string_equal(c->networks[0].name, "netx");
	assert_string_equal(c->networks[0].ipv4, "10.91.0.2");
	if (mac)
		assert_string_equal(c->networks[0].mac, mac);
	assert_int_equal(c->n_mounts, 6);
	assert_string_equal(mount_at(c, "/data")->name, "named");
	assert_false(mount_at(c, "/data")->anonymous);
	assert_true(mount_at(c, "/ro")->read_only);
	assert_true(mount_at(c, "/anon")->anonymous);
	assert_true(mount_at(c, "/mnt2")->anonymous);
	assert_int_equal(mount_at(c, "/scratch")->type, DMIG_MOUNT_TMPFS);
	assert_null(c->volumes_from[0]);
	assert_null(c->exec_ids[0]);
	dmig_container_free(c);
}

static void reads_docker_20(void **state)
{
	(void)state;
	check_rich(SPEC_20, "02:42:0a:5b:00:02");
}

static void reads_docker_28(void **state)
{
	(void)state;
	check_rich(SPEC_28, NULL);
}

static void network_driver_and_shared_volumes_come_from_elsewhere(void **state)
{
	struct fake_docker *f = fake_docker_start();
	struct dmig_docker *d = NULL;
	struct dmig_container *c = NULL;
	struct dmig_error *err = NULL;
	(void)state;
	fake_source(f, edited(SPEC_28, "volumes.0.Options", "{\"type\":\"nfs\",\"device\":\":/x\"}", NULL));
	assert_ok(dmig_docker_open(&d, &err), err);
	assert_ok(dmig_docker_inspect(d, "rich", &c, &err), err);
	assert_string_equal(c->networks[0].driver, "bridge");
	assert_true(mount_at(c, "/data")->shared);
	assert_false(mount_at(c, "/anon")->shared);
	dmig_container_free(c);
	assert_fails(dmig_docker_inspect(d, "poor", &c, &err), err, ENOENT);
	assert_fails(dmig_docker_inspect(d, "a/../b", &c, &err), err, EINVAL);
	dmig_docker_free(d);
	fake_docker_stop(f);
}

/* Each of these must be refused, not misread. */
static void wrong_types_are_refused(void **state)
{
	static const char *const edits[][2] = {
		{"inspect.Id", "\"short\""},
		{"inspect.Id", "7"},
		{"inspect.Name", "\"/a/b\""},
		{"inspect.Name", "\"\""},
		{"inspect.Image", "\"busybox\""},
		{"inspect.State", "-"},
		{"inspect.State.Running", "\"yes\""},
		{"inspect.State.Pid", "-1"},
		{"inspect.State.Pid", "99999999"},
		{"inspect.State.Pid", "1.5"},
		{"inspect.Config", "[]"},
		{"inspect.Config.Labels", "7"},
		{"inspect.Config.Tty", "1"},
		{"inspect.HostConfig", "null"},
		{"inspect.HostConfig.Tmpfs", "{\"relative\":\"\"}"},
		{"inspect.HostConfig.VolumesFrom", "[7]"},
		{"inspect.HostConfig.RestartPolicy", "\"always\""},
		{"inspect.HostConfig.NetworkMode", "{}"},
		{"inspect.Mounts", "{}"},
		{"inspect.Mounts.0", "\"x\""},
		{"inspect.Mounts.0.Destination", "\"../etc\""},
		{"inspect.Mounts.0.Destination", "\"/a/../etc\""},
		{"inspect.Mounts.0.Name", "\"../x\""},
		{"inspect.Mounts.0.Type", "\"bind\""}, /* then its source must be a path */
		{"inspect.NetworkSettings.Networks.netx.IPAddress", "\"10.91.0\""},
		{"inspect.NetworkSettings.Networks.netx.MacAddress", "\"02:42\""},
		{"inspect.NetworkSettings.Networks.netx.NetworkID", "\"x\""},
		{"inspect.NetworkSettings.Networks.netx", "null"},
		{"inspect.NetworkSettings.SandboxKey", "\"netns\""},
		{"inspect.LogPath", "\"/a/../b\""},
		{"inspect.ExecIDs", "\"x\""},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		struct dmig_error *err = NULL;
		struct dmig_container *c = NULL;
		bool bind = !strcmp(edits[i][1], "\"bind\"");
		json_t *root = edited(SPEC_20, edits[i][0], edits[i][1],
			bind ? "inspect.Mounts.0.Source" : NULL, "\"relative\"", NULL);
		char *text = json_dumps(json_object_get(root, "inspect"), 0);
		json_decref(root);
		int r = dmig_container_parse(text, strlen(text), &c, &err);
		free(text);
		if (r != -EINVAL)
			fail_msg("%s = %s was taken (%d)", edits[i][0], edits[i][1], r);
		assert_non_null(err->message);
		assert_null(strstr(err->message, SECRET));
		dmig_error_freep(&err);
	}
}

static void names_who_uses_a_volume(void **state)
{
	struct fake_docker *f = fake_docker_start();
	struct dmig_docker *d = NULL;
	struct dmig_error *err = NULL;
	char *users = NULL;
	(void)state;
	fake_docker_on(f, "GET", "/containers/json", 200,
		"[{\"Id\":\"1\",\"Names\":[\"/one\"],\"Mounts\":[{\"Name\":\"v\"}]},"
		"{\"Id\":\"2\",\"Names\":[\"/two\"],\"Mounts\":[{\"Name\":\"w\"},{\"Name\":\"v\"}]},"
		"{\"Id\":\"3\",\"Mounts\":[{\"Name\":\"x\"}]},{\"Id\":\"4\"}]");
	assert_ok(dmig_docker_open(&d, &err), err);
	assert_ok(dmig_docker_volume_users(d, "v", NULL, &users, &err), err);
	assert_string_equal(users, "one, two");
	free(users);
	assert_ok(dmig_docker_volume_users(d, "v", "1", &users, &err), err);
	assert_string_equal(users, "two");
	free(users);
	assert_ok(dmig_docker_volume_users(d, "unused", NULL, &users, &err), err);
	assert_null(users);
	dmig_docker_free(d);
	fake_docker_stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_docker_20),
		cmocka_unit_test(reads_docker_28),
		cmocka_unit_test(network_driver_and_shared_volumes_come_from_elsewhere),
		cmocka_unit_test(wrong_types_are_refused),
		cmocka_unit_test(names_who_uses_a_volume),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
