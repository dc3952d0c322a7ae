/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "support.h"

static struct fake_docker *fake;
static struct dmig_findings found;

static int set_up(void **state)
{
	(void)state;
	fake = fake_docker_start();
	fake_destination(fake, load_json(SPEC_28));
	found = (struct dmig_findings){0};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dmig_findings_clear(&found);
	fake_docker_stop(fake);
	return 0;
}

static void check(json_t *root, const struct dmig_check_opts *opts)
{
	static const struct dmig_check_opts none = {0};
	struct dmig_docker *d = NULL;
	struct dmig_error *err = NULL;
	struct dmig_spec *s = spec_of(root);
	dmig_findings_clear(&found);
	assert_ok(dmig_docker_open(&d, &err), err);
	assert_ok(dmig_docker_check_target(d, s, opts ? opts : &none, NULL, &found, &err), err);
	dmig_docker_free(d);
	dmig_spec_free(s);
}

/* rich without its published ports: those are tried out on this machine. */
static json_t *rich(void)
{
	return edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", NULL);
}

static void blocked(const char *text)
{
	if (!has_line(found.blockers, text))
		fail_msg("no \"%s\", but: %s", text, found.blockers ? found.blockers[0] : "nothing");
	assert_int_equal(count_lines(found.blockers), 1);
}

static void an_empty_host_takes_it(void **state)
{
	(void)state;
	check(rich(), NULL);
	assert_null(found.blockers);
	assert_int_equal(count_lines(found.warnings), 2); /* gateways of the two networks */
	assert_true(has_line(found.warnings, "network netx: will be created here with the same gateway"));
}

static void runtime_and_name(void **state)
{
	(void)state;
	fake_docker_on(fake, "GET", "/containers/rich/json", 200, "{\"Id\":\"" ID_A "\",\"Name\":\"/rich\"}");
	check(rich(), NULL);
	blocked("name rich: container aaaaaaaaaaaa has it");
	/* Found by the beginning of its id. */
	fake_docker_on(
		fake, "GET", "/containers/rich/json", 200, "{\"Id\":\"" ID_A "\",\"Name\":\"/other\"}");
	check(rich(), NULL);
	assert_null(found.blockers);
	fake_docker_on(fake, "GET", "/info", 200,
		"{\"DockerRootDir\":\"/d\",\"Driver\":\"overlay2\",\"Runtimes\":{}}");
	check(rich(), NULL);
	blocked("runtime dmigrate");
}

static void has_networks(const char *netx, const char *details)
{
	char *list = dmig_asprintf(
		"[%s,{\"Name\":\"nety\",\"Driver\":\"bridge\",\"IPAM\":{\"Config\":[{\"Subnet\":"
		"\"10.92.0.0/24\"}]}}]",
		netx);
	fake_docker_on(fake, "GET", "/networks", 200, list);
	fake_docker_on(fake, "GET", "/networks/netx", 200, details);
	fake_docker_on(fake, "GET", "/networks/nety", 200, "{}");
	free(list);
}

#define NETX(subnet, more)                                                                                   \
	"{\"Name\":\"netx\",\"Driver\":\"bridge\"," more "\"IPAM\":{\"Config\":[" subnet "]}}"

static void networks_that_are_here(void **state)
{
	(void)state;
	has_networks(NETX("{\"Subnet\":\"10.91.0.0/16\",\"Gateway\":\"10.91.0.1\"}", ""), "{}");
	check(rich(), NULL);
	assert_null(found.blockers);
	assert_null(found.warnings);
	has_networks(NETX("{\"Subnet\":\"10.95.0.0/24\"}", ""), "{}");
	check(rich(), NULL);
	blocked("network netx: the one here has no subnet with 10.91.0.2");
	has_networks(NETX("{\"Subnet\":\"10.91.0.0/24\",\"Gateway\":\"10.91.0.2\"}", ""), "{}");
	check(rich(), NULL);
	blocked("10.91.0.2 is its gateway or reserved");
	has_networks(
		NETX("{\"Subnet\":\"10.91.0.0/24\",\"AuxiliaryAddresses\":{\"a\":\"10.91.0.2\"}}", ""), "{}");
	check(rich(), NULL);
	blocked("10.91.0.2 is its gateway or reserved");
	has_networks(NETX("{\"Subnet\":\"10.91.0.0/24\"}", ""),
		"{\"Containers\":{\"x\":{\"Name\":\"squatter\",\"IPv4Address\":\"10.91.0.2/24\"}}}");
	check(rich(), NULL);
	blocked("address 10.91.0.2 belongs to squatter");
	has_networks(NETX("{\"Subnet\":\"10.91.0.0/24\"}", "\"Scope\":\"swarm\","), "{}");
	check(rich(), NULL);
	blocked("belongs to a swarm");
}

