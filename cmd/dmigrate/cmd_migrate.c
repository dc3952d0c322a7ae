/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "migrate.h"
#include "show.h"
#include "util/cleanup.h"
#include "watch.h"

/* More choices than a container has mounts are a mistake; the request has the same limit. */
#define MAX_BINDS 256

int dmig_migrate_add_bind(void *values, const char *text, struct dmig_error **err)
{
	struct dmig_options *o = &((struct dmig_migrate_values *)values)->options;
	const char *eq = strrchr(text, '=');
	int mode;

	if (!eq || text[0] != '/')
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
			"\"%s\" is not PATH=refuse|share|copy with an "
			"absolute path",
			text);
	int r = dmig_cli_choice("refuse|share|copy", eq + 1, &mode, err);
	if (r < 0)
		return r;
	if (o->n_binds == MAX_BINDS)
		return dmig_error_set_class(
			err, DMIG_ERR_USAGE, E2BIG, "given more than %d times", MAX_BINDS);
	struct dmig_bind_choice *bigger = realloc(o->binds, (o->n_binds + 1) * sizeof(*bigger));
	char *path = strndup(text, (size_t)(eq - text));
	if (bigger)
		o->binds = bigger;
	if (!bigger || !path) {
		free(path);
		return dmig_error_set(err, ENOMEM, "out of memory");
	}
	o->binds[o->n_binds++] = (struct dmig_bind_choice){path, (enum dmig_bind_mode)mode};
	return 0;
}

/* It goes on without us; say how to see it again. */
static int leave(const struct dmig_cli *cli, const struct dmig_watch *w, enum dmig_watch_end end)
{
	const char *state = json_string_value(json_object_get(w->last, "state"));
	const char *what =
		end == DMIG_WATCH_IMPATIENT ? "is still being cancelled" : "goes on in the background";
	if (!cli->common.quiet)
		fprintf(stderr, "Migration %s %s; to see it: dmigrate status %s --watch\n", w->id, what,
			w->id);
	if (end == DMIG_WATCH_IMPATIENT)
		return DMIG_EXIT_CANCELLED;
	return state && !strcmp(state, "unknown") ? DMIG_EXIT_UNKNOWN : DMIG_EXIT_INCOMPLETE;
}

static int watch(const struct dmig_cli *cli, const char *id, int signals, struct dmig_error **err)
{
	struct dmig_watch w = {.id = id, .owner = true};
	json_t *report = NULL;
	if (!cli->common.quiet && !cli->common.json)
		w.out = stderr;
	int r = dmig_watch_run(&w, signals, &report, err);
	if (r == DMIG_WATCH_REPORT)
		r = dmig_show_end(report, cli->common.json, cli->common.quiet);
	else if (r > 0)
		r = leave(cli, &w, (enum dmig_watch_end)r);
	json_decref(report);
	json_decref(w.last);
	return r;
}

static int started(const struct dmig_cli *cli, const char *id)
{
	if (cli->common.json)
		dmig_command_print_json(json_pack("{s:s}", "id", id));
	else if (!cli->common.quiet)
		puts(id);
	return DMIG_EXIT_OK;
}

static int migrate(const struct dmig_cli *cli, struct dmig_migrate_values *v, struct dmig_error **err)
{
	/* While ssh asks for a password, Ctrl-C ends us and nothing has happened; behind it, it is a request.
	 */
	int r = *v->options.destination ? dmig_migrate_reach(v, err) : 0;
	cleanup_fd int signals = r < 0 ? r : dmig_watch_signals(err);
	if (signals < 0)
		return signals;
	r = dmig_migrate_launch(&v->options, err);
	if (r < 0)
		return r;
	return v->detach ? started(cli, v->options.id) : watch(cli, v->options.id, signals, err);
}

static int take_arguments(struct dmig_options *o, char **args, struct dmig_error **err)
{
	const char *dest = args[1] ? args[1] : "";
	if (!*args[0] || (args[1] && !*dest))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "an argument is empty");
	o->container = strdup(args[0]);
	o->destination = strdup(dest);
	if (!*dest) { /* a check of this side alone dials nobody */
		o->host = strdup("");
		o->key = strdup("");
	}
	if (!o->container || !o->destination || (!*dest && (!o->host || !o->key)))
		return dmig_error_set(err, ENOMEM, "out of memory");
	return 0;
}

int dmig_migrate_run(struct dmig_cli *cli, const struct dmig_cli_command *cmd, bool check, int argc,
	char **argv, struct dmig_error **err)
{
	struct dmig_migrate_values v = {0};
	char **args;
	int r = dmig_options_init(&v.options, err);
	if (r == 0)
		r = dmig_command_begin(cli, cmd, argc, argv, &v, &args, err);
	if (r == 0)
		r = take_arguments(&v.options, args, err);
	v.options.dry_run |= check;
	v.options.verbose = cli->common.verbose;
	if (r == 0)
		r = migrate(cli, &v, err);
	else if (r > 0)
		r = DMIG_EXIT_OK; /* --help */
	free(v.key_file);
	dmig_options_clear(&v.options);
	return r;
}

static int run(struct dmig_cli *cli, int argc, char **argv, struct dmig_error **err)
{
	return dmig_migrate_run(cli, &dmig_cmd_migrate, false, argc, argv, err);
}

static const struct dmig_cli_option options[] = {
	DMIG_MIGRATE_OPTIONS,
	{"dry-run", NULL, "check, change nothing", DMIG_CLI_FLAG, DMIG_MIGRATE_PLACE(options.dry_run)},
	{"detach", NULL, "print the id and do not wait for the end", DMIG_CLI_FLAG,
		DMIG_MIGRATE_PLACE(detach)},
	{0},
};

const struct dmig_cli_command dmig_cmd_migrate = {
	.name = "migrate",
	.summary = "Move a running container to another host",
	.args = "CONTAINER DEST",
	.text = "DEST is ssh://[user@]host[:port] or tls://host:port. With ssh:// dmigrated is started "
		"there;\n"
		"with tls:// one must be listening there with the same key.\n"
		"Ctrl-C cancels before the commit; after it the rest moves on in the background.\n",
	.options = options,
	.flags = DMIG_COMMAND_ROOT | DMIG_COMMAND_RECOVER,
	.run = run,
};
