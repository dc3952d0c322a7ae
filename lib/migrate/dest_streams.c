/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "migrate/dest_internal.h"
#include "migrate/fault.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* A TCP connection whose peer does not finish the handshake is not one of ours. */
#define HANDSHAKE_MS 5000

static void serve_streams(struct dest *d, struct dmig_conn *conn)
{
	struct dmig_stream stream;
	cleanup_error struct dmig_error *error = NULL;
	int r;
	while ((r = dmig_stream_next(conn, &stream, &error)) == 0) {
		cleanup_free char *point = dmig_asprintf("stream-%s", dmig_wire_stream_kind_name(stream.kind));
		r = dmig_fault(d->w, point ? point : "", &error);
		if (r == 0)
			r = dest__receive(d, conn, &stream, &error);
		if (r < 0)
			dmig_error_side(error, DMIG_SIDE_DESTINATION);
		/* On failure the sender hears the reason on this connection, and everybody by ABORT. */
		dmig_stream_done(conn, r < 0 ? error : NULL, NULL);
		if (r < 0)
			break;
	}
	if (r < 0 && r != -EPIPE && error)
		dmig_stop_now(d->w->stop, steal_ptr(&error));
}

static void serve_query(struct dest *d, struct dmig_conn *conn)
{
	struct dmig_frame f;
	cleanup_error struct dmig_error *error = NULL;
	if (dmig_conn_recv(conn, HANDSHAKE_MS, &f, &error) < 0 || f.type != DMIG_MSG_QUERY)
		return;
	int r = dest__answer_query(conn, d->w->journal, &error);
	log_info("source asked who runs: %s", r == 1 ? "nothing ran" : r == 0 ? "it runs here" : "cannot say");
	if (r == 1)
		dmig_stop_printf(d->w->stop, DMIG_ERR_FAILED, ECONNABORTED, "the source lost the connection and goes on");
}

struct data_thread {
	struct dest *d;
	struct data_slot *slot;
	int fd;
};

static struct dmig_conn *greet(struct dest *d, int fd, enum dmig_role *ret_role)
{
	struct dmig_conn *conn = NULL;
	struct dmig_wire_hello hello;
	cleanup_error struct dmig_error *error = NULL;
	int r = dmig_conn_server(fd, d->o->key, HANDSHAKE_MS, &conn, &error);
	if (r == 0)
		r = dest__hello(conn, d->w->id, d->o->port, &hello, &error);
	if (r < 0) {
		log_warn("data connection refused: %s", error ? error->message : strerror(-r));
		dmig_conn_free(conn);
		return NULL;
	}
	*ret_role = hello.role;
	return conn;
}

static void set_conn(struct dest *d, struct data_slot *slot, struct dmig_conn *conn)
{
	pthread_mutex_lock(&d->lock);
	slot->conn = conn;
	pthread_mutex_unlock(&d->lock);
}

static void serve(struct dest *d, struct data_slot *slot, struct dmig_conn *conn, enum dmig_role role)
{
	set_conn(d, slot, conn); /* dest__stop_streams() can now wake us */
	if (role == DMIG_ROLE_DATA)
		serve_streams(d, conn);
	else
		serve_query(d, conn);
	set_conn(d, slot, NULL);
	dmig_conn_free(conn);
}

static void *data_thread(void *opaque)
{
	struct data_thread *t = opaque;
	struct dest *d = t->d;
	enum dmig_role role;
	struct dmig_conn *conn = greet(d, t->fd, &role);
	if (conn)
		serve(d, t->slot, conn, role);
	pthread_mutex_lock(&d->lock);
	dmig_closep(&t->slot->fd);
	t->slot->ended = true;
	pthread_mutex_unlock(&d->lock);
	free(t);
	return NULL;
}

/* Lock held. Threads that have ended make room: a port that strangers knock at must stay open for our source. */
static struct data_slot *free_slot(struct dest *d)
{
	struct data_slot *found = NULL;
	for (size_t i = 0; i < MAX_DATA_THREADS; i++) {
		struct data_slot *slot = &d->slots[i];
		if (slot->used && slot->ended) {
			pthread_join(slot->thread, NULL);
			*slot = (struct data_slot){.fd = -1};
		}
		if (!slot->used && !found)
			found = slot;
	}
	return found;
}

static void start_data_thread(struct dest *d, int fd)
{
	struct data_thread *t = calloc(1, sizeof(*t));
	pthread_mutex_lock(&d->lock);
	struct data_slot *slot = t ? free_slot(d) : NULL;
	if (slot) {
		*t = (struct data_thread){d, slot, fd};
		*slot = (struct data_slot){.used = true, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
		if (pthread_create(&slot->thread, NULL, data_thread, t) != 0) {
			dmig_closep(&slot->fd);
			*slot = (struct data_slot){.fd = -1};
			slot = NULL;
		}
	}
	pthread_mutex_unlock(&d->lock);
	if (!slot) {
		log_warn("too many data connections: one is refused");
		free(t);
		close(fd);
	}
}

static void *acceptor(void *opaque)
{
	struct dest *d = opaque;
	for (;;) {
		struct pollfd p[2] = {{.fd = d->o->listen_fd, .events = POLLIN}, {.fd = d->accept_stop, .events = POLLIN}};
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			break;
		if (!p[0].revents)
			continue;
		int fd = dmig_accept(d->o->listen_fd, 0, NULL);
		if (fd >= 0)
			start_data_thread(d, fd);
	}
	return NULL;
}

int dest__start_acceptor(struct dest *d, struct dmig_error **err)
{
	d->accept_stop = eventfd(0, EFD_CLOEXEC);
	if (d->accept_stop < 0)
		return dmig_error_set(err, errno, "eventfd: %m");
	int r = pthread_create(&d->acceptor, NULL, acceptor, d);
	if (r)
		return dmig_error_set(err, r, "cannot start a thread: %s", strerror(r));
	d->accepting = true;
	return 0;
}

void dest__stop_streams(struct dest *d)
{
	uint64_t one = 1;
	if (!d->accepting)
		return;
	if (write(d->accept_stop, &one, sizeof(one)) < 0)
		log_error("eventfd: %m");
	pthread_join(d->acceptor, NULL);
	d->accepting = false;
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < MAX_DATA_THREADS; i++) {
		if (d->slots[i].conn)
			dmig_conn_shutdown(d->slots[i].conn);
		else if (d->slots[i].used && !d->slots[i].ended)
			shutdown(d->slots[i].fd, SHUT_RDWR); /* in its handshake */
	}
	pthread_mutex_unlock(&d->lock);
	for (size_t i = 0; i < MAX_DATA_THREADS; i++) {
		if (d->slots[i].used)
			pthread_join(d->slots[i].thread, NULL);
		d->slots[i] = (struct data_slot){.fd = -1};
	}
	close(d->accept_stop);
}
