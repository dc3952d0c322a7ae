/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "daemon_json.h"
#include "docker/docker.h"
#include "dockerd.h"
#include "migrate/control.h"
#include "paths.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/paths.h"

/* Docker answers within some 50 ms of the signal; a busy one may take seconds. It tells no one when it is
 * done. */
#define RELOAD_TIMEOUT_MS 10000
#define RELOAD_POLL_US 50000
/* The entry of --undo while containers still name our runtime; Docker finds it in its PATH, as its own. */
#define PLAIN_RUNTIME "runc"

struct values {
	bool undo, dry_run;
	char *runtime_path, *daemon_json;
};

static const struct dmig_cli_option options[] = {
	{"undo", NULL, "take the runtime away again", DMIG_CLI_FLAG, offsetof(struct values, undo), NULL},
	{"runtime-path", "PATH", "program to register (the installed dmigrate-runc)", DMIG_CLI_TEXT,
		offsetof(struct values, runtime_path), NULL},
	{"daemon-json", "PATH", "Docker's configuration (what dockerd uses, " DMIG_DAEMON_JSON ")",
		DMIG_CLI_TEXT, offsetof(struct values, daemon_json), NULL},
	{"dry-run", NULL, "show what would be written, change nothing", DMIG_CLI_FLAG,
		offsetof(struct values, dry_run), NULL},
	{0},
};

struct setup {
	const struct dmig_cli *cli;
	struct values v;
	struct dmig_docker *docker;  /* NULL: Docker does not run */
	struct dmig_dockerd dockerd; /* only with docker */
	struct dmig_daemon_json file;
	char *target; /* what the entry shall point at; NULL: no entry */
	char **users; /* names of containers that have the runtime; only for --undo */
	char *text;   /* new content; NULL: nothing to write */
};

static void say(const struct setup *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct setup *s, const char *fmt, ...)
{
	va_list ap;
	if (s->cli->common.quiet || s->cli->common.json)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static int find_docker(struct setup *s, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL;
	int r = dmig_docker_open(&s->docker, &e);
	if (r == 0)
		return dmig_dockerd_find(dmig_docker_socket(s->docker), &s->dockerd, err);
	/* Not running is fine: it reads the file when it starts. */
	if (r == -ECONNREFUSED)
		return 0;
	if (err && !*err)
		*err = steal_ptr(&e);
	return r;
}

static int choose_file(struct setup *s, struct dmig_error **err)
{
	const char *path = s->v.daemon_json;
	if (!path && s->docker)
		path = dmig_dockerd_option(&s->dockerd, "config-file");
	if (!path || !*path)
		path = DMIG_DAEMON_JSON;
	return dmig_daemon_json_open(path, &s->file, err);
}

static int runtime_target(struct setup *s, struct dmig_error **err)
{
	s->target = s->v.runtime_path ? strdup(s->v.runtime_path) : dmig_libexec_path("dmigrate-runc");
	if (!s->target)
		return dmig_error_set(err, ENOMEM, "out of memory");
	if (s->target[0] != '/')
		return dmig_error_set_class(
			err, DMIG_ERR_USAGE, EINVAL, "--runtime-path: %s is not an absolute path", s->target);
	if (access(s->target, X_OK) < 0)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, errno, "%s: %m", s->target);
	return 0;
}

/* A target that waits for its memory must not be started by a plain runc. */
static int refuse_while_moving(struct dmig_error **err)
{
	char **ids = NULL;
	cleanup_free char *moving = NULL;
	int r = dmig_control_list(&ids, err);
	for (size_t i = 0; r == 0 && ids[i] && !moving; i++) {
		cleanup_fd int fd = -1;
		if (dmig_control_connect(ids[i], &fd, NULL) == 0)
			moving = strdup(ids[i]);
	}
	dmig_control_free_list(ids);
	if (moving)
		return dmig_error_set_class(
			err, DMIG_ERR_REFUSED, EBUSY, "migration %s is under way", moving);
	return r;
}

static int undo_target(struct setup *s, struct dmig_error **err)
{
	int r = refuse_while_moving(err);
	if (r < 0)
		return r;
	if (!s->docker)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, ENOTCONN,
			"Docker does not run, so nobody knows which containers have this runtime");
	r = dmig_docker_runtime_users(s->docker, DMIG_RUNTIME_NAME, &s->users, err);
	if (r == 0 && s->users[0] && !(s->target = strdup(PLAIN_RUNTIME)))
		r = dmig_error_set(err, ENOMEM, "out of memory");
	return r;
}

/* dockerd refuses to start when both its command line and its file have runtimes. */
static int refuse_flags(const struct setup *s, struct dmig_error **err)
{
	if (s->docker && s->target && dmig_dockerd_option(&s->dockerd, "add-runtime"))
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EEXIST,
			"dockerd gets runtimes on its command line and would not start with others in %s; "
			"add "
			"--add-runtime %s=%s there",
			s->file.path, DMIG_RUNTIME_NAME, s->target);
	return 0;
}

