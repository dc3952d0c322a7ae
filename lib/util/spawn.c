/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/io.h"

extern char **environ;

/* Output of a tool beyond this is not interesting, and a runaway tool must not eat the host's memory. */
#define MAX_OUTPUT (1 << 20)
#define MAX_STDERR 2000

static bool same_variable(const char *a, const char *b)
{
	const char *eq = strchr(b, '=');
	size_t n = eq ? (size_t)(eq - b) + 1 : strlen(b);
	return strncmp(a, b, n) == 0;
}

static bool is_replaced(const char *var, const char *const *env)
{
	for (size_t i = 0; env && env[i]; i++)
		if (same_variable(var, env[i]))
			return true;
	return false;
}

/* Built before fork: malloc is not allowed between fork and exec in a threaded process. */
static const char **merged_environment(const char *const *env)
{
	size_t n = 0, extra = 0, out = 0;
	while (environ && environ[n])
		n++;
	while (env && env[extra])
		extra++;
	const char **merged = calloc(n + extra + 1, sizeof(*merged));
	if (!merged)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!is_replaced(environ[i], env))
			merged[out++] = environ[i];
	for (size_t i = 0; i < extra; i++)
		merged[out++] = env[i];
	return merged;
}

/* PATH of the child's environment decides, as a shell would do it. */
static char *find_program(const char *name, const char *const *env)
{
	if (strchr(name, '/'))
		return strdup(name);
	const char *path = NULL;
	for (size_t i = 0; env[i]; i++)
		if (strncmp(env[i], "PATH=", 5) == 0)
			path = env[i] + 5;
	if (!path)
		path = "/usr/sbin:/usr/bin:/sbin:/bin";
	while (*path) {
		size_t n = strcspn(path, ":");
		char *candidate = dmig_asprintf("%.*s/%s", (int)n, path, name);
		if (candidate && access(candidate, X_OK) == 0)
			return candidate;
		free(candidate);
		path += n + (path[n] == ':');
	}
	return NULL;
}

static void reset_signals(void)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	for (int s = 1; s < NSIG; s++)
		sigaction(s, &dfl, NULL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void child_stdio(int fd, int target)
{
	if (fd < 0)
		fd = open("/dev/null", target == 0 ? O_RDONLY : O_WRONLY);
	else if (fd < 3)
		fd = dup(fd);
	if (fd >= 0) {
		dup2(fd, target);
		if (fd > 2)
			close(fd);
	}
}

/* stdio fds are first lifted above 2, so that dup2 of one cannot overwrite another. */
static void child_setup(const struct dmig_spawn *s)
{
	int in = s->stdin_fd >= 0 ? fcntl(s->stdin_fd, F_DUPFD, 3) : -1;
	int out = s->stdout_fd >= 0 ? fcntl(s->stdout_fd, F_DUPFD, 3) : -1;
	int errfd = s->stderr_fd >= 0 ? fcntl(s->stderr_fd, F_DUPFD, 3) : -1;
	child_stdio(in, 0);
	child_stdio(out, 1);
	child_stdio(errfd, 2);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	for (size_t i = 0; i < s->n_keep_fds; i++)
		fcntl(s->keep_fds[i], F_SETFD, 0);
	if (s->parent_death_signal)
		prctl(PR_SET_PDEATHSIG, s->parent_death_signal);
	reset_signals();
}

static pid_t fork_exec(const struct dmig_spawn *s, const char *program, const char **env, int *ret_pidfd)
{
	cleanup_fd int rd = -1;
	cleanup_fd int wr = -1;
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	rd = p[0];
	wr = fcntl(p[1], F_DUPFD_CLOEXEC, 16); /* out of the way of stdio and low kept fds */
	close(p[1]);
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		child_setup(s);
		execve(program, (char *const *)(uintptr_t)s->argv, (char *const *)(uintptr_t)env);
		int e = errno;
		ssize_t ignored = write(wr, &e, sizeof(e));
		(void)ignored;
		_exit(127);
	}
	close(steal_fd(&wr));
	int e = 0;
	ssize_t n;
	do
		n = read(rd, &e, sizeof(e));
	while (n < 0 && errno == EINTR);
	if (n == sizeof(e)) {
		waitpid(pid, NULL, 0);
		return -e;
	}
	if (ret_pidfd)
		*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return pid;
}

pid_t dmig_spawn(const struct dmig_spawn *s, int *ret_pidfd, struct dmig_error **err)
{
	cleanup_free const char **env = merged_environment(s->env);
	cleanup_free char *program = env ? find_program(s->argv[0], env) : NULL;

	if (!env)
		return dmig_error_set(err, ENOMEM, "out of memory");
	if (!program)
		return dmig_error_set(err, ENOENT, "%s is not installed (not found in PATH)", s->argv[0]);
	pid_t pid = fork_exec(s, program, env, ret_pidfd);
	if (pid < 0)
		return dmig_error_set(err, -pid, "cannot start %s: %s", program, strerror(-pid));
	return pid;
}