static void with_tcp_close_addresses_do_not_matter(void **state)
{
	struct dmig_check_opts opts = {.tcp_close = true};
	(void)state;
	has_networks(NETX("{\"Subnet\":\"10.95.0.0/24\"}", ""), "{}");
	check(rich(), &opts);
	assert_null(found.blockers);
}

static void subnets_that_docker_chose(void **state)
{
	json_t *root = edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}",
		"inspect.NetworkSettings.Networks.netx.IPAddress", "\"172.20.0.2\"", NULL);
	(void)state;
	has_networks(NETX("{\"Subnet\":\"172.20.0.0/16\",\"Gateway\":\"172.20.0.1\"}", ""), "{}");
	check(root, NULL);
	assert_null(found.blockers);
	assert_true(has_line(found.warnings, "looks chosen by Docker"));
}

static void other_kinds_of_networks(void **state)
{
	(void)state;
	has_networks("{\"Name\":\"netx\",\"Driver\":\"macvlan\",\"Internal\":true,\"IPAM\":{\"Config\":[{"
		     "\"Subnet\":"
		     "\"10.91.0.0/24\"}]}}",
		"{}");
	check(rich(), NULL);
	assert_null(found.blockers);
	assert_true(has_line(found.warnings, "driver is macvlan here and bridge there"));
	assert_true(has_line(found.warnings, "internal"));
}

static void networks_that_must_be_made(void **state)
{
	(void)state;
	fake_docker_on(fake, "GET", "/networks", 200,
		"[{\"Name\":\"office\",\"IPAM\":{\"Config\":[{\"Subnet\":\"10.91.0.128/"
		"25\"}]}},{\"Name\":\"v6\",\"IPAM\":{"
		"\"Config\":[{\"Subnet\":\"fd00::/64\"}]}}]");
	check(rich(), NULL);
	blocked("subnet 10.91.0.0/24 overlaps network office");
	fake_docker_on(fake, "GET", "/networks", 200, "[]");
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "networks.0.Driver", "\"weave\"",
		      NULL),
		NULL);
	blocked("driver weave is not installed");
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "networks.0.Driver", "\"macvlan\"",
		      "networks.0.Options", "{\"parent\":\"nosuchif0.7\"}", NULL),
		NULL);
	blocked("parent interface nosuchif0.7");
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "networks.0.Driver", "\"macvlan\"",
		      "networks.0.Options", "{\"parent\":\"lo.7\"}", NULL),
		NULL);
	assert_null(found.blockers);
}

static void mac_addresses_at_old_engines(void **state)
{
	(void)state;
	fake_docker_api(fake, "1.41");
	check(rich(), NULL);
	assert_true(has_line(found.warnings, "network nety: Docker 28.5.2 gives it another MAC address"));
	assert_false(has_line(found.warnings, "network netx: Docker 28.5.2 gives it another MAC address"));
}

static json_t *publishing(const char *bindings)
{
	return edited(SPEC_28, "inspect.HostConfig.PortBindings", bindings, NULL);
}