static bool is_active(const struct dmig_docker *d, const char *target)
{
	const char *now = dmig_docker_runtime_path(d, DMIG_RUNTIME_NAME);
	return now && target ? !strcmp(now, target) : now == target;
}

static int wait_active(const char *target, struct dmig_error **err)
{
	int64_t deadline = dmig_now_ms() + RELOAD_TIMEOUT_MS;
	while (dmig_now_ms() < deadline) {
		struct dmig_docker *d = NULL;
		int r = dmig_docker_open(&d, err);
		if (r < 0)
			return r;
		bool active = is_active(d, target);
		dmig_docker_free(d);
		if (active)
			return 0;
		usleep(RELOAD_POLL_US);
	}
	return dmig_error_set(
		err, ETIMEDOUT, "dockerd did not take the new configuration over; its log says why");
}

static int reload(struct setup *s, struct dmig_error **err)
{
	int r = dmig_dockerd_reload(&s->dockerd, err);
	return r < 0 ? r : wait_active(s->target, err);
}

static int apply(struct setup *s, struct dmig_error **err)
{
	int r = s->text ? dmig_daemon_json_write(&s->file, s->text, err) : 0;
	if (r < 0 || !s->docker || (!s->text && is_active(s->docker, s->target)))
		return r;
	r = reload(s, err);
	if (r < 0 && s->text) {
		/* What a running dockerd refuses it would refuse at its next start, too. */
		cleanup_error struct dmig_error *e = NULL;
		if (dmig_daemon_json_put_back(&s->file, &e) < 0)
			return dmig_error_wrap(
				err, "%s could not be put back (%s)", s->file.path, e->message);
		dmig_dockerd_reload(&s->dockerd, NULL);
		return dmig_error_wrap(err, "%s is as before", s->file.path);
	}
	return r;
}

static void tell(const struct setup *s)
{
	if (!s->text)
		say(s, "%s needs no change", s->file.path);
	else if (s->target)
		say(s, "%s: runtime %s is %s", s->file.path, DMIG_RUNTIME_NAME, s->target);
	else
		say(s, "%s: runtime %s taken away", s->file.path, DMIG_RUNTIME_NAME);
	if (s->text && s->file.old)
		say(s, "what was there: %s", s->file.backup);
	if (!s->docker)
		say(s, "Docker does not run; it reads the file when it starts");
	for (size_t i = 0; s->users && s->users[i]; i++)
		say(s, "%s %s", i ? "                                " : "still needed, as plain runc, for:",
			s->users[i]);
}

static void tell_json(const struct setup *s)
{
	json_t *users = json_array();
	for (size_t i = 0; s->users && s->users[i]; i++)
		json_array_append_new(users, json_string(s->users[i]));
	dmig_command_print_json(json_pack("{s:s,s:s?,s:b,s:b,s:b,s:o}", "daemon_json", s->file.path,
		"runtime_path", s->target, "changed", s->text && !s->v.dry_run, "dry_run", s->v.dry_run,
		"docker_runs", s->docker != NULL, "containers", users));
}

static int setup(struct setup *s, struct dmig_error **err)
{
	int r = find_docker(s, err);
	if (r < 0 || (r = choose_file(s, err)) < 0 ||
		(r = s->v.undo ? undo_target(s, err) : runtime_target(s, err)) < 0 ||
		(r = refuse_flags(s, err)) < 0)
		return r;
	r = dmig_daemon_json_edit(
		s->file.old ? s->file.old : "", DMIG_RUNTIME_NAME, s->target, &s->text, err);
	if (r < 0)
		return dmig_error_wrap(err, "%s", s->file.path);
	if (s->v.dry_run)
		say(s, "%s would become:\n%s", s->file.path,
			s->text       ? s->text
			: s->file.old ? s->file.old
				      : "(no file)");
	else if ((r = apply(s, err)) == 0)
		tell(s);
	if (r == 0 && s->cli->common.json)
		tell_json(s);
	return r;
}

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	struct setup s = {.cli = cli, .dockerd = {.pidfd = -1}};
	char **args;
	int r = dmig_command_begin(cli, &dmig_cmd_setup, argc, argv, &s.v, &args, err);
	if (r == 0)
		r = setup(&s, err);
	dmig_docker_free(s.docker);
	dmig_dockerd_clear(&s.dockerd);
	dmig_daemon_json_clear(&s.file);
	for (size_t i = 0; s.users && s.users[i]; i++)
		free(s.users[i]);
	free(s.users);
	free(s.target);
	free(s.text);
	free(s.v.runtime_path);
	free(s.v.daemon_json);
	return r < 0 ? r : DMIG_EXIT_OK;
}

const struct dmig_cli_command dmig_cmd_setup = {
	.name = "setup",
	.summary = "Register our runtime with Docker on this host",
	.text = "Adds the runtime " DMIG_RUNTIME_NAME
		" to daemon.json and lets dockerd reload it; no container is\n"
		"restarted. Needed once on every host that shall receive containers. With --undo the entry "
		"goes\n"
		"away; while containers have the runtime it points at plain runc instead, and they are "
		"listed.\n",
	.options = options,
	.flags = DMIG_COMMAND_ROOT,
	.run = run,
};
