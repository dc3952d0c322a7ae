/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "runtime/message.h"
#include "util/cleanup.h"

static void make_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void text_and_value_arrive(void **state)
{
	(void)state;
	int pair[2];
	cleanup_packet struct dmig_packet p = DMIG_PACKET_INIT;
	make_pair(pair);
	assert_int_equal(dmig_packet_send_text(pair[0], DMIG_TARGET_FAILED, -3, "why"), 0);
	assert_int_equal(dmig_packet_recv(pair[1], 1000, &p), 0);
	assert_int_equal(p.head.type, DMIG_TARGET_FAILED);
	assert_int_equal(p.head.value, -3);
	assert_string_equal(p.data, "why");
	assert_int_equal(p.n_fds, 0);
	close(pair[0]);
	close(pair[1]);
}

static void descriptors_arrive_and_are_closed(void **state)
{
	(void)state;
	int pair[2];
	struct dmig_packet p = DMIG_PACKET_INIT;
	cleanup_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	make_pair(pair);
	assert_int_equal(
		dmig_packet_send(pair[0], DMIG_TARGET_GO, 1, "x", 2, (int[]){null, null, null}, 3), 0);
	assert_int_equal(dmig_packet_recv(pair[1], 1000, &p), 0);
	assert_int_equal(p.n_fds, 3);
	int fd = p.fds[2];
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	dmig_packet_clear(&p);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	close(pair[0]);
	close(pair[1]);
}

static void silence_and_end_are_told_apart(void **state)
{
	(void)state;
	int pair[2];
	struct dmig_packet p = DMIG_PACKET_INIT;
	make_pair(pair);
	assert_int_equal(dmig_packet_recv(pair[1], 0, &p), -ETIMEDOUT);
	close(pair[0]);
	assert_int_equal(dmig_packet_recv(pair[1], 1000, &p), -EPIPE);
	close(pair[1]);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	struct dmig_target_msg head = {.magic = DMIG_TARGET_MAGIC, .type = DMIG_TARGET_OK, .length = 0}, out;
	assert_int_equal(dmig_packet_check(&head, sizeof(head), &out), 0);
	assert_int_equal(dmig_packet_check(&head, sizeof(head) - 1, &out), -EPROTO);
	head.type = DMIG_TARGET_TYPES;
	assert_int_equal(dmig_packet_check(&head, sizeof(head), &out), -EPROTO);
	head.type = 0;
	assert_int_equal(dmig_packet_check(&head, sizeof(head), &out), -EPROTO);
	head.type = DMIG_TARGET_OK;
	head.length = 1; /* more than there is */
	assert_int_equal(dmig_packet_check(&head, sizeof(head), &out), -EPROTO);
	head.length = 0;
	head.magic++;
	assert_int_equal(dmig_packet_check(&head, sizeof(head), &out), -EPROTO);
}

static void too_large_is_refused(void **state)
{
	(void)state;
	int pair[2];
	struct dmig_packet p = DMIG_PACKET_INIT;
	size_t size = sizeof(struct dmig_target_msg) + DMIG_TARGET_MAX_BYTES + 1;
	cleanup_free char *big = calloc(1, size);
	make_pair(pair);
	assert_int_equal(
		dmig_packet_send(pair[0], DMIG_TARGET_CREATE, 0, big, DMIG_TARGET_MAX_BYTES + 1, NULL, 0),
		-E2BIG);
	assert_int_equal(send(pair[0], big, size, 0), size);
	assert_int_equal(dmig_packet_recv(pair[1], 1000, &p), -EMSGSIZE);
	/* One that is just large enough. */
	assert_int_equal(
		dmig_packet_send(pair[0], DMIG_TARGET_CREATE, 0, big, DMIG_TARGET_MAX_BYTES, NULL, 0), 0);
	assert_int_equal(dmig_packet_recv(pair[1], 1000, &p), 0);
	assert_int_equal(p.head.length, DMIG_TARGET_MAX_BYTES);
	dmig_packet_clear(&p);
	close(pair[0]);
	close(pair[1]);
}

static void too_many_descriptors_are_refused(void **state)
{
	(void)state;
	int pair[2];
	struct dmig_packet p = DMIG_PACKET_INIT;
	struct dmig_target_msg head = {.magic = DMIG_TARGET_MAGIC, .type = DMIG_TARGET_CREATE};
	make_pair(pair);
	assert_int_equal(
		dmig_send_fds(pair[0], &head, sizeof(head), (int[]){0, 0, 0, 0, 0}, 5), sizeof(head));
	assert_int_equal(dmig_packet_recv(pair[1], 1000, &p), -EMSGSIZE);
	close(pair[0]);
	close(pair[1]);
}

static void strings_survive(void **state)
{
	(void)state;
	static const char *const in[] = {"runc", "", "a b"};
	cleanup_free char *data = NULL;
	cleanup_free char **out = NULL;
	size_t len, n;
	assert_int_equal(dmig_strings_join(in, 3, &data, &len), 0);
	assert_int_equal(len, 10);
	assert_int_equal(dmig_strings_split(data, len, &out, &n), 0);
	assert_int_equal(n, 3);
	assert_string_equal(out[0], "runc");
	assert_string_equal(out[1], "");
	assert_string_equal(out[2], "a b");
	assert_null(out[3]);
}

static void unterminated_strings_are_refused(void **state)
{
	(void)state;
	char text[] = {'a', '\0', 'b'};
	char many[DMIG_TARGET_MAX_STRINGS + 1] = {0};
	char **out = NULL;
	size_t n;
	assert_int_equal(dmig_strings_split(text, sizeof(text), &out, &n), -EPROTO);
	assert_int_equal(dmig_strings_split(many, sizeof(many), &out, &n), -E2BIG);
	assert_int_equal(dmig_strings_split(text, 0, &out, &n), 0);
	assert_int_equal(n, 0);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_value_arrive),
		cmocka_unit_test(descriptors_arrive_and_are_closed),
		cmocka_unit_test(silence_and_end_are_told_apart),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(too_large_is_refused),
		cmocka_unit_test(too_many_descriptors_are_refused),
		cmocka_unit_test(strings_survive),
		cmocka_unit_test(unterminated_strings_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
