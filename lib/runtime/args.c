/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/args.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct option_info {
	const char *names[2]; /* long, short */
	size_t field;         /* offset of a const char * in dmig_runc_args, or NO_FIELD */
};
#define NO_FIELD ((size_t)-1)
#define FIELD(name) offsetof(struct dmig_runc_args, name)

/* Options with a value; everything else that is known is a switch. */
static const struct option_info global_values[] = {
	{{"root", NULL}, FIELD(root)},
	{{"log", NULL}, FIELD(log)},
	{{"log-format", NULL}, FIELD(log_format)},
	{{"criu", NULL}, NO_FIELD},
	{{"rootless", NULL}, NO_FIELD},
};
static const char *const global_switches[] = {"debug", "systemd-cgroup", "help", "h", "version", "v"};

static const char *const commands[] = {"checkpoint", "create", "delete", "events", "exec", "features", "help",
	"init", "kill", "list", "pause", "ps", "restore", "resume", "run", "spec", "start", "state",
	"update"};

static const struct option_info command_values[] = {
	{{"bundle", "b"}, FIELD(bundle)},
	{{"pid-file", NULL}, FIELD(pid_file)},
	{{"console-socket", NULL}, FIELD(console_socket)},
	{{"format", NULL}, FIELD(format)},
	{{"pidfd-socket", NULL}, NO_FIELD},
	{{"preserve-fds", NULL}, NO_FIELD},
	{{"image-path", NULL}, NO_FIELD},
	{{"work-path", NULL}, NO_FIELD},
	{{"parent-path", NULL}, NO_FIELD},
	{{"page-server", NULL}, NO_FIELD},
	{{"status-fd", NULL}, NO_FIELD},
	{{"manage-cgroups-mode", NULL}, NO_FIELD},
	{{"empty-ns", NULL}, NO_FIELD},
	{{"lsm-profile", NULL}, NO_FIELD},
	{{"lsm-mount-context", NULL}, NO_FIELD},
	{{"cwd", NULL}, NO_FIELD},
	{{"env", "e"}, NO_FIELD},
	{{"user", "u"}, NO_FIELD},
	{{"additional-gids", "g"}, NO_FIELD},
	{{"process", "p"}, NO_FIELD},
	{{"process-label", NULL}, NO_FIELD},
	{{"apparmor", NULL}, NO_FIELD},
	{{"cap", "c"}, NO_FIELD},
	{{"cgroup", NULL}, NO_FIELD},
	{{"interval", NULL}, NO_FIELD},
	{{"resources", "r"}, NO_FIELD},
};
static const char *const command_switches[] = {"no-pivot", "no-new-keyring", "detach", "d", "keep",
	"no-subreaper", "tcp-established", "ext-unix-sk", "shell-job", "file-locks", "auto-dedup",
	"lazy-pages", "leave-running", "pre-dump", "tty", "t", "no-new-privs", "ignore-paused", "stats",
	"all", "a", "force", "f", "quiet", "q", "help", "h"};

enum kind { SWITCH, VALUE, UNKNOWN };

struct parser {
	struct dmig_runc_args *out;
	dmig_is_target_fn *is_target;
	void *opaque;
	const struct option_info *values;
	size_t n_values;
	const char *const *switches;
	size_t n_switches;
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool in_list(const char *word, size_t len, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == len && !memcmp(list[i], word, len))
			return true;
	return false;
}

static enum kind option_kind(const struct parser *p, const char *name, size_t len, size_t *ret_field)
{
	*ret_field = NO_FIELD;
	for (size_t i = 0; i < p->n_values; i++) {
		if (!in_list(name, len, p->values[i].names, p->values[i].names[1] ? 2 : 1))
			continue;
		*ret_field = p->values[i].field;
		return VALUE;
	}
	return in_list(name, len, p->switches, p->n_switches) ? SWITCH : UNKNOWN;
}

static void note_switch(struct dmig_runc_args *out, const char *name, size_t len, const char *value)
{
	bool on = !value || (strcmp(value, "false") && strcmp(value, "0"));
	if (in_list(name, len, (const char *const[]){"systemd-cgroup"}, 1))
		out->systemd_cgroup = on;
	if (in_list(name, len, (const char *const[]){"force", "f"}, 2))
		out->force = on;
}