static void published_ports_of_containers(void **state)
{
	(void)state;
	fake_docker_on(fake, "GET", "/containers/json", 200,
		"[{\"Id\":\"x\",\"Names\":[\"/"
		"proxy\"],\"Ports\":[{\"IP\":\"0.0.0.0\",\"PrivatePort\":1,\"PublicPort\":59,\"Type\":"
		"\"tcp\"},{\"PrivatePort\":2,\"Type\":\"tcp\"}]}]");
	check(publishing("{\"80/tcp\":[{\"HostIp\":\"127.0.0.1\",\"HostPort\":\"59\"}]}"), NULL);
	blocked("port 59 for 80/tcp: container proxy publishes it");
	check(publishing("{\"80/udp\":[{\"HostIp\":\"127.0.0.1\",\"HostPort\":\"59\"}]}"), NULL);
	assert_null(found.blockers);
}

static void ports_of_other_programs(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	char bindings[120];
	cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)state;
	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 1) == 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	snprintf(bindings, sizeof(bindings), "{\"80/tcp\":[{\"HostIp\":\"127.0.0.1\",\"HostPort\":\"%d\"}]}",
		ntohs(a.sin_port));
	check(publishing(bindings), NULL);
	blocked("a program of this host uses it");
	check(publishing("{\"80/tcp\":[{\"HostIp\":\"192.0.2.1\",\"HostPort\":\"80\"}]}"), NULL);
	blocked("192.0.2.1 is not one of this host");
	/* Docker's to choose, or not ours to try. */
	check(publishing("{\"80/tcp\":[{\"HostPort\":\"\"},{\"HostPort\":\"1-9\"}],\"9/"
			 "sctp\":[{\"HostPort\":\"1\"}]}"),
		NULL);
	assert_null(found.blockers);
}

/* The volume "named" is here with this driver, contents in a folder of ours. */
static void has_volume(const char *folder, const char *driver)
{
	char *body =
		dmig_asprintf("{\"Name\":\"named\",\"Driver\":\"%s\",\"Mountpoint\":\"%s\",\"Options\":null}",
			driver, folder);
	fake_docker_on(fake, "GET", "/volumes/named", 200, body);
	free(body);
}

static void volumes_that_are_here(void **state)
{
	char *folder = test_mkdir(), *file = dmig_asprintf("%s/data", folder);
	struct dmig_check_opts opts = {.state_dir = "/nowhere"};
	(void)state;
	has_volume(folder, "local");
	check(rich(), &opts);
	assert_null(found.blockers); /* empty */
	assert_int_equal(dmig_write_file_atomic(file, "x", 1, 0600, NULL), 0);
	check(rich(), NULL); /* nothing known about earlier moves */
	assert_true(
		has_line(found.warnings, "volume named: it exists here and its contents will be replaced"));
	assert_null(found.blockers);
	check(rich(), &opts);
	blocked("volume named: it exists here and holds data that no move left");
	fake_docker_on(fake, "GET", "/containers/json", 200,
		"[{\"Id\":\"x\",\"Names\":[\"/db\"],\"Mounts\":[{\"Name\":\"named\"}]}]");
	check(rich(), NULL);
	blocked("running containers use it here: db");
	fake_docker_on(fake, "GET", "/containers/json", 200, "[]");
	has_volume(folder, "sshfs");
	check(rich(), NULL);
	blocked("another driver");
	free(file);
	test_rmdir(folder);
}

/* Left by a move, then worked on by somebody, then gone: only the first may be replaced. */
static void volumes_that_a_move_left(void **state)
{
	char *folder = test_mkdir(), *file = dmig_asprintf("%s/data", folder),
	     *more = dmig_asprintf("%s/more", folder);
	char *marks = test_mkdir();
	struct dmig_check_opts opts = {.state_dir = marks};
	struct dmig_docker *d = NULL;
	struct dmig_error *err = NULL;
	struct dmig_container *c = container_of(load_json(SPEC_28));
	(void)state;
	has_volume(folder, "local");
	assert_int_equal(dmig_write_file_atomic(file, "x", 1, 0600, NULL), 0);
	/* The clock of a filesystem is coarse: what comes next must show. */
	const struct timespec past[2] = {{1700000000, 0}, {1700000000, 0}};
	assert_int_equal(utimensat(AT_FDCWD, folder, past, 0), 0);
	assert_ok(dmig_docker_open(&d, &err), err);
	assert_ok(dmig_docker_stale_mark(d, marks, c, &err), err);
	check(rich(), &opts);
	assert_null(found.blockers);
	assert_int_equal(dmig_write_file_atomic(more, "x", 1, 0600, NULL), 0);
	check(rich(), &opts);
	blocked("holds data that no move left");
	/* A move that replaces its contents and fails half-way must not bar the next one. */
	json_t *here = json_pack("{s:s, s:s}", "Name", "named", "Mountpoint", folder);
	assert_ok(dmig_docker__stale_take(marks, here, &err), err);
	json_decref(here);
	check(rich(), &opts);
	assert_null(found.blockers);
	dmig_docker_stale_forget(marks, c);
	check(rich(), &opts);
	blocked("holds data that no move left");
	dmig_container_free(c);
	dmig_docker_free(d);
	free(file);
	free(more);
	test_rmdir(marks);
	test_rmdir(folder);
}

