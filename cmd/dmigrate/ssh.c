/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ssh.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/io.h"
#include "util/spawn.h"
#include "words.h"

/* ssh -G only reads files, but a host name may be looked up (CanonicalizeHostname). */
#define CONFIG_TIMEOUT_MS 10000

/* Parts of an ssh:// address; pointers into a copy that is cut at the separators. */
struct address {
	char *user, *host, *port; /* user and port may be NULL */
};

/* A leading dash would be an option of ssh. Everything else outside these sets has no place in names of users
 * and hosts. */
static bool is_name(const char *s, const char *extra)
{
	if (!s || !*s || *s == '-')
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr(extra, *s))
			return false;
	return true;
}

static int split_host(char *rest, struct address *a)
{
	char *colon = strchr(rest, ':');
	a->host = rest;
	if (*rest == '[') {
		char *end = strchr(rest, ']');
		if (!end || (end[1] && end[1] != ':'))
			return -EINVAL;
		a->host = rest + 1;
		*end = '\0';
		colon = end[1] ? end + 1 : NULL;
	}
	if (colon) {
		*colon = '\0';
		a->port = colon + 1;
	}
	return 0;
}

static int split(char *text, struct address *a, struct dmig_error **err)
{
	char *rest = text + strlen("ssh://");
	char *at = strrchr(rest, '@');
	size_t len = strlen(rest);
	int port;

	if (len && rest[len - 1] == '/')
		rest[len - 1] = '\0';
	if (at) {
		*at = '\0';
		a->user = rest;
		rest = at + 1;
	}
	if (split_host(rest, a) < 0 || !is_name(a->host, "._-:%") ||
		(a->user && !is_name(a->user, "._-\\")) ||
		(a->port && dmig_cli_number(a->port, 1, 65535, &port, NULL) < 0))
		return dmig_error_set_class(
			err, DMIG_ERR_USAGE, EINVAL, "not an address like ssh://[user@]host[:port]");
	return 0;
}

static int build_words(const struct address *a, char ***ret, struct dmig_error **err)
{
	const char *command = getenv("DMIGRATE_SSH");
	struct dmig_words w = {0};
	dmig_words_split(&w, command && *command ? command : "ssh");
	if (a->port)
		dmig_words_add(&w, "-p", a->port, NULL);
	if (a->user)
		dmig_words_add(&w, "-l", a->user, NULL);
	dmig_words_add(&w, "--", a->host, NULL);
	*ret = dmig_words_take(&w);
	return *ret ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

/* Value of "name value" in the output of ssh -G. */
static char *config_value(const char *config, const char *name)
{
	size_t n = strlen(name);
	for (const char *line = config; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!strncmp(line, name, n) && line[n] == ' ')
			return strndup(line + n + 1, strcspn(line + n + 1, "\n"));
	return NULL;
}

/* The shell there reads it, so nothing that a shell would take apart. */
static int choose_program(struct dmig_ssh *s, struct dmig_error **err)
{
	const char *path = getenv("DMIGRATE_REMOTE");
	s->program = path && *path ? path : "dmigrated";
	if (!is_name(s->program, "/._-+"))
		return dmig_error_set_class(
			err, DMIG_ERR_USAGE, EINVAL, "DMIGRATE_REMOTE is not a plain path");
	return 0;
}

static int ask_config(struct dmig_ssh *s, struct dmig_error **err)
{
	cleanup_free char *config = NULL;
	char **argv = dmig_words_insert(s->words, DMIG_SSH_TAIL, "-G", NULL);
	int r = argv ? dmig_run((const char *const *)argv, NULL, CONFIG_TIMEOUT_MS, &config, err)
		     : dmig_error_set(err, ENOMEM, "out of memory");
	dmig_words_free(argv);
	if (r < 0)
		return r;
	cleanup_free char *user = config_value(config, "user");
	s->root = user && !strcmp(user, "root");
	s->hostname = config_value(config, "hostname");
	if (!s->hostname)
		return dmig_error_set(err, EPROTO, "%s -G does not tell a host name", s->words[0]);
	return 0;
}

int dmig_ssh_open(const char *text, struct dmig_ssh *ret, struct dmig_error **err)
{
	struct address a = {0};
	cleanup_free char *copy = strdup(text);
	memset(ret, 0, sizeof(*ret));
	ret->target = strdup(text);
	if (!copy || !ret->target)
		return dmig_error_set(err, ENOMEM, "out of memory");
	int r = choose_program(ret, err);
	if (r == 0)
		r = split(copy, &a, err);
	if (r == 0)
		r = build_words(&a, &ret->words, err);
	if (r == 0)
		r = ask_config(ret, err);
	return r < 0 ? dmig_error_wrap(err, "%s", text) : 0;
}

void dmig_ssh_clear(struct dmig_ssh *s)
{
	dmig_words_free(s->words);
	free(s->target);
	free(s->hostname);
	memset(s, 0, sizeof(*s));
}

char **dmig_ssh_tunnel(const struct dmig_ssh *s, uint16_t port)
{
	cleanup_free char *target = dmig_asprintf("127.0.0.1:%u", port);
	return target ? dmig_words_insert(s->words, DMIG_SSH_TAIL, "-o", "BatchMode=yes", "-W", target, NULL)
		      : NULL;
}
