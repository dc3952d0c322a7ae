/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/internal.h"
#include "util/io.h"

/*
 * getaddrinfo() knows no time limit and cannot be stopped. So it runs in a thread of its own; when the time
 * is over we leave it behind, and the last of the two to let go frees what they shared.
 */
struct lookup {
	pthread_mutex_t lock; /* guards all below but the question */
	pthread_cond_t finished;
	bool done, left;
	int result; /* of getaddrinfo() */
	struct addrinfo *list;
	/* The question. */
	char host[256], port[8];
	struct addrinfo hints;
};

static void lookup_free(struct lookup *l)
{
	if (l->list)
		freeaddrinfo(l->list);
	pthread_cond_destroy(&l->finished);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void *lookup_main(void *opaque)
{
	struct lookup *l = opaque;
	struct addrinfo *list = NULL;
	int result = getaddrinfo(*l->host ? l->host : NULL, l->port, &l->hints, &list);
	pthread_mutex_lock(&l->lock);
	l->result = result;
	l->list = result == 0 ? list : NULL;
	l->done = true;
	bool last = l->left;
	pthread_cond_signal(&l->finished);
	pthread_mutex_unlock(&l->lock);
	if (last)
		lookup_free(l);
	return NULL;
}

/* Detached, and deaf to signals: they are for the threads that the program knows. */
static int lookup_start(struct lookup *l)
{
	sigset_t all, saved;
	pthread_attr_t attr;
	pthread_t thread;
	int r = pthread_attr_init(&attr);
	if (r)
		return -r;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	r = pthread_create(&thread, &attr, lookup_main, l);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

static int lookup_wait(struct lookup *l, int64_t deadline, struct addrinfo **ret, int *ret_result)
{
	struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
	int r = 0;
	pthread_mutex_lock(&l->lock);
	while (!l->done && r == 0)
		r = deadline < 0 ? pthread_cond_wait(&l->finished, &l->lock)
				 : pthread_cond_clockwait(&l->finished, &l->lock, CLOCK_MONOTONIC, &until);
	bool done = l->done;
	l->left = true;
	if (done) {
		*ret = l->list;
		*ret_result = l->result;
		l->list = NULL;
	}
	pthread_mutex_unlock(&l->lock);
	if (!done)
		return -ETIMEDOUT;
	lookup_free(l);
	return 0;
}

static int in_thread(const char *host, const char *port, const struct addrinfo *hints, int64_t deadline,
	struct addrinfo **ret, int *ret_result)
{
	struct lookup *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->finished, NULL);
	snprintf(l->host, sizeof(l->host), "%s", host);
	snprintf(l->port, sizeof(l->port), "%s", port);
	l->hints = *hints;
	int r = lookup_start(l);
	if (r < 0) {
		lookup_free(l);
		return r;
	}
	return lookup_wait(l, deadline, ret, ret_result);
}

int dmig_net__resolve(const char *host, uint16_t port, int flags, int64_t deadline, struct addrinfo **ret,
	struct dmig_error **err)
{
	char service[8];
	snprintf(service, sizeof(service), "%u", (unsigned)port);
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV | AI_NUMERICHOST};
	int result = getaddrinfo(*host ? host : NULL, service, &hints, ret), r = 0;
	if (result == EAI_NONAME) {
		hints.ai_flags &= ~AI_NUMERICHOST;
		r = in_thread(host, service, &hints, deadline, ret, &result);
	}
	if (r < 0)
		return dmig_error_set(err, -r, "cannot find the address of %s: %s", host, strerror(-r));
	if (result != 0)
		return dmig_error_set(err, result == EAI_AGAIN ? EAGAIN : EHOSTUNREACH,
			"cannot find the address of %s: %s", host, gai_strerror(result));
	return 0;
}