int dmig_wait_pid(pid_t pid, int pidfd, int timeout_ms)
{
	if (timeout_ms >= 0) {
		cleanup_fd int own = -1;
		if (pidfd < 0)
			pidfd = own = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd < 0)
			return -errno;
		int r = dmig_poll_one(pidfd, POLLIN, timeout_ms);
		if (r < 0)
			return r;
		if (r == 0)
			return -ETIMEDOUT;
	}
	int status;
	for (;;) {
		pid_t r = waitpid(pid, &status, 0);
		if (r == pid)
			return status;
		if (errno != EINTR)
			return -errno;
	}
}

struct capture {
	int fd;
	char *buf;
	size_t len, max;
};

/* Keeps the first max bytes; what follows is read and dropped, so that the child never blocks. */
static bool drain(struct capture *c)
{
	char chunk[4096];
	ssize_t n = read(c->fd, chunk, sizeof(chunk));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	size_t take = c->max - c->len < (size_t)n ? c->max - c->len : (size_t)n;
	char *bigger = realloc(c->buf, c->len + take + 1);
	if (!bigger)
		return true;
	c->buf = bigger;
	memcpy(c->buf + c->len, chunk, take);
	c->len += take;
	c->buf[c->len] = '\0';
	return true;
}

/* What is in the pipe right now: its other end may stay open in a grandchild. */
static void drain_rest(struct capture *c)
{
	while (dmig_poll_one(c->fd, POLLIN, 0) == 1 && drain(c))
		;
}

/* Until the child has ended: a grandchild may keep the pipes, and the child may close them and go on. */
static int collect(struct capture *out, struct capture *errors, int pidfd, int timeout_ms)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	bool out_open = true, err_open = true;
	for (;;) {
		struct pollfd p[3] = {{.fd = out_open ? out->fd : -1, .events = POLLIN},
			{.fd = err_open ? errors->fd : -1, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
		int64_t left = timeout_ms < 0 ? -1 : deadline - dmig_now_ms();
		if (timeout_ms >= 0 && left <= 0)
			return -ETIMEDOUT;
		int r = poll(p, 3, (int)left);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0 && p[0].revents)
			out_open = drain(out);
		if (r > 0 && p[1].revents)
			err_open = drain(errors);
		if (r > 0 && p[2].revents) {
			drain_rest(out);
			drain_rest(errors);
			return 0;
		}
	}
}

static int outcome(const char *name, int status, const struct capture *errors, struct dmig_error **err)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	size_t len = errors->len;
	while (len && (errors->buf[len - 1] == '\n' || errors->buf[len - 1] == ' '))
		errors->buf[--len] = '\0';
	const char *text = len ? errors->buf : "no message";
	if (WIFSIGNALED(status))
		return dmig_error_set(err, EIO, "%s was killed by signal %d: %s", name, WTERMSIG(status), text);
	return dmig_error_set(err, EIO, "%s failed (exit code %d): %s", name, WEXITSTATUS(status), text);
}

int dmig_run(const char *const *argv, const char *const *env, int timeout_ms, char **ret_out, struct dmig_error **err)
{
	int po[2], pe[2];
	if (pipe2(po, O_CLOEXEC) < 0)
		return dmig_error_set(err, errno, "pipe: %m");
	if (pipe2(pe, O_CLOEXEC) < 0) {
		int e = errno;
		close(po[0]);
		close(po[1]);
		return dmig_error_set(err, e, "pipe: %s", strerror(e));
	}
	cleanup_fd int out_rd = po[0];
	cleanup_fd int err_rd = pe[0];
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	s.argv = argv;
	s.env = env;
	s.stdout_fd = po[1];
	s.stderr_fd = pe[1];
	cleanup_fd int pidfd = -1;
	pid_t pid = dmig_spawn(&s, &pidfd, err);
	close(po[1]);
	close(pe[1]);
	if (pid < 0)
		return pid;

	struct capture out = {.fd = out_rd, .max = MAX_OUTPUT}, errors = {.fd = err_rd, .max = MAX_STDERR};
	int r = collect(&out, &errors, pidfd, timeout_ms);
	if (r < 0)
		kill(pid, SIGKILL);
	int status = dmig_wait_pid(pid, pidfd, -1);
	if (r == -ETIMEDOUT)
		r = dmig_error_set(err, ETIMEDOUT, "%s did not end within %d ms and was killed", argv[0], timeout_ms);
	else
		r = outcome(argv[0], status, &errors, err);
	if (r == 0 && ret_out)
		*ret_out = out.buf ? steal_ptr(&out.buf) : strdup("");
	free(out.buf);
	free(errors.buf);
	return r;
}
