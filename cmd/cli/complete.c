/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/complete.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* What can stand in a place, worked out once and written in each shell's words. */
struct place {
	enum { NOTHING, WORDS, FILES, LISTER } kind;
	const char *text; /* words joined by '|', or the lister's command */
	int len;
};

static struct place place_of(const struct dmig_cli_program *p, const char *word, size_t len)
{
	if (*word == '[') {
		word++;
		len -= 2;
	}
	if (memchr(word, '=', len))
		return (struct place){FILES, NULL, 0};
	if (islower((unsigned char)*word))
		return (struct place){WORDS, word, (int)len};
	if ((len == 4 && !strncmp(word, "FILE", len)) || (len == 4 && !strncmp(word, "PATH", len)))
		return (struct place){FILES, NULL, 0};
	for (const struct dmig_cli_lister *l = p->listers; l && l->word; l++)
		if (strlen(l->word) == len && !strncmp(l->word, word, len))
			return (struct place){LISTER, l->command, (int)strlen(l->command)};
	return (struct place){NOTHING, NULL, 0};
}

static void put_words(FILE *out, const struct place *p)
{
	for (int i = 0; i < p->len; i++)
		fputc(p->text[i] == '|' ? ' ' : p->text[i], out);
}

/* Calls fn for the command's own options, then for the common ones. */
static void each_option(
	const struct dmig_cli_command *cmd, void (*fn)(const struct dmig_cli_option *, void *), void *opaque)
{
	for (const struct dmig_cli_option *o = cmd->options; o && o->name; o++)
		fn(o, opaque);
	for (const struct dmig_cli_option *o = dmig_cli_common_options; o->name; o++)
		fn(o, opaque);
}

struct context {
	FILE *out;
	const struct dmig_cli_program *program;
	const struct dmig_cli_command *cmd;
};

/* ------------------------------------------------------------------ bash */

static void bash_place(FILE *out, const struct place *p)
{
	if (p->kind == WORDS) {
		fputs("compgen -W '", out);
		put_words(out, p);
		fputs("' -- \"$cur\"", out);
	} else if (p->kind == FILES) {
		fputs("compgen -f -- \"$cur\"", out);
	} else if (p->kind == LISTER) {
		fprintf(out, "compgen -W \"$(%s)\" -- \"$cur\"", p->text);
	} else {
		fputs("true", out);
	}
}

static void bash_value(const struct dmig_cli_option *o, void *opaque)
{
	struct context *c = opaque;
	if (!o->arg)
		return;
	struct place p = place_of(c->program, o->arg, strlen(o->arg));
	fprintf(c->out, "\t\t--%s) mapfile -t COMPREPLY < <(", o->name);
	bash_place(c->out, &p);
	fputs("); return ;;\n", c->out);
}

static void bash_name(const struct dmig_cli_option *o, void *opaque)
{
	struct context *c = opaque;
	fprintf(c->out, " --%s", o->name);
}

static void bash_command(struct context *c)
{
	fprintf(c->out, "\t%s)\n\t\tcase $prev in\n", c->cmd->name);
	each_option(c->cmd, bash_value, c);
	fputs("\t\tesac\n\t\toptions='", c->out);
	each_option(c->cmd, bash_name, c);
	fputs("'\n\t\t[[ $cur == -* ]] || mapfile -t COMPREPLY < <(\n", c->out);
	for (const char *w = c->cmd->args ? c->cmd->args : ""; *w;) {
		size_t n = strcspn(w, " ");
		struct place p = place_of(c->program, w, n);
		if (p.kind != NOTHING) {
			fputs("\t\t\t", c->out);
			bash_place(c->out, &p);
			fputc('\n', c->out);
		}
		w += n + strspn(w + n, " ");
	}
	fputs("\t\t) 2>/dev/null\n\t\t;;\n", c->out);
}

static void bash(struct context *c)
{
	const char *name = c->program->name;
	fprintf(c->out,
		"# bash completion for %s; made from its option tables\n"
		"_%s() {\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options=\n"
		"\tCOMPREPLY=()\n"
		"\tif ((COMP_CWORD == 1)); then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W '",
		name, name);
	for (size_t i = 0; c->program->commands[i]; i++)
		fprintf(c->out, " %s", c->program->commands[i]->name);
	fputs("' -- \"$cur\")\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n", c->out);
	for (size_t i = 0; (c->cmd = c->program->commands[i]); i++)
		bash_command(c);
	fprintf(c->out,
		"\t*) return ;;\n\tesac\n"
		"\t[[ $cur != -* ]] || mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
		"}\n"
		"complete -o filenames -F _%s %s\n",
		name, name);
}

/* ------------------------------------------------------------------ zsh */

