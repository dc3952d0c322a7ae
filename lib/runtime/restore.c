/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criu/dump.h"
#include "runtime/internal.h"
#include "runtime/remains.h"
#include "runtime/spec.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/paths.h"

/* Where Docker keeps the network namespaces of its containers, by name. */
#define DOCKER_NETNS_DIR "/run/docker/netns"
/* The helper answers RELEASE at once; it may have to be scheduled first. */
#define RELEASE_MS 2000
#define MAX_PROC_FILE 65536
/* Descriptor that CRIU inherits the terminal by: above all that runc and CRIU open for themselves. */
#define TTY_FD 198

/* ---- the bundle */

static char *resolve(const char *path, void *opaque)
{
	(void)opaque;
	return realpath(path, NULL);
}

/* The name that outlives us: the next dump needs the path that stands in runc's state. */
static int find_netns_path(int netns_fd, char **ret, struct dmig_error **err)
{
	struct stat ours, st;
	cleanup_dir DIR *d = opendir(DOCKER_NETNS_DIR);
	struct dirent *e;
	if (fstat(netns_fd, &ours) < 0)
		return dmig_error_set(err, errno, "cannot stat the network namespace: %m");
	while (d && (e = readdir(d))) {
		if (fstatat(dirfd(d), e->d_name, &st, 0) < 0 || st.st_ino != ours.st_ino ||
			st.st_dev != ours.st_dev)
			continue;
		*ret = dmig_asprintf("%s/%s", DOCKER_NETNS_DIR, e->d_name);
		return *ret ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
	}
	return dmig_error_set(
		err, ENOENT, "the container's network namespace has no name in " DOCKER_NETNS_DIR);
}

static int write_bundle(
	struct dmig_target *t, const struct dmig_restore_opts *opts, const char *dir, struct dmig_error **err)
{
	cleanup_free char *from = dmig_asprintf("%s/config.json", t->info.bundle);
	cleanup_free char *to = dmig_asprintf("%s/config.json", dir);
	cleanup_free char *json = NULL, *edited = NULL, *netns = NULL;
	size_t len = 0;
	if (!from || !to)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = dmig_read_file(from, DMIG_SPEC_MAX_BYTES, &json, &len);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot read %s: %s", from, strerror(-r));
	if (opts->external_netns && !opts->sandbox_key) {
		r = find_netns_path(t->netns_fd, &netns, err);
		if (r < 0)
			return r;
	}
	struct dmig_spec_edit edit = {.bundle = t->info.bundle,
		.netns_path = opts->sandbox_key ? opts->sandbox_key : netns,
		.devpts = t->devpts,
		.resolve = resolve};
	r = dmig_spec_for_restore(json, len, &edit, &edited, err);
	return r < 0 ? r : dmig_write_file_atomic(to, edited, strlen(edited), 0600, err);
}

/* ---- CRIU's configuration file */