static void note_value(struct dmig_runc_args *out, size_t field, const char *value)
{
	if (field != NO_FIELD && value)
		memcpy((char *)out + field, &value, sizeof(value));
}

/*
 * argv[i] begins with '-'. Returns how many words it takes (1 or 2), 0 for the end of options ("--");
 * *ret_unknown: the word behind it may be its value.
 */
static int take_option(struct parser *p, char *const *argv, bool *ret_unknown)
{
	const char *name = argv[0] + (argv[0][1] == '-' ? 2 : 1);
	size_t len = strcspn(name, "="), field;
	const char *value = name[len] ? name + len + 1 : NULL;

	*ret_unknown = false;
	if (len == 0)
		return 0;
	switch (option_kind(p, name, len, &field)) {
	case SWITCH:
		note_switch(p->out, name, len, value);
		return 1;
	case VALUE:
		note_value(p->out, field, value ? value : argv[1]);
		return value || !argv[1] ? 1 : 2;
	default:
		*ret_unknown = !value;
		return 1;
	}
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

static int take_globals(struct parser *p, int argc, char *const *argv, int i)
{
	while (i < argc) {
		bool unknown = false;
		if (is_option(argv[i])) {
			int n = take_option(p, argv + i, &unknown);
			i += n ? n : 1;
			if (!unknown || i >= argc || is_option(argv[i]))
				continue;
			if (in_list(argv[i], strlen(argv[i]), commands, COUNT(commands)))
				continue;
			i++; /* the value of an option that we do not know */
			continue;
		}
		p->out->command = argv[i];
		return i + 1;
	}
	return i;
}

/* Up to the ID. After an unknown option a word counts as the ID only if it names a target, or nothing better
 * follows. */
static int take_id(struct parser *p, int argc, char *const *argv, int i)
{
	bool unknown = false, ended = false;
	int doubtful = 0;
	while (i < argc) {
		if (!ended && is_option(argv[i])) {
			int n = take_option(p, argv + i, &unknown);
			ended = n == 0;
			i += n ? n : 1;
			continue;
		}
		if (!unknown || p->is_target(argv[i], p->opaque)) {
			p->out->id = argv[i];
			return i + 1;
		}
		doubtful = doubtful ? doubtful : i;
		unknown = false;
		i++;
	}
	if (doubtful)
		p->out->id = argv[doubtful];
	return i;
}

/* runc lets switches stand behind the ID too (delete ID --force); the command of exec stands there as well.
 */
static void take_rest(struct parser *p, int argc, char *const *argv, int i)
{
	if (!p->out->command || !strcmp(p->out->command, "exec"))
		return;
	while (i < argc) {
		bool unknown;
		if (is_option(argv[i])) {
			int n = take_option(p, argv + i, &unknown);
			i += n ? n : 1;
			continue;
		}
		if (!p->out->signal && !strcmp(p->out->command, "kill"))
			p->out->signal = argv[i];
		i++;
	}
}

void dmig_runc_args_parse(
	int argc, char *const *argv, dmig_is_target_fn *is_target, void *opaque, struct dmig_runc_args *ret)
{
	struct parser p = {.out = ret,
		.is_target = is_target,
		.opaque = opaque,
		.values = global_values,
		.n_values = COUNT(global_values),
		.switches = global_switches,
		.n_switches = COUNT(global_switches)};

	*ret = (struct dmig_runc_args){0};
	int i = take_globals(&p, argc, argv, 1);
	p.values = command_values;
	p.n_values = COUNT(command_values);
	p.switches = command_switches;
	p.n_switches = COUNT(command_switches);
	if (!ret->command)
		return;
	i = take_id(&p, argc, argv, i);
	take_rest(&p, argc, argv, i);
}

int dmig_signal_parse(const char *text)
{
	if (!text)
		return SIGTERM;
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	if (!errno && end != text && !*end)
		return n >= 0 && n < NSIG ? (int)n : -EINVAL;
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (int s = 1; s < NSIG; s++) {
		const char *name = sigabbrev_np(s);
		if (name && !strcasecmp(name, text))
			return s;
	}
	return -EINVAL;
}