static void volumes_that_must_be_made(void **state)
{
	(void)state;
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "volumes.0.Driver", "\"sshfs\"", NULL),
		NULL);
	blocked("driver sshfs is not installed");
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "volumes.0.Options",
		      "{\"type\":\"none\",\"o\":\"bind\",\"device\":\"/no/such/path\"}", NULL),
		NULL);
	blocked("/no/such/path, which does not exist here");
}

static void limits_that_this_host_cannot_keep(void **state)
{
	(void)state;
	fake_docker_on(fake, "GET", "/info", 200,
		"{\"DockerRootDir\":\"/"
		"d\",\"Driver\":\"overlay2\",\"Runtimes\":{\"dmigrate\":{}},\"MemoryLimit\":false,"
		"\"CPUShares\":true,\"PidsLimit\":false}");
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "inspect.HostConfig.Memory",
		      "67108864", "inspect.HostConfig.CpuShares", "5", "inspect.HostConfig.PidsLimit", "null",
		      NULL),
		NULL);
	assert_null(found.blockers);
	assert_true(has_line(found.warnings, "limit Memory"));
	assert_false(has_line(found.warnings, "limit CpuShares"));
	assert_false(has_line(found.warnings, "limit PidsLimit"));
}

static void the_rest(void **state)
{
	(void)state;
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "inspect.HostConfig.Links",
		      "[\"/db:/rich/db\"]", NULL),
		NULL);
	blocked("--link /db");
	fake_docker_on(fake, "GET", "/containers/json", 200, "[{\"Id\":\"x\",\"Names\":[\"/db\"]}]");
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "inspect.HostConfig.Links",
		      "[\"/db:/rich/db\"]", NULL),
		NULL);
	assert_null(found.blockers);
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "inspect.HostConfig.LogConfig",
		      "{\"Type\":\"loki\"}", NULL),
		NULL);
	blocked("log driver loki");
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "inspect.Mounts",
		      "[{\"Type\":\"bind\",\"Source\":\"/no/such/path\",\"Destination\":\"/x\"}]", NULL),
		NULL);
	assert_true(has_line(found.warnings, "bind mount /no/such/path"));
	fake_docker_api(fake, "1.41");
	check(edited(SPEC_28, "inspect.HostConfig.PortBindings", "{}", "inspect.HostConfig.Annotations",
		      "{\"a\":\"b\"}", NULL),
		NULL);
	assert_true(has_line(found.warnings, "HostConfig.Annotations"));
}

int main(void)
{
#define with_fake(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		with_fake(an_empty_host_takes_it),
		with_fake(runtime_and_name),
		with_fake(networks_that_are_here),
		with_fake(with_tcp_close_addresses_do_not_matter),
		with_fake(subnets_that_docker_chose),
		with_fake(other_kinds_of_networks),
		with_fake(networks_that_must_be_made),
		with_fake(mac_addresses_at_old_engines),
		with_fake(published_ports_of_containers),
		with_fake(ports_of_other_programs),
		with_fake(volumes_that_are_here),
		with_fake(volumes_that_a_move_left),
		with_fake(volumes_that_must_be_made),
		with_fake(limits_that_this_host_cannot_keep),
		with_fake(the_rest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
