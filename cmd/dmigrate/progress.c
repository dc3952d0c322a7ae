/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "progress.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "format.h"
#include "util/cleanup.h"

#define DEFAULT_COLUMNS 80
#define MAX_LINE 256
#define CLEAR_LINE "\r\033[K"

void dmig_progress_init(struct dmig_progress *p, FILE *out)
{
	struct winsize ws = {0};
	*p = (struct dmig_progress){.out = out, .columns = DEFAULT_COLUMNS};
	if (!out || !isatty(fileno(out)))
		return;
	p->live = true;
	if (ioctl(fileno(out), TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0)
		p->columns = ws.ws_col;
}

static void clear(struct dmig_progress *p)
{
	if (p->shown)
		fputs(CLEAR_LINE, p->out);
	p->shown = false;
}

void dmig_progress_say(struct dmig_progress *p, const char *fmt, ...)
{
	va_list ap;
	if (!p->out)
		return;
	clear(p);
	va_start(ap, fmt);
	vfprintf(p->out, fmt, ap);
	va_end(ap);
	fputc('\n', p->out);
	fflush(p->out);
}

static void finish_phase(struct dmig_progress *p, double now_ms)
{
	char took[DMIG_FORMAT_MAX];
	double ms = now_ms - p->phase_start_ms;
	if (p->phase[0] && strcmp(p->phase, "done"))
		dmig_progress_say(p, "%-10s %s", p->phase, dmig_format_time(ms > 0 ? ms : 0, took));
}

/* "done of total  rate  time left", or the latest message while nothing is counted. */
static void describe(const json_t *status, char *buf, size_t size)
{
	const json_t *bytes = json_object_get(status, "bytes");
	double done = dmig_json_number(bytes, "done", 0), total = dmig_json_number(bytes, "total", 0);
	double rate = dmig_json_number(bytes, "rate", 0), eta = dmig_json_number(status, "eta_ms", -1);
	char a[DMIG_FORMAT_MAX], b[DMIG_FORMAT_MAX], c[DMIG_FORMAT_MAX];
	cleanup_free char *message = dmig_json_text(status, "message");

	if (total <= 0) {
		snprintf(buf, size, "%s", message ? message : "");
		return;
	}
	if (done > total)
		done = total; /* an estimate that was too low */
	int n = snprintf(buf, size, "%3.0f %%  %s of %s", 100 * done / total, dmig_format_bytes(done, a),
		dmig_format_bytes(total, b));
	if (rate > 0)
		n += snprintf(buf + n, size - (size_t)n, "  %s/s", dmig_format_bytes(rate, c));
	if (eta >= 0)
		snprintf(buf + n, size - (size_t)n, "  %s left", dmig_format_time(eta, a));
}

static void show_live(struct dmig_progress *p, const json_t *status)
{
	char text[MAX_LINE], line[MAX_LINE + 64];
	int width = p->columns - 1;
	describe(status, text, sizeof(text));
	snprintf(line, sizeof(line), "%-10s %s", p->phase, text);
	/* A line that wraps could not be taken back. */
	fprintf(p->out, CLEAR_LINE "%.*s", width > 0 ? width : 0, line);
	fflush(p->out);
	p->shown = true;
}

static void tell_unknown(struct dmig_progress *p, const json_t *status)
{
	const char *state = json_string_value(json_object_get(status, "state"));
	cleanup_free char *id = dmig_json_text(status, "id");
	bool unknown = state && !strcmp(state, "unknown");
	if (unknown && !p->told_unknown)
		dmig_progress_say(p,
			"The destination does not answer: nobody knows which side runs. The source stays "
			"frozen and keeps "
			"asking.\nIf you know better: dmigrate resolve %s --source or --destination",
			id ? id : "ID");
	p->told_unknown = unknown;
}

void dmig_progress_update(struct dmig_progress *p, const json_t *status)
{
	cleanup_free char *phase = dmig_json_text(status, "phase");
	double now = dmig_json_number(status, "elapsed_ms", 0);
	if (!p->out || !phase)
		return;
	if (strcmp(phase, p->phase)) {
		finish_phase(p, now);
		snprintf(p->phase, sizeof(p->phase), "%s", phase);
		p->phase_start_ms = now;
	}
	tell_unknown(p, status);
	if (p->live)
		show_live(p, status);
}

void dmig_progress_end(struct dmig_progress *p, bool ok, double total_ms)
{
	if (!p->out)
		return;
	if (ok)
		finish_phase(p, total_ms);
	clear(p);
	fflush(p->out);
}
