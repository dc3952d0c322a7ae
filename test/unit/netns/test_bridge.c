/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bridge like Docker's in a network namespace of our own. Frames really go through it:
 *
 *	inside eth0 10.9.0.1 --veth-- host0 [br0 10.9.0.254] up0 --veth-- outside eth0 10.9.0.2
 */
#include "net_lab.h"

#include "netns/netlink.h"
#include "netns/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <poll.h>
#include <sys/socket.h>

#define SOON_MS 5000
/* ms without a frame that count as "does not pass"; one that passes takes below 1 ms. */
#define STILL_MS 50
#define PORT 5000

static int inside = -1, outside = -1;

/* name: our end, put into the bridge; the other is eth0 in ns. */
static void add_port(const char *name, int ns, const char *mac, const char *address)
{
	int pid = (int)getpid();
	sh("ip link add %s type veth peer name eth0 address %s netns /proc/%d/fd/%d; ip link set %s master "
	   "br0 up; "
	   "nsenter --net=/proc/%d/fd/%d sh -ec 'ip addr add %s/24 dev eth0; ip link set eth0 up; ip link "
	   "set lo up'",
		name, mac, pid, ns, name, pid, ns, address);
}

static int udp(int ns, const char *address)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	inet_pton(AF_INET, address, &a.sin_addr);
	int fd = netns__socket(ns, AF_INET, SOCK_DGRAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static bool passes(int from_ns, const char *from, int to_ns, const char *to, int timeout_ms)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	inet_pton(AF_INET, to, &a.sin_addr);
	cleanup_fd int tx = udp(from_ns, from);
	cleanup_fd int rx = udp(to_ns, to);
	assert_int_equal(sendto(tx, "x", 1, 0, (struct sockaddr *)&a, sizeof(a)), 1);
	return dmig_poll_one(rx, POLLIN, timeout_ms) == 1;
}

static bool out_passes(int ms)
{
	return passes(inside, "10.9.0.1", outside, "10.9.0.2", ms);
}

static bool in_passes(int ms)
{
	return passes(outside, "10.9.0.2", inside, "10.9.0.1", ms);
}

static bool host_passes(int ms)
{
	return passes(inside, "10.9.0.1", -1, "10.9.0.254", ms) &&
	       passes(-1, "10.9.0.254", inside, "10.9.0.1", ms);
}

static int setup(void **state)
{
	(void)state;
	inside = new_namespace();
	outside = new_namespace();
	close(new_namespace());
	sh("ip link add br0 type bridge; ip addr add 10.9.0.254/24 dev br0; ip link set br0 up; ip link set "
	   "lo up");
	add_port("host0", inside, "02:42:0a:09:00:01", "10.9.0.1");
	add_port("up0", outside, "02:42:0a:09:00:02", "10.9.0.2");
	assert_true(out_passes(SOON_MS) && in_passes(SOON_MS) && host_passes(SOON_MS));
	return 0;
}

