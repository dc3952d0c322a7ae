/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"

#define bad(err, ...) dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, __VA_ARGS__)

/* Digits only: strtol alone would take blanks, signs and what follows the number. */
static int read_digits(const char *text, long *ret, const char **rest)
{
	char *end;
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtol(text, &end, 10);
	*rest = end;
	return errno || *ret > INT_MAX ? -ERANGE : 0;
}

int dmig_cli_number(const char *text, int min, int max, int *ret, struct dmig_error **err)
{
	const char *rest = "";
	long n = 0;
	if (read_digits(text, &n, &rest) < 0 || *rest || n < min || n > max)
		return bad(err, "\"%s\" is not a number from %d to %d", text, min, max);
	*ret = (int)n;
	return 0;
}

int dmig_cli_duration(const char *text, int *ret_ms, struct dmig_error **err)
{
	static const struct {
		const char *unit;
		int ms;
	} units[] = {
		{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"min", 60 * 1000}, {"h", 3600 * 1000}};
	const char *unit = "";
	long n = 0;

	if (read_digits(text, &n, &unit) < 0)
		return bad(err, "\"%s\" is not a duration (such as 500ms, 30s, 5m or 1h)", text);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].unit))
			continue;
		if (n > INT_MAX / units[i].ms)
			return bad(err, "%s is too long", text);
		*ret_ms = (int)n * units[i].ms;
		return 0;
	}
	return bad(err, "\"%s\" is not a duration: the unit is ms, s, m or h", text);
}

int dmig_cli_ports(const char *text, struct dmig_cli_ports *ret, struct dmig_error **err)
{
	const char *rest = "";
	long low = 0, high = 0;
	int r = read_digits(text, &low, &rest);
	high = low;
	if (r == 0 && *rest == '-')
		r = read_digits(rest + 1, &high, &rest);
	if (r < 0 || *rest || low < 1 || high > 65535)
		return bad(err, "\"%s\" is not a port or a range of ports (LOW-HIGH, 1 to 65535)", text);
	if (high < low)
		return bad(err, "%s: the range is empty", text);
	*ret = (struct dmig_cli_ports){(int)low, (int)high};
	return 0;
}

int dmig_cli_choice(const char *words, const char *text, int *ret, struct dmig_error **err)
{
	size_t len = strlen(text);
	const char *w = words;
	for (int i = 0; *w; i++) {
		size_t n = strcspn(w, "|");
		if (n == len && !strncmp(w, text, n)) {
			*ret = i;
			return 0;
		}
		w += n + (w[n] == '|');
	}
	return bad(err, "\"%s\" is not one of %s", text, words);
}

char *dmig_cli_clean(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
	return text;
}