/* Inside '...' of _arguments: brackets and colons have a meaning, quotes would end the word. */
static void zsh_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'') {
			fputs("'\\''", out);
			continue;
		}
		if (strchr("[]:\\", *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void zsh_action(FILE *out, const struct place *p)
{
	if (p->kind == WORDS) {
		fputc('(', out);
		put_words(out, p);
		fputc(')', out);
	} else if (p->kind == FILES) {
		fputs("_files", out);
	} else if (p->kind == LISTER) {
		fprintf(out, "{ compadd -- ${(f)\"$(%s)\"} }", p->text);
	}
}

static void zsh_option(const struct dmig_cli_option *o, void *opaque)
{
	struct context *c = opaque;
	fprintf(c->out, " \\\n\t\t\t'%s--%s%s[", o->kind == DMIG_CLI_CALL ? "*" : "", o->name,
		o->arg ? "=" : "");
	zsh_text(c->out, o->help);
	fputc(']', c->out);
	if (o->arg) {
		struct place p = place_of(c->program, o->arg, strlen(o->arg));
		fputc(':', c->out);
		zsh_text(c->out, o->arg);
		fputc(':', c->out);
		zsh_action(c->out, &p);
	}
	fputc('\'', c->out);
}

static void zsh_command(struct context *c)
{
	fprintf(c->out, "\t%s)\n\t\t_arguments", c->cmd->name);
	each_option(c->cmd, zsh_option, c);
	for (const char *w = c->cmd->args ? c->cmd->args : ""; *w;) {
		size_t n = strcspn(w, " ");
		struct place p = place_of(c->program, w, n);
		fprintf(c->out, " \\\n\t\t\t':%s%.*s:", *w == '[' ? ":" : "", (int)(*w == '[' ? n - 2 : n),
			*w == '[' ? w + 1 : w);
		zsh_action(c->out, &p);
		fputc('\'', c->out);
		w += n + strspn(w + n, " ");
	}
	fputs("\n\t\t;;\n", c->out);
}

static void zsh(struct context *c)
{
	const char *name = c->program->name;
	fprintf(c->out, "#compdef %s\n# made from the option tables of %s\n\nlocal -a commands=(\n", name,
		name);
	for (size_t i = 0; (c->cmd = c->program->commands[i]); i++) {
		fprintf(c->out, "\t'%s:", c->cmd->name);
		zsh_text(c->out, c->cmd->summary);
		fputs("'\n", c->out);
	}
	fputs(")\nif ((CURRENT == 2)); then\n\t_describe command commands\n\treturn\nfi\n"
	      "shift words\n((CURRENT--))\ncase $words[1] in\n",
		c->out);
	for (size_t i = 0; (c->cmd = c->program->commands[i]); i++)
		zsh_command(c);
	fputs("esac\n", c->out);
}

/* ------------------------------------------------------------------ fish */

static void fish_place(FILE *out, const struct place *p)
{
	if (p->kind == WORDS) {
		fputs(" -a '", out);
		put_words(out, p);
		fputc('\'', out);
	} else if (p->kind == LISTER) {
		fprintf(out, " -a '(sh -c \"%s\")'", p->text);
	} else if (p->kind == FILES) {
		fputs(" -F", out);
	}
}

static void fish_text(FILE *out, const char *text)
{
	fputs(" -d '", out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputs("'\n", out);
}

static void fish_prefix(const struct context *c)
{
	fprintf(c->out, "complete -c %s -n '__fish_seen_subcommand_from %s'", c->program->name, c->cmd->name);
}

static void fish_option(const struct dmig_cli_option *o, void *opaque)
{
	struct context *c = opaque;
	fish_prefix(c);
	fprintf(c->out, " -l %s", o->name);
	if (o->arg) {
		struct place p = place_of(c->program, o->arg, strlen(o->arg));
		fputs(p.kind == FILES ? " -r" : " -x", c->out);
		fish_place(c->out, &p);
	}
	fish_text(c->out, o->help);
}

static void fish_command(struct context *c)
{
	fprintf(c->out, "complete -c %s -n __fish_use_subcommand -a %s", c->program->name, c->cmd->name);
	fish_text(c->out, c->cmd->summary);
	each_option(c->cmd, fish_option, c);
	for (const char *w = c->cmd->args ? c->cmd->args : ""; *w;) {
		size_t n = strcspn(w, " ");
		struct place p = place_of(c->program, w, n);
		if (p.kind != NOTHING) {
			fish_prefix(c);
			fish_place(c->out, &p);
			fputc('\n', c->out);
		}
		w += n + strspn(w + n, " ");
	}
}

static void fish(struct context *c)
{
	fprintf(c->out, "# fish completion for %s; made from its option tables\ncomplete -c %s -f\n",
		c->program->name, c->program->name);
	for (size_t i = 0; (c->cmd = c->program->commands[i]); i++)
		fish_command(c);
}

int dmig_cli_complete(
	FILE *out, const char *shell, const struct dmig_cli_program *program, struct dmig_error **err)
{
	static const struct {
		const char *name;
		void (*write)(struct context *);
	} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
	struct context c = {out, program, NULL};

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, shell))
			continue;
		shells[i].write(&c);
		return 0;
	}
	return dmig_error_set_class(
		err, DMIG_ERR_USAGE, EINVAL, "no completion for \"%s\" (bash, zsh or fish)", shell);
}
