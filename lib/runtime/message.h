/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_MESSAGE_H
#define DMIG_RUNTIME_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/target.h"

/* Strings of CREATE and GO: argv or environment; more is not a runc call. */
#define DMIG_TARGET_MAX_STRINGS 512

/* A received message. Owns its bytes (a NUL is behind them) and its descriptors (CLOEXEC). */
struct dmig_packet {
	struct dmig_target_msg head;
	char *data;
	int fds[DMIG_TARGET_MAX_FDS];
	size_t n_fds;
};
void dmig_packet_clear(struct dmig_packet *p);
#define cleanup_packet __attribute__((cleanup(dmig_packet_clear)))
#define DMIG_PACKET_INIT                                                                                     \
	{                                                                                                    \
		.fds = { -1, -1, -1, -1 }                                                                    \
	}

/* Check what came as one packet: 0, or -EPROTO. Pure; the fuzz target calls it. */
int dmig_packet_check(const void *buf, size_t len, struct dmig_target_msg *ret);

/*
 * Split the NUL-terminated strings of len bytes: a NULL-terminated array that points into data; the caller
 * frees the array only. -EPROTO if the last one is not terminated, -E2BIG if there are too many.
 */
int dmig_strings_split(char *data, size_t len, char ***ret, size_t *ret_n);
/* The reverse. Caller frees *ret. -E2BIG above DMIG_TARGET_MAX_BYTES. */
int dmig_strings_join(const char *const *strings, size_t n, char **ret, size_t *ret_len);

/* Both return 0 or -errno; fds are borrowed. Text messages: dmig_packet_send_text(). */
int dmig_packet_send(int sock, enum dmig_target_type type, int value, const void *data, size_t len,
	const int *fds, size_t n_fds);
int dmig_packet_send_text(int sock, enum dmig_target_type type, int value, const char *text);
/* -EPIPE: end of file. -ETIMEDOUT. timeout_ms -1: no limit. Whatever *ret held is lost: it must be empty. */
int dmig_packet_recv(int sock, int timeout_ms, struct dmig_packet *ret);

#endif
