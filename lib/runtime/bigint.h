/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_RUNTIME_BIGINT_H
#define DMIG_RUNTIME_BIGINT_H

#include <stddef.h>

/*
 * runc's JSON has numbers above INT64_MAX (an unlimited rlimit is 18446744073709551615), which jansson
 * refuses. So these are wrapped into marked strings before parsing and unwrapped in what is written. Both
 * return a new NUL-terminated text, or NULL with errno: EINVAL when the text holds the mark already.
 */
char *dmig_bigint_wrap(const char *json, size_t len);
char *dmig_bigint_unwrap(const char *json);

#endif
