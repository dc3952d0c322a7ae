/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A published port as Docker makes one, and the three ways to reach a container:
 *
 *	client 10.8.0.2 --- 10.8.0.1 [host: 8080 -> 10.9.0.1:80] 10.9.0.254 --- 10.9.0.1 container
 */
#include "net_lab.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "netns/netlink.h"
#include "netns/netns.h"

static struct lab {
	int client, container, server;
	pid_t pid; /* somebody who lives in the container */
} lab;

static void add_link(const char *name, int ns, const char *host, const char *inner, const char *gateway)
{
	int pid = (int)getpid();
	sh("ip link add %s type veth peer name eth0 netns /proc/%d/fd/%d; ip addr add %s/24 dev %s; ip link "
	   "set %s up; "
	   "nsenter --net=/proc/%d/fd/%d sh -ec 'ip addr add %s/24 dev eth0; ip link set eth0 up; ip link "
	   "set lo up; "
	   "ip route add default via %s'",
		name, pid, ns, host, name, name, pid, ns, inner, gateway);
}

static int tcp_socket(int ns)
{
	int fd = netns__socket(ns, AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	return fd;
}

static void start_server(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(80)};
	lab.server = tcp_socket(lab.container);
	assert_int_equal(bind(lab.server, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(lab.server, 8), 0);
	int ready[2];
	char c;
	assert_int_equal(pipe(ready), 0);
	lab.pid = fork();
	if (lab.pid == 0) {
		if (setns(lab.container, CLONE_NEWNET) < 0 || write(ready[1], "x", 1) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

static void setup(void)
{
	lab.client = new_namespace();
	lab.container = new_namespace();
	close(new_namespace());
	add_link("c0", lab.client, "10.8.0.1", "10.8.0.2", "10.8.0.1");
	add_link("h0", lab.container, "10.9.0.254", "10.9.0.1", "10.9.0.254");
	sh("sysctl -qw net.ipv4.ip_forward=1; nft 'add table ip nat; "
	   "add chain ip nat pre { type nat hook prerouting priority -100; }; "
	   "add rule ip nat pre ip daddr 10.8.0.1 tcp dport 8080 dnat to 10.9.0.1:80'");
	start_server();
}

static struct dmig_tcp_counts counts(void)
{
	struct dmig_tcp_counts c;
	struct dmig_error *err = NULL;
	assert_ok(dmig_netns_tcp_counts(lab.pid, &c, &err), err);
	return c;
}

static void each_way_is_told_apart(void **state)
{
	(void)state;
	struct dmig_tcp_counts c = counts();
	assert_true(c.listening == 1 && c.established == 0 && c.published == 0 && c.from_host == 0);
	int accepted[3], out[3];
	const struct {
		int ns;
		const char *address;
		int port;
	} ways[] = {{lab.client, "10.9.0.1", 80}, {lab.client, "10.8.0.1", 8080}, {-1, "10.9.0.1", 80}};
	for (int i = 0; i < 3; i++) {
		struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)ways[i].port)};
		inet_pton(AF_INET, ways[i].address, &a.sin_addr);
		out[i] = tcp_socket(ways[i].ns);
		assert_int_equal(connect(out[i], (struct sockaddr *)&a, sizeof(a)), 0);
		accepted[i] = accept(lab.server, NULL, NULL);
		assert_true(accepted[i] >= 0);
	}
	c = counts();
	assert_true(c.established == 3 && c.outside == 3);
	assert_int_equal(c.published, 1);
	assert_int_equal(c.from_host, 1);
	assert_non_null(strstr(c.example, "10.8.0.2:"));
	assert_non_null(strstr(c.example, " -> 10.9.0.1:80"));
	for (int i = 0; i < 3; i++) {
		close(out[i]);
		close(accepted[i]);
	}
}

int main(void)
{
	if (geteuid() != 0)
		test_skip_program("needs root to make network namespaces");
	setup();
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_way_is_told_apart)};
	int r = cmocka_run_group_tests(tests, NULL, NULL);
	kill(lab.pid, SIGKILL);
	waitpid(lab.pid, NULL, 0);
	return r;
}
