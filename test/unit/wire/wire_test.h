/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_TEST_WIRE_TEST_H
#define DMIG_TEST_WIRE_TEST_H

#include "support/test.h"

#include <errno.h>

#include "wire/check.h"
#include "wire/messages.h"

/* Every cut of a good payload, and one byte more, must be refused. decode takes (buffer, length). */
#define assert_exact_length(decode, buf, len)                                                                \
	do {                                                                                                 \
		for (size_t _n = 0; _n <= (size_t)(len) + 1; _n++) {                                         \
			uint8_t *_cut = calloc(1, _n + 1);                                                   \
			memcpy(_cut, buf, _n < (size_t)(len) ? _n : (size_t)(len));                          \
			int _r = decode(_cut, _n);                                                           \
			assert_int_equal(_r, _n == (size_t)(len) ? 0 : -EPROTO);                             \
			free(_cut);                                                                          \
		}                                                                                            \
	} while (0)

#endif
