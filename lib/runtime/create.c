/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criu/freezer.h"
#include "runtime/internal.h"
#include "runtime/remains.h"
#include "runtime/spec.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/spawn.h"

/* runc's JSON log is a few lines; what a hook prints can be longer. */
#define MAX_LOG (1 << 20)
/* Below the wrapper's own limit, so that it hears our answer. */
#define CREATE_MS (DMIG_TARGET_CREATE_MS - 10000)
#define CLEANUP_MS 10000

/* The shim's environment is not ours: what systemd gave dmigrated must not become a mount or descriptors of
 * the container. */
static const char *const create_env[] = {"NOTIFY_SOCKET=", "LISTEN_FDS=", NULL};

char *dmig_target__runc_message(const char *log)
{
	cleanup_free char *text = NULL;
	char *last = NULL, *save = NULL;
	if (!log || dmig_read_file(log, MAX_LOG, &text, NULL) < 0)
		return NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *o = json_loads(line, 0, NULL);
		const char *level = json_string_value(json_object_get(o, "level"));
		const char *msg = json_string_value(json_object_get(o, "msg"));
		if (level && msg && !strcmp(level, "error")) {
			free(last);
			last = strdup(msg);
		}
		json_decref(o);
	}
	return last;
}

static bool never(const char *name, void *opaque)
{
	(void)name;
	(void)opaque;
	return false;
}

static int take_args(
	struct dmig_target *t, char **argv, size_t argc, char **ret_pid_file, struct dmig_error **err)
{
	struct dmig_runc_args a;
	dmig_runc_args_parse((int)argc, argv, never, NULL, &a);
	if (!a.id || strcmp(a.id, t->id) || !a.bundle || !a.pid_file)
		return dmig_error_set(err, EINVAL, "create: id, --bundle or --pid-file missing");
	t->info.root = strdup(a.root ? a.root : "/run/runc");
	t->info.bundle = realpath(a.bundle, NULL);
	t->info.run_dir = strdup(t->run_dir);
	t->log = a.log ? strdup(a.log) : NULL;
	t->systemd_cgroup = a.systemd_cgroup;
	t->tty = a.console_socket != NULL;
	*ret_pid_file = strdup(a.pid_file);
	if (!t->info.bundle)
		return dmig_error_set(err, errno, "cannot find the bundle %s: %m", a.bundle);
	return t->info.root && t->info.run_dir && *ret_pid_file
		       ? 0
		       : dmig_error_set(err, ENOMEM, "out of memory");
}

static int run_create(struct dmig_target *t, char **argv, size_t argc, struct dmig_error **err)
{
	cleanup_free const char **runc_argv = calloc(argc + 1, sizeof(*runc_argv));
	if (!runc_argv || argc == 0)
		return dmig_error_set(err, ENOMEM, "out of memory");
	runc_argv[0] = t->runc;
	for (size_t i = 1; i < argc; i++)
		runc_argv[i] = argv[i];
	/* stdio of P is /dev/null: the container's own descriptors wait for the restore. */
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	s.argv = runc_argv;
	s.env = create_env;
	cleanup_fd int pidfd = -1;
	pid_t pid = dmig_spawn(&s, &pidfd, err);
	if (pid < 0)
		return pid;
	int status = dmig_wait_pid(pid, pidfd, CREATE_MS);
	if (status < 0) {
		kill(pid, SIGKILL);
		dmig_wait_pid(pid, pidfd, -1);
		return dmig_error_set(err, -status, "runc create did not end: %s", strerror(-status));
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	cleanup_free char *why = dmig_target__runc_message(t->log);
	return dmig_error_set(err, EIO, "%s", why ? why : "runc create failed without a message");
}

static int read_pid(const char *path, pid_t *ret, struct dmig_error **err)
{
	cleanup_free char *text = NULL;
	int r = dmig_read_file(path, 64, &text, NULL);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read %s: %s", path, strerror(-r));
	*ret = atoi(text);
	return *ret > 1 ? 0 : dmig_error_set(err, EPROTO, "%s holds no pid", path);
}

static int open_root(struct dmig_target *t, struct dmig_error **err)
{
	cleanup_free char *config = dmig_asprintf("%s/config.json", t->info.bundle);
	cleanup_free char *json = NULL, *root = NULL;
	size_t len = 0;
	int r = config ? dmig_read_file(config, DMIG_SPEC_MAX_BYTES, &json, &len) : -ENOMEM;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read the bundle's config.json: %s", strerror(-r));
	r = dmig_spec_root(json, len, t->info.bundle, &root, err);
	if (r < 0)
		return r;
	t->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return t->root_fd < 0 ? dmig_error_set(err, errno, "cannot open %s: %m", root) : 0;
}

static int note_cgroup(struct dmig_target *t, struct dmig_error **err)
{
	struct dmig_freezer *cgroup = NULL;
	int r = dmig_freezer_open(t->info.pid, &cgroup, err);
	if (r < 0)
		return r;
	t->info.cgroup = strdup(dmig_freezer_path(cgroup));
	dmig_freezer_free(cgroup);
	return t->info.cgroup ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

/* All that must be held or known before P dies. */
static int take_hold(struct dmig_target *t, struct dmig_error **err)
{
	pid_t pid = t->info.pid;
	t->info.start = dmig_process_start(pid);
	t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	cleanup_free char *netns = dmig_asprintf("/proc/%d/ns/net", (int)pid);
	t->netns_fd = netns ? open(netns, O_RDONLY | O_CLOEXEC) : -1;
	if (t->pidfd < 0 || t->netns_fd < 0 || !t->info.start)
		return dmig_error_set(err, ESRCH, "the waiting container (process %d) is gone", (int)pid);
	siginfo_t info;
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return dmig_error_set(
			err, errno, "the waiting container (process %d) is not our child: %m", (int)pid);
	int r = note_cgroup(t, err);
	if (r == 0)
		r = open_root(t, err);
	return r < 0 ? r : dmig_target_info_write(t->id, &t->info, err);
}

/* runc made a container that we cannot use. */
static void delete_container(struct dmig_target *t)
{
	const char *const argv[] = {t->runc, "--root", t->info.root, "delete", "--force", t->id, NULL};
	cleanup_error struct dmig_error *err = NULL;
	if (dmig_run(argv, create_env, CLEANUP_MS, NULL, &err) < 0)
		log_warn("target %.12s: %s", t->id, err->message);
}

int dmig_target__create(struct dmig_target *t, char **argv, size_t argc, struct dmig_error **err)
{
	cleanup_free char *pid_file = NULL;
	int r = take_args(t, argv, argc, &pid_file, err);
	if (r == 0)
		r = run_create(t, argv, argc, err);
	if (r < 0)
		return r;
	r = read_pid(pid_file, &t->info.pid, err);
	if (r == 0)
		r = take_hold(t, err);
	if (r < 0)
		delete_container(t);
	return r;
}