static bool only_cgroup_v2(void)
{
	struct statfs fs;
	return statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/*
 * On v2 runc 1.1 does not tell CRIU where the container belongs: without this line it ends in a cgroup of the
 * source's name, outside every limit of its own. (manage-cgroups=ignore would show the container the host's
 * paths.)
 */
static char *cgroup_root_line(struct dmig_target *t)
{
	static const char prefix[] = "/sys/fs/cgroup/";
	if (!only_cgroup_v2() || strncmp(t->info.cgroup, prefix, strlen(prefix)))
		return strdup("");
	return dmig_asprintf("cgroup-root :/%s\n", t->info.cgroup + strlen(prefix));
}

static int write_criu_conf(struct dmig_target *t, const struct dmig_restore_opts *opts, const char *path,
	struct dmig_error **err)
{
	cleanup_free char *cgroup = cgroup_root_line(t);
	cleanup_free char *notify =
		opts->notify_socket ? dmig_asprintf("notify-socket %s\n", opts->notify_socket) : strdup("");
	cleanup_free char *tty =
		opts->tty_key ? dmig_asprintf("inherit-fd fd[%d]:%s\n", TTY_FD, opts->tty_key) : strdup("");
	/* The container's veth is held down by us until the commit: CRIU need not lock its network. */
	cleanup_free char *text =
		dmig_asprintf("network-lock skip\nverbosity=%d\n%s%s%s%s%s", opts->log_level,
			opts->tcp_close ? "tcp-close\n" : "", opts->wait_images ? "wait-images\n" : "",
			cgroup ? cgroup : "", notify ? notify : "", tty ? tty : "");
	if (!cgroup || !notify || !tty || !text)
		return dmig_error_set(err, ENOMEM, "out of memory");
	return dmig_write_file_atomic(path, text, strlen(text), 0600, err);
}

/* ---- GO */

struct restore_paths {
	char *bundle, *conf, *log, *work, *pid_file;
};

static void clear_paths(struct restore_paths *p)
{
	free(p->bundle);
	free(p->conf);
	free(p->log);
	free(p->work);
	free(p->pid_file);
}

static int make_paths(const struct dmig_target *t, struct restore_paths *p, struct dmig_error **err)
{
	p->bundle = dmig_asprintf("%s/bundle", t->run_dir);
	p->conf = dmig_asprintf("%s/restore.conf", t->run_dir);
	p->log = dmig_asprintf("%s/runc-restore.log", t->run_dir);
	p->work = dmig_asprintf("%s/restore", t->run_dir);
	p->pid_file = dmig_asprintf("%s/restore.pid", t->run_dir);
	if (!p->bundle || !p->conf || !p->log || !p->work || !p->pid_file)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = dmig_mkdir_p(p->bundle, 0700);
	if (r == 0)
		r = dmig_mkdir_p(p->work, 0700);
	return r < 0 ? dmig_error_set(err, -r, "cannot make folders in %s: %s", t->run_dir, strerror(-r)) : 0;
}

#define MAX_GO 48

/* Strings of GO; those that are made here are freed with it. */
struct go {
	const char *strings[MAX_GO];
	size_t n;
	char *made[MAX_GO];
	size_t n_made;
};

static void clear_go(struct go *g)
{
	for (size_t i = 0; i < g->n_made; i++)
		free(g->made[i]);
}

static void add(struct go *g, const char *const *strings)
{
	for (; *strings && g->n < MAX_GO; strings++)
		g->strings[g->n++] = *strings;
}

/* Takes ownership of s. NULL: no memory. */
static int add_made(struct go *g, char *s)
{
	if (!s || g->n == MAX_GO) {
		free(s);
		return -ENOMEM;
	}
	g->made[g->n_made++] = s;
	g->strings[g->n++] = s;
	return 0;
}
#define ADD(g, ...) add(g, (const char *const[]){__VA_ARGS__, NULL})

static void add_argv(struct go *g, const struct dmig_target *t, const struct dmig_restore_opts *opts,
	const struct restore_paths *p)
{
	ADD(g, t->runc, "--root", t->info.root, "--log", p->log, "--log-format", "json");
	if (t->systemd_cgroup)
		ADD(g, "--systemd-cgroup");
	/* --no-subreaper: the restored init goes to the shim. */
	ADD(g, "restore", "--detach", "--no-subreaper", "--image-path", opts->images_dir, "--work-path",
		p->work);
	ADD(g, "--pid-file", p->pid_file, "--bundle", p->bundle, "--ext-unix-sk", "--file-locks");
	if (!opts->tcp_close)
		ADD(g, "--tcp-established");
	ADD(g, t->id);
}

/* runc finds the launcher as its "criu"; that opens the terminal for the real one. */
static int add_launcher(struct go *g, const struct dmig_target *t, const char *dir)
{
	cleanup_free char *program = dmig_libexec_path("dmigrate-runc");
	cleanup_free char *link = dmig_asprintf("%s/criu", dir);
	if (!program || !link)
		return -ENOMEM;
	int r = dmig_mkdir_p(dir, 0700);
	if (r == 0 && symlink(program, link) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = add_made(
			g, dmig_asprintf("DMIGRATE_CRIU=%s/criu", t->criu_dir ? t->criu_dir : "/usr/sbin"));
	if (r == 0)
		r = add_made(g, dmig_asprintf("DMIGRATE_TTY=%s/0", t->devpts));
	return r < 0 ? r : add_made(g, dmig_asprintf("DMIGRATE_TTY_FD=%d", TTY_FD));
}

static int add_environment(struct go *g, const struct dmig_target *t, const struct restore_paths *p)
{
	const char *path = getenv("PATH");
	cleanup_free char *launch = dmig_asprintf("%s/launch", t->run_dir);
	const char *first = t->tty ? launch : t->criu_dir;
	if (!launch)
		return -ENOMEM;
	int r = add_made(
		g, dmig_asprintf("PATH=%s%s%s", first ? first : "", first ? ":" : "",
			   path && *path ? path
					 : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
	if (r == 0)
		r = add_made(g, dmig_asprintf("CRIU_CONFIG_FILE=%s", p->conf));
	if (r == 0 && t->tty)
		r = add_launcher(g, t, launch);
	/* Of the shim's environment these would become a mount and descriptors of the container. */
	ADD(g, "NOTIFY_SOCKET=", "LISTEN_FDS=");
	return r;
}

static int send_go(struct dmig_target *t, const struct dmig_restore_opts *opts, const struct restore_paths *p,
	struct dmig_error **err)
{
	__attribute__((cleanup(clear_go))) struct go g = {.n = 0};
	cleanup_free char *data = NULL;
	size_t len = 0;
	add_argv(&g, t, opts, p);
	size_t argc = g.n;
	int r = add_environment(&g, t, p);
	if (r == 0)
		r = dmig_strings_join(g.strings, g.n, &data, &len);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot prepare the restore: %s", strerror(-r));
	r = dmig_packet_send(
		t->helper, DMIG_TARGET_GO, (int)argc, data, len, t->stdio, t->stdio[0] >= 0 ? 3 : 0);
	return r < 0 ? dmig_error_set(err, -r, "cannot reach the restore helper: %s", strerror(-r)) : 0;
}

static int restore(struct dmig_target *t, const struct dmig_restore_opts *opts, struct dmig_error **err)
{
	__attribute__((cleanup(clear_paths))) struct restore_paths p = {0};
	if (t->trouble)
		return dmig_target__copy_trouble(t, err);
	if (t->stage != STAGE_VACATED)
		return dmig_error_set(err, EINVAL, "the waiting container still holds its place");
	if (t->tty != (opts->tty_key != NULL))
		return dmig_error_set(err, EINVAL, "only one of the two containers has a terminal");
	int r = make_paths(t, &p, err);
	if (r == 0)
		r = write_bundle(t, opts, p.bundle, err);
	if (r == 0)
		r = write_criu_conf(t, opts, p.conf, err);
	if (r == 0)
		r = send_go(t, opts, &p, err);
	if (r < 0)
		return r;
	/* Ours would keep the pipes open, and the container's end would never be seen. */
	dmig_target__close_stdio(t);
	dmig_target__set_stage(t, STAGE_RESTORING);
	return 0;
}

int dmig_target_restore(struct dmig_target *t, const struct dmig_restore_opts *opts, struct dmig_error **err)
{
	pthread_mutex_lock(&t->lock);
	int r = restore(t, opts, err);
	pthread_mutex_unlock(&t->lock);
	return r;
}

int dmig_target_reap(struct dmig_target *t, pid_t *ret_pid, struct dmig_error **err)
{
	pthread_mutex_lock(&t->lock);
	int r = t->trouble ? dmig_target__copy_trouble(t, err) : 0;
	if (r == 0)
		dmig_target__reap_zombie(t);
	if (r == 0 && !t->reaped)
		r = dmig_error_set(err, EBUSY, "process %d is no zombie of ours", (int)t->info.pid);
	*ret_pid = t->info.pid;
	pthread_mutex_unlock(&t->lock);
	return r;
}

/* ---- its end */

/* "Error (...)" lines of CRIU's log say why; runc's own message only that. */
static void explain(struct dmig_target *t, struct dmig_error **err)
{
	cleanup_free char *log = dmig_asprintf("%s/restore/restore.log", t->run_dir);
	cleanup_free char *runc_log = dmig_asprintf("%s/runc-restore.log", t->run_dir);
	cleanup_free char *criu = log ? dmig_criu_log_errors(log) : NULL;
	cleanup_free char *runc = runc_log ? dmig_target__runc_message(runc_log) : NULL;
	if (criu)
		dmig_error_set(err, EIO, "runc restore failed: CRIU says: %s", criu);
	else if (runc)
		dmig_error_set(err, EIO, "runc restore failed: %s", runc);
}

/* The helper was killed after the release: runc and what it restored went on without it. */
static int see_for_ourselves(struct dmig_target *t, int64_t deadline, struct dmig_error **err)
{
	struct dmig_helper_note note;
	int64_t left = deadline - dmig_now_ms();
	dmig_helper_read(t->id, &note);
	int r = dmig_target__wait_runc(&note, left > 0 ? (int)left : 0);
	if (r == 0 && !dmig_target__runs(&t->info, t->id))
		r = -ESRCH;
	if (r == -ESRCH)
		return dmig_error_set(err, ESRCH, "the restore helper died, and so did the container");
	return r < 0 ? dmig_error_set(err, -r, "runc restore did not end in time") : 0;
}

int dmig_target__wait_restored(struct dmig_target *t, int64_t deadline, struct dmig_error **err)
{
	int r = 0;
	while (r == 0 && !t->restored && !t->trouble && (t->helper >= 0 || t->stage < STAGE_RELEASED))
		r = dmig_target__wait_change(t, deadline);
	if (t->restored && t->restore_status != 0)
		explain(t, err);
	if (t->restored && t->restore_status == 0)
		return 0;
	if (t->trouble)
		return err && *err ? -(*err)->code : dmig_target__copy_trouble(t, err);
	if (r < 0)
		return dmig_error_set(err, -r, "runc restore did not end in time");
	return see_for_ourselves(t, deadline, err);
}

int dmig_target_wait_restored(struct dmig_target *t, int timeout_ms, struct dmig_error **err)
{
	int64_t deadline = dmig_now_ms() + timeout_ms;
	pthread_mutex_lock(&t->lock);
	int r = dmig_target__wait_restored(t, deadline, err);
	pthread_mutex_unlock(&t->lock);
	return r;
}

static int release(struct dmig_target *t, struct dmig_error **err)
{
	if (t->trouble)
		return dmig_target__copy_trouble(t, err);
	if (t->stage == STAGE_RELEASED)
		return 0;
	if (t->stage != STAGE_RESTORING)
		return dmig_error_set(err, EINVAL, "nothing is being restored");
	int r = dmig_packet_send(t->helper, DMIG_TARGET_RELEASE, 0, NULL, 0, NULL, 0);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot reach the restore helper: %s", strerror(-r));
	int64_t deadline = dmig_now_ms() + RELEASE_MS;
	while (r == 0 && !t->released && !t->trouble)
		r = dmig_target__wait_change(t, deadline);
	if (t->trouble)
		return dmig_target__copy_trouble(t, err);
	if (r < 0)
		return dmig_error_set(err, -r, "the restore helper does not answer");
	dmig_target__set_stage(t, STAGE_RELEASED);
	return 0;
}

int dmig_target_release(struct dmig_target *t, struct dmig_error **err)
{
	pthread_mutex_lock(&t->lock);
	int r = release(t, err);
	pthread_mutex_unlock(&t->lock);
	return r;
}
