/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_UTIL_IO_H
#define DMIG_UTIL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* All retry on EINTR and move everything or fail: 0 or -errno; end of file inside a read is -EPIPE. */
int dmig_read_full(int fd, void *buf, size_t len);
int dmig_write_full(int fd, const void *buf, size_t len);
int dmig_pwrite_full(int fd, const void *buf, size_t len, uint64_t offset);

/*
 * Whole small file into memory, NUL added behind it; caller frees *ret. A file of more than max bytes is -EFBIG.
 * *ret_len may be NULL. Works for /proc (size 0) as well.
 */
int dmig_read_file_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len);
int dmig_read_file(const char *path, size_t max, char **ret, size_t *ret_len);

/* Write to a temporary name beside path, fsync, rename over it, fsync the folder: never half a file. */
int dmig_write_file_atomic(const char *path, const void *data, size_t len, mode_t mode, struct dmig_error **err);

/* One write(2) of text to an existing file (cgroup and /proc knobs). */
int dmig_write_knob(const char *path, const char *text);

/* mkdir -p with the mode for what is new. */
int dmig_mkdir_p(const char *path, mode_t mode);
/* rm -r of a tree of our own making; never crosses into another mount, follows no link; missing is fine. */
int dmig_remove_tree(const char *path);

/* send/receive one message with up to max_fds descriptors over an AF_UNIX socket. Received fds are CLOEXEC. */
#define DMIG_MAX_FDS 16
ssize_t dmig_send_fds(int sock, const void *buf, size_t len, const int *fds, size_t n_fds);
/* Returns bytes, 0 at end of file, -errno. A truncated message or too many fds is -EMSGSIZE (all fds closed). */
ssize_t dmig_recv_fds(int sock, void *buf, size_t len, int *ret_fds, size_t max_fds, size_t *ret_n_fds);

/* AF_UNIX SOCK_SEQPACKET, CLOEXEC. Listen replaces a stale socket file and sets mode 0600. Return fd or -errno. */
int dmig_unix_listen(const char *path);
int dmig_unix_connect(const char *path);
/* Effective uid of the peer, or -errno. */
int dmig_unix_peer_uid(int sock);

/* asprintf that returns NULL on failure. */
char *dmig_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Milliseconds and microseconds of CLOCK_MONOTONIC. */
int64_t dmig_now_ms(void);
int64_t dmig_now_us(void);

/* poll(2) one fd for events; remaining milliseconds or -1 = no limit. 1 ready, 0 timeout, -errno. EINTR goes on. */
int dmig_poll_one(int fd, short events, int timeout_ms);

#endif
