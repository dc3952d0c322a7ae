/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "criu/notify.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "criu/internal.h"
#include "criu/notify-wire.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/*
 * Three states: nobody is connected (only listen_fd is watched), connected (only conn is watched, so that a
 * second CRIU waits in the backlog), and connected with a stage that is not answered yet. epoll_fd always
 * watches the one that counts, so callers can keep polling one number.
 */
struct dmig_notify {
	char *path;
	int listen_fd, conn, epoll_fd;
	bool open_stage; /* asked, not answered */
	bool heard;      /* conn has sent something: its end means the end of CRIU */
	bool one_stage;  /* conn belongs to dmigrate-hook */
	pid_t peer;
};

static const struct {
	const char *name;
	enum dmig_criu_stage stage;
} stages[] = {
	{"pre-dump", DMIG_CRIU_PRE_DUMP},
	{"post-freeze", DMIG_CRIU_POST_FREEZE},
	{"network-lock", DMIG_CRIU_NETWORK_LOCK},
	{"post-dump", DMIG_CRIU_POST_DUMP},
	{"network-unlock", DMIG_CRIU_NETWORK_UNLOCK},
	{"wait-images", DMIG_CRIU_WAIT_IMAGES},
	{"pre-restore", DMIG_CRIU_PRE_RESTORE},
	{"root-host-pid", DMIG_CRIU_ROOT_HOST_PID},
	{"setup-namespaces", DMIG_CRIU_SETUP_NAMESPACES},
	{"post-setup-namespaces", DMIG_CRIU_POST_SETUP_NAMESPACES},
	{"post-restore", DMIG_CRIU_POST_RESTORE},
	{"pre-resume", DMIG_CRIU_PRE_RESUME},
	{"post-resume", DMIG_CRIU_POST_RESUME},
};
#define N_STAGES (sizeof(stages) / sizeof(stages[0]))

const char *dmig_criu_stage_name(enum dmig_criu_stage stage)
{
	for (size_t i = 0; i < N_STAGES; i++)
		if (stages[i].stage == stage)
			return stages[i].name;
	return "other";
}

static enum dmig_criu_stage stage_of(const char *name)
{
	for (size_t i = 0; i < N_STAGES; i++)
		if (strcmp(stages[i].name, name) == 0)
			return stages[i].stage;
	return DMIG_CRIU_OTHER;
}

static int watch(struct dmig_notify *n, int op, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	return epoll_ctl(n->epoll_fd, op, fd, &ev) < 0 ? -errno : 0;
}

int dmig_notify_new(const char *path, struct dmig_notify **ret, struct dmig_error **err)
{
	struct dmig_notify *n = calloc(1, sizeof(*n));
	if (!n)
		return dmig_error_set(err, ENOMEM, "out of memory");
	n->conn = n->listen_fd = -1;
	n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int r = n->epoll_fd < 0 ? -errno : 0;
	if (r == 0)
		r = n->listen_fd = dmig_unix_listen(path);
	if (r >= 0)
		r = watch(n, EPOLL_CTL_ADD, n->listen_fd);
	if (r >= 0 && !(n->path = strdup(path)))
		r = -ENOMEM;
	if (r < 0) {
		dmig_notify_free(n);
		return dmig_error_set(err, -r, "cannot listen on %s: %s", path, strerror(-r));
	}
	*ret = n;
	return 0;
}

void dmig_notify_free(struct dmig_notify *n)
{
	if (!n)
		return;
	dmig_closep(&n->conn);
	dmig_closep(&n->listen_fd);
	dmig_closep(&n->epoll_fd);
	if (n->path)
		unlink(n->path);
	free(n->path);
	free(n);
}

int dmig_notify_fd(const struct dmig_notify *n)
{
	return n->epoll_fd;
}

pid_t dmig_notify_peer(const struct dmig_notify *n)
{
	return n->peer;
}

static void hang_up(struct dmig_notify *n)
{
	if (n->conn >= 0) {
		dmig_closep(&n->conn); /* leaves the epoll set by itself */
		if (n->listen_fd >= 0)
			watch(n, EPOLL_CTL_ADD, n->listen_fd);
	}
	n->open_stage = n->heard = n->one_stage = false;
}

void dmig_notify_shut(struct dmig_notify *n)
{
	dmig_closep(&n->listen_fd); /* resets what waits in the backlog */
	hang_up(n);
}

/* The socket file is 0600 already; this also stops a descriptor that leaked to another user. */
static int take_connection(struct dmig_notify *n)
{
	cleanup_fd int fd = accept4(n->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	if (cred.uid != 0 && cred.uid != geteuid()) {
		log_warn("notify socket: uid %u is not root, dropped", (unsigned)cred.uid);
		return 0;
	}
	int r = watch(n, EPOLL_CTL_ADD, fd);
	if (r < 0)
		return r;
	epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, n->listen_fd, NULL);
	n->conn = steal_fd(&fd);
	n->peer = cred.pid;
	return 0;
}