static bool inner_is_running(void)
{
	struct netns_link link;
	cleanup_fd int sock = netns__socket(inside, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	for (int i = 1; i < 1000; i++)
		if (netns__get_link(sock, i, &link, NULL) == 0 && !strcmp(link.name, "eth0"))
			return link.is_running;
	return false;
}

static void a_port_is_cut_both_ways_and_works_at_once(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_links *l = NULL, *again = NULL;
	assert_ok(dmig_links_find(inside, &l, &err), err);
	assert_int_equal(dmig_links_count(l), 1);
	assert_string_equal(dmig_links_uncovered(l), "");
	for (int round = 0; round < 3; round++) {
		assert_ok(dmig_links_down(l, &err), err);
		assert_ok(dmig_links_down(l, &err), err); /* twice is once */
		assert_false(out_passes(STILL_MS) || in_passes(STILL_MS) || host_passes(STILL_MS));
		assert_true(inner_is_running());
		assert_ok(dmig_links_up(l, &err), err);
		assert_true(out_passes(STILL_MS) && in_passes(STILL_MS) && host_passes(STILL_MS));
	}
	assert_ok(dmig_links_down(l, &err), err);
	cleanup_free char *text = dmig_links_format(l);
	dmig_links_free(l); /* the process dies; recovery has the journal */
	assert_false(out_passes(STILL_MS));
	assert_ok(dmig_links_parse(text, &again, &err), err);
	assert_ok(dmig_links_up(again, &err), err);
	assert_true(out_passes(STILL_MS));
	dmig_links_free(again);
}

static void nothing_is_left_of_a_link_that_has_gone(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_links *l = NULL;
	int other = new_namespace();
	close(new_namespace());
	sh("ip link add br0 type bridge; ip link set br0 up");
	add_port("gone0", other, "02:42:0a:09:00:03", "10.9.0.3");
	assert_ok(dmig_links_find(other, &l, &err), err);
	assert_ok(dmig_links_down(l, &err), err);
	sh("nft list tables | grep -q dmigrate_link_; ip link del gone0");
	assert_fails(dmig_links_up(l, &err), err, ENODEV);
	sh("! nft list tables | grep -q dmigrate");
	dmig_links_free(l);
	close(other);
}

/* The MAC is at work behind `up0` (the source) while a container with the same one is being made here. */
static void gate_stops_new_ports_only(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	const char *macs[] = {"02:42:0a:09:00:63", "02:42:0a:09:00:02"};
	assert_ok(dmig_gate_close("00ff", macs, 2, &err), err);
	int twin = new_namespace();
	/* back to where the bridge is */
	assert_int_equal(setns(*(int *)*state, CLONE_NEWNET), 0);
	add_port("twin0", twin, macs[1], "10.9.0.99");
	assert_true(in_passes(SOON_MS) && out_passes(SOON_MS));
	assert_false(passes(twin, "10.9.0.99", inside, "10.9.0.1", STILL_MS));
	assert_ok(dmig_gate_close("00ff", macs, 2, &err), err); /* twin0 is old now */
	assert_true(passes(twin, "10.9.0.99", inside, "10.9.0.1", SOON_MS));
	assert_ok(dmig_gate_open("00ff", &err), err);
	assert_ok(dmig_gate_open("00ff", &err), err);
	sh("! nft list tables | grep -q dmigrate; ip link del twin0");
	close(twin);
}

static void gate_takes_no_nonsense(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	const char *bad[] = {
		"x; flush ruleset", "02:42:0a:09:00", "02:42:0a:09:00:0102", "02-42-0a-09-00-01"};
	for (size_t i = 0; i < 4; i++)
		assert_fails(dmig_gate_close("00ff", &bad[i], 1, &err), err, EINVAL);
	assert_fails(dmig_gate_close("00ff", bad, 0, &err), err, EINVAL);
	assert_fails(dmig_gate_open("a b", &err), err, EINVAL);
	assert_fails(dmig_gate_open("", &err), err, EINVAL);
}

/*
 * A container that runs containers: its veth v0 has index A and a peer with index B in a third namespace, and
 * here is a veth with index B whose peer, elsewhere, has index A.
 */
static void links_of_other_namespaces_are_not_ours(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_links *l = NULL;
	int container = new_namespace(), third = new_namespace(), elsewhere = new_namespace(),
	    pid = (int)getpid();
	close(new_namespace());
	sh("nsenter --net=/proc/%d/fd/%d ip link add v0 index 60 type veth peer name p0 index 70 netns "
	   "/proc/%d/fd/%d",
		pid, container, pid, third);
	sh("ip link add twin0 index 70 type veth peer name q0 index 60 netns /proc/%d/fd/%d", pid, elsewhere);
	/* joined to us by a real link, so that the namespace has a number here */
	sh("ip link add real0 type veth peer name eth0 netns /proc/%d/fd/%d", pid, container);
	sh("nsenter --net=/proc/%d/fd/%d ip link set v0 up", pid, container);
	assert_ok(dmig_links_find(container, &l, &err), err);
	cleanup_free char *text = dmig_links_format(l);
	assert_int_equal(dmig_links_count(l), 1);
	assert_non_null(strstr(text, ":real0"));
	assert_string_equal(dmig_links_uncovered(l), "v0 (veth)");
	dmig_links_free(l);
	close(container);
	close(third);
	close(elsewhere);
}

static void what_cannot_be_cut_is_named(void **state)
{
	(void)state;
	struct dmig_error *err = NULL;
	struct dmig_links *l = NULL;
	int container = new_namespace(), pid = (int)getpid();
	close(new_namespace());
	sh("ip link add d0 type veth peer name d1; ip link set d0 up; ip link add link d0 name m0 type "
	   "macvlan; "
	   "ip link set m0 netns /proc/%d/fd/%d; nsenter --net=/proc/%d/fd/%d sh -ec 'ip link set m0 up; ip "
	   "link set lo up'",
		pid, container, pid, container);
	assert_ok(dmig_links_find(container, &l, &err), err);
	assert_int_equal(dmig_links_count(l), 0);
	assert_string_equal(dmig_links_uncovered(l), "m0 (macvlan)");
	dmig_links_free(l);
	close(container);
}

int main(void)
{
	if (geteuid() != 0)
		test_skip_program("needs root to make network namespaces");
	setup(NULL);
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_is_cut_both_ways_and_works_at_once),
		cmocka_unit_test_prestate(gate_stops_new_ports_only, &home),
		cmocka_unit_test(gate_takes_no_nonsense),
		cmocka_unit_test(nothing_is_left_of_a_link_that_has_gone),
		cmocka_unit_test(links_of_other_namespaces_are_not_ours),
		cmocka_unit_test(what_cannot_be_cut_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
