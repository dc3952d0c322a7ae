/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/message.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"

void dmig_packet_clear(struct dmig_packet *p)
{
	int saved = errno;
	for (size_t i = 0; i < p->n_fds; i++)
		dmig_closep(&p->fds[i]);
	free(p->data);
	*p = (struct dmig_packet)DMIG_PACKET_INIT;
	errno = saved;
}

int dmig_packet_check(const void *buf, size_t len, struct dmig_target_msg *ret)
{
	struct dmig_target_msg head;
	if (len < sizeof(head))
		return -EPROTO;
	memcpy(&head, buf, sizeof(head));
	if (head.magic != DMIG_TARGET_MAGIC || head.type == 0 || head.type >= DMIG_TARGET_TYPES)
		return -EPROTO;
	if (head.length > DMIG_TARGET_MAX_BYTES || head.length != len - sizeof(head))
		return -EPROTO;
	*ret = head;
	return 0;
}

int dmig_strings_split(char *data, size_t len, char ***ret, size_t *ret_n)
{
	size_t n = 0;
	if (len && data[len - 1] != '\0')
		return -EPROTO;
	for (size_t i = 0; i < len; i++)
		n += data[i] == '\0';
	if (n > DMIG_TARGET_MAX_STRINGS)
		return -E2BIG;
	char **list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	char *p = data;
	for (size_t i = 0; i < n; i++) {
		list[i] = p;
		p += strlen(p) + 1;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

int dmig_strings_join(const char *const *strings, size_t n, char **ret, size_t *ret_len)
{
	size_t len = 0;
	if (n > DMIG_TARGET_MAX_STRINGS)
		return -E2BIG;
	for (size_t i = 0; i < n; i++)
		len += strlen(strings[i]) + 1;
	if (len > DMIG_TARGET_MAX_BYTES)
		return -E2BIG;
	char *data = malloc(len + 1);
	if (!data)
		return -ENOMEM;
	char *p = data;
	for (size_t i = 0; i < n; i++)
		p = stpcpy(p, strings[i]) + 1;
	*ret = data;
	*ret_len = len;
	return 0;
}

int dmig_packet_send(int sock, enum dmig_target_type type, int value, const void *data, size_t len,
	const int *fds, size_t n_fds)
{
	struct dmig_target_msg head = {
		.magic = DMIG_TARGET_MAGIC, .type = (uint32_t)type, .value = value, .length = (uint32_t)len};
	if (len > DMIG_TARGET_MAX_BYTES || n_fds > DMIG_TARGET_MAX_FDS)
		return -E2BIG;
	cleanup_free char *packet = malloc(sizeof(head) + len);
	if (!packet)
		return -ENOMEM;
	memcpy(packet, &head, sizeof(head));
	if (len)
		memcpy(packet + sizeof(head), data, len);
	ssize_t n = dmig_send_fds(sock, packet, sizeof(head) + len, fds, n_fds);
	return n < 0 ? (int)n : 0;
}

int dmig_packet_send_text(int sock, enum dmig_target_type type, int value, const char *text)
{
	size_t len = strlen(text);
	if (len > DMIG_TARGET_MAX_BYTES)
		len = DMIG_TARGET_MAX_BYTES;
	return dmig_packet_send(sock, type, value, text, len, NULL, 0);
}

int dmig_packet_recv(int sock, int timeout_ms, struct dmig_packet *ret)
{
	size_t size = sizeof(struct dmig_target_msg) + DMIG_TARGET_MAX_BYTES;
	int r = dmig_poll_one(sock, POLLIN, timeout_ms);
	if (r <= 0)
		return r < 0 ? r : -ETIMEDOUT;
	cleanup_free char *buf = malloc(size);
	if (!buf)
		return -ENOMEM;
	cleanup_packet struct dmig_packet p = DMIG_PACKET_INIT;
	ssize_t n = dmig_recv_fds(sock, buf, size, p.fds, DMIG_TARGET_MAX_FDS, &p.n_fds);
	if (n == 0 || n == -ECONNRESET)
		return -EPIPE;
	if (n < 0)
		return (int)n;
	r = dmig_packet_check(buf, (size_t)n, &p.head);
	if (r < 0)
		return r;
	p.data = calloc(1, p.head.length + 1u);
	if (!p.data)
		return -ENOMEM;
	memcpy(p.data, buf + sizeof(p.head), p.head.length);
	*ret = p;
	p = (struct dmig_packet)DMIG_PACKET_INIT;
	return 0;
}
