/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "format.h"

#include <stdio.h>
#include <string.h>

#include "cli/table.h"

char *dmig_format_bytes(double bytes, char *buf)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB"};
	size_t i = 0;
	if (bytes < 1000) {
		snprintf(buf, DMIG_FORMAT_MAX, "%.0f B", bytes);
		return buf;
	}
	/* 999.95 would be printed as 1000.0 of the smaller unit. */
	for (bytes /= 1000; bytes >= 999.95 && i < 3; i++)
		bytes /= 1000;
	snprintf(buf, DMIG_FORMAT_MAX, "%.1f %s", bytes, units[i]);
	return buf;
}

char *dmig_format_time(double ms, char *buf)
{
	if (ms < 9.95)
		snprintf(buf, DMIG_FORMAT_MAX, "%.1f ms", ms);
	else if (ms < 999.5)
		snprintf(buf, DMIG_FORMAT_MAX, "%.0f ms", ms);
	else if (ms < 59950)
		snprintf(buf, DMIG_FORMAT_MAX, "%.1f s", ms / 1000);
	else
		snprintf(buf, DMIG_FORMAT_MAX, "%.0f min %.0f s", (double)((long)(ms / 1000 + 0.5) / 60),
			(double)((long)(ms / 1000 + 0.5) % 60));
	return buf;
}

double dmig_json_number(const json_t *obj, const char *name, double otherwise)
{
	const json_t *v = json_object_get(obj, name);
	return json_is_number(v) ? json_number_value(v) : otherwise;
}

char *dmig_json_text(const json_t *obj, const char *name)
{
	const char *s = json_string_value(json_object_get(obj, name));
	char *copy = strdup(s ? s : "");
	return copy ? dmig_cli_clean(copy) : NULL;
}
