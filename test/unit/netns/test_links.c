/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "netns/netlink.h"
#include "netns/netns.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/spawn.h"

/* This process lives in a network namespace of its own, `inside` is a second one; a veth joins them. */
static int inside = -1;

static int run(const char *const *argv)
{
	return dmig_run(argv, NULL, 5000, NULL, NULL);
}

static int setup(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	inside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	cleanup_free char *ns = dmig_asprintf("/proc/%d/fd/%d", (int)getpid(), inside);
	const char *add[] = {
		"ip", "link", "add", "host0", "type", "veth", "peer", "name", "eth0", "netns", ns, NULL};
	const char *up[] = {"ip", "link", "set", "host0", "up", NULL};
	cleanup_free char *flag = dmig_asprintf("--net=%s", ns);
	const char *address[] = {"nsenter", flag, "ip", "addr", "add", "10.1.2.3/24", "dev", "eth0", NULL};
	const char *inner[] = {"nsenter", flag, "ip", "link", "set", "eth0", "up", NULL};
	return run(add) || run(up) || run(address) || run(inner) ? -1 : 0;
}

static bool is_up(void)
{
	struct netns_link link;
	cleanup_fd int sock = netns__socket(-1, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	assert_int_equal(netns__get_link(sock, (int)if_nametoindex("host0"), &link, NULL), 0);
	return link.is_up;
}

static void the_hosts_end_is_found_and_switched(void **state)
{
	(void)state;
	struct dmig_links *l = NULL, *again = NULL;
	assert_int_equal(dmig_links_find(inside, &l, NULL), 0);
	assert_int_equal(dmig_links_count(l), 1);
	cleanup_free char *text = dmig_links_format(l);
	assert_non_null(strstr(text, ":host0"));
	assert_int_equal(dmig_links_down(l, NULL), 0);
	assert_false(is_up());
	assert_int_equal(dmig_links_parse(text, &again, NULL), 0);
	assert_int_equal(dmig_links_up(again, NULL), 0);
	assert_true(is_up());
	dmig_links_free(l);
	dmig_links_free(again);
}

static void a_reused_number_is_left_alone(void **state)
{
	(void)state;
	struct dmig_links *l = NULL;
	cleanup_free char *text = dmig_asprintf("%u:other0", if_nametoindex("host0"));
	assert_int_equal(dmig_links_parse(text, &l, NULL), 0);
	assert_int_equal(dmig_links_down(l, NULL), -ENODEV);
	assert_true(is_up());
	dmig_links_free(l);
}

static void bad_lists_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"x", "1", "1:", "-1:a", "1:averyveryverylongname", "1:a/b"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dmig_links *l = NULL;
		assert_int_equal(dmig_links_parse(bad[i], &l, NULL), -EINVAL);
	}
}

static void the_address_is_announced(void **state)
{
	(void)state;
	struct dmig_announcer *a = NULL;
	struct ether_arp arp;
	cleanup_fd int sock = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ARP));
	assert_true(sock >= 0);
	assert_int_equal(dmig_announcer_new(inside, &a, NULL), 0);
	assert_int_equal(dmig_announcer_send(a, NULL), 0);
	assert_int_equal(dmig_poll_one(sock, 1, 2000), 1);
	assert_true(recv(sock, &arp, sizeof(arp), 0) >= (ssize_t)sizeof(arp));
	assert_memory_equal(arp.arp_spa, ((uint8_t[]){10, 1, 2, 3}), 4);
	assert_memory_equal(arp.arp_tpa, arp.arp_spa, 4);
	dmig_announcer_free(a);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("needs root to make network namespaces");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hosts_end_is_found_and_switched),
		cmocka_unit_test(a_reused_number_is_left_alone),
		cmocka_unit_test(bad_lists_are_refused),
		cmocka_unit_test(the_address_is_announced),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
