/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dmigrated.h"

static int bad(struct dmig_error **err, const char *what, const char *text)
{
	return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "%s: \"%s\" is not understood", what, text);
}

static int number(const char *text, long max, char **end, long *ret)
{
	errno = 0;
	*ret = strtol(text, end, 10);
	return errno || *end == text || *ret < 0 || *ret > max ? -EINVAL : 0;
}

int daemon_parse_ports(const char *text, struct daemon_options *o, struct dmig_error **err)
{
	char *end;
	long low, high;
	if (number(text, UINT16_MAX, &end, &low) < 0)
		return bad(err, "--data-port", text);
	high = low;
	if (*end == '-' && number(end + 1, UINT16_MAX, &end, &high) < 0)
		return bad(err, "--data-port", text);
	if (*end || low > high || low == 0)
		return bad(err, "--data-port", text);
	o->port_low = (uint16_t)low;
	o->port_high = (uint16_t)high;
	return 0;
}

int daemon_parse_fd(const char *text, int *ret, struct dmig_error **err)
{
	char *end;
	long fd;
	if (number(text, INT_MAX, &end, &fd) < 0 || *end)
		return bad(err, "descriptor", text);
	*ret = (int)fd;
	return 0;
}

static int append(char ***list, const char *text)
{
	size_t n = 0;
	while (*list && (*list)[n])
		n++;
	char **bigger = realloc(*list, (n + 2) * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	*list = bigger;
	bigger[n] = strdup(text);
	bigger[n + 1] = NULL;
	return bigger[n] ? 0 : -ENOMEM;
}

static const struct {
	const char *word;
	size_t offset;
} words[] = {
	{"privileged", offsetof(struct dmig_allow, privileged)},
	{"host-network", offsetof(struct dmig_allow, host_network)},
	{"host-pid", offsetof(struct dmig_allow, host_pid)},
	{"devices", offsetof(struct dmig_allow, any_device)},
	{"binds", offsetof(struct dmig_allow, any_bind)},
	{"capabilities", offsetof(struct dmig_allow, any_capability)},
};

int daemon_parse_allow(const char *text, struct daemon_options *o, struct dmig_error **err)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i].word, text)) {
			*(bool *)((char *)&o->allow + words[i].offset) = true;
			return 0;
		}
	}
	if (!strncmp(text, "bind=/", 6))
		return append(&o->allow.binds, text + 5);
	if (!strncmp(text, "device=/", 8))
		return append(&o->allow.devices, text + 7);
	return bad(err, "--allow", text);
}

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

void daemon_options_clear(struct daemon_options *o)
{
	free_list(o->allow.binds);
	free_list(o->allow.devices);
	o->allow.binds = o->allow.devices = NULL;
}