int dmig_notify__parse(const void *buf, size_t len, struct dmig_notify_event *ret, bool *ret_one_stage)
{
	struct dmig_notify_request req;
	if (len != sizeof(req))
		return -EBADMSG;
	memcpy(&req, buf, sizeof(req));
	uint32_t magic = le32toh(req.magic);
	int32_t root = (int32_t)le32toh((uint32_t)req.root_pid);
	if (magic != DMIG_NOTIFY_MAGIC && magic != DMIG_NOTIFY_MAGIC_HOOK)
		return -EBADMSG;
	if (le32toh(req.version) != DMIG_NOTIFY_VERSION)
		return -EPROTONOSUPPORT;
	if (!memchr(req.action, '\0', sizeof(req.action)) || !req.action[0] || root < 0)
		return -EBADMSG;
	memset(ret, 0, sizeof(*ret));
	strcpy(ret->name, req.action);
	ret->stage = stage_of(ret->name);
	ret->root_pid = root;
	*ret_one_stage = magic == DMIG_NOTIFY_MAGIC_HOOK;
	return 0;
}

/* 1: *ret is a new stage. 0: nothing yet, go on waiting. */
static int read_stage(struct dmig_notify *n, struct dmig_notify_event *ret, struct dmig_error **err)
{
	char buf[sizeof(struct dmig_notify_request) + 1]; /* one more: a packet that is too long shows */
	ssize_t len = recv(n->conn, buf, sizeof(buf), 0);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (len <= 0) {
		/* The end of a hook after its answer, and of somebody who never spoke, is nothing. */
		bool gone = n->open_stage || (n->heard && !n->one_stage);
		hang_up(n);
		return gone ? dmig_error_set(err, EPIPE, "CRIU is gone") : 0;
	}
	if (n->open_stage) {
		hang_up(n);
		return dmig_error_set(err, EPROTO, "CRIU asked again before it was answered");
	}
	int r = dmig_notify__parse(buf, (size_t)len, ret, &n->one_stage);
	if (r < 0) {
		hang_up(n);
		return dmig_error_set(err, -r, "not a notification of CRIU (%zd bytes)", len);
	}
	n->open_stage = n->heard = true;
	return 1;
}

/* 0: time for read_stage() or take_connection(). */
static int wait_readable(struct dmig_notify *n, int64_t deadline, int cancel_fd, struct dmig_error **err)
{
	struct pollfd p[2] = {{.fd = n->epoll_fd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
	int64_t left = deadline < 0 ? -1 : deadline - dmig_now_ms();
	if (deadline >= 0 && left < 0)
		left = 0;
	int r = poll(p, 2, (int)left);
	if (r < 0)
		return errno == EINTR ? 1 : dmig_error_set(err, errno, "poll: %m");
	if (p[1].revents)
		return dmig_error_set_class(err, DMIG_ERR_CANCELLED, ECANCELED, "cancelled");
	if (r == 0)
		return dmig_error_set(err, ETIMEDOUT, "CRIU did not say anything in time");
	return 0;
}

int dmig_notify_next(struct dmig_notify *n, int timeout_ms, int cancel_fd, struct dmig_notify_event *ret,
	struct dmig_error **err)
{
	int64_t deadline = timeout_ms < 0 ? -1 : dmig_now_ms() + timeout_ms;
	for (;;) {
		if (n->listen_fd < 0)
			return dmig_error_set(err, EPIPE, "the notify socket is closed");
		int r = wait_readable(n, deadline, cancel_fd, err);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		if (n->conn >= 0) {
			r = read_stage(n, ret, err);
			if (r != 0)
				return r < 0 ? r : 0;
			continue;
		}
		r = take_connection(n);
		if (r < 0)
			return dmig_error_set(err, -r, "cannot accept CRIU's connection: %s", strerror(-r));
	}
}

bool dmig_notify_waits(const struct dmig_notify *n)
{
	char byte;
	if (n->conn < 0 || !n->open_stage)
		return false;
	return recv(n->conn, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

int dmig_notify_answer(struct dmig_notify *n, int ret, int32_t value, struct dmig_error **err)
{
	struct dmig_notify_reply reply = {.magic = htole32(DMIG_NOTIFY_MAGIC),
		.ret = (int32_t)htole32((uint32_t)ret),
		.value = (int32_t)htole32((uint32_t)value)};
	if (!n->open_stage)
		return dmig_error_set(err, EINVAL, "there is no stage to answer");
	ssize_t len;
	do
		len = send(n->conn, &reply, sizeof(reply), MSG_NOSIGNAL);
	while (len < 0 && errno == EINTR);
	int saved = errno;
	n->open_stage = false;
	if (len == (ssize_t)sizeof(reply))
		return 0;
	hang_up(n);
	return dmig_error_set(err, saved == ECONNRESET ? EPIPE : saved, "CRIU is gone: %s", strerror(saved));
}
