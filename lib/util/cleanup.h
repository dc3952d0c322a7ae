/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_UTIL_CLEANUP_H
#define DMIG_UTIL_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Scope-bound cleanup. File descriptors start at -1, pointers at NULL; all
 * helpers keep errno, so `return -errno` after a failing call stays right.
 */
static inline void dmig_freep(void *p)
{
	int saved = errno;
	free(*(void **)p);
	*(void **)p = NULL;
	errno = saved;
}

static inline void dmig_closep(int *fd)
{
	int saved = errno;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

static inline void dmig_fclosep(FILE **f)
{
	int saved = errno;
	if (*f)
		fclose(*f);
	*f = NULL;
	errno = saved;
}

static inline void dmig_closedirp(DIR **d)
{
	int saved = errno;
	if (*d)
		closedir(*d);
	*d = NULL;
	errno = saved;
}

static inline int dmig_steal_fd(int *fd)
{
	int r = *fd;
	*fd = -1;
	return r;
}

#define cleanup_free __attribute__((cleanup(dmig_freep)))
#define cleanup_fd __attribute__((cleanup(dmig_closep)))
#define cleanup_file __attribute__((cleanup(dmig_fclosep)))
#define cleanup_dir __attribute__((cleanup(dmig_closedirp)))

/* Take the value out of a cleanup variable: the caller owns it now. */
#define steal_ptr(p)                                                                                                   \
	({                                                                                                             \
		__typeof__(*(p)) *_pp = (p);                                                                           \
		__typeof__(*(p)) _v = *_pp;                                                                            \
		*_pp = NULL;                                                                                           \
		_v;                                                                                                    \
	})
#define steal_fd(p) dmig_steal_fd(p)

/* Defines dmig_<type>_freep() and so cleanup_<type> for an opaque type with a _free(). */
#define DMIG_DEFINE_CLEANUP(type, free_fn)                                                                             \
	static inline void free_fn##p(type **p)                                                                        \
	{                                                                                                              \
		int _saved = errno;                                                                                    \
		free_fn(*p);                                                                                           \
		*p = NULL;                                                                                             \
		errno = _saved;                                                                                        \
	}
#define cleanup_with(free_fn) __attribute__((cleanup(free_fn##p)))

#endif
