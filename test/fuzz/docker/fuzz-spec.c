/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "docker/internal.h"

/* Docker's reader ignores case: whatever the spelling, nobody becomes privileged without being allowed to. */
static void stays_unprivileged(const json_t *body)
{
	const char *key;
	json_t *v, *host = json_object_get(body, "HostConfig");
	json_object_foreach((json_t *)body, key, v)
		assert(strcasecmp(key, "HostConfig") || !strcmp(key, "HostConfig"));
	json_object_foreach(host, key, v)
	{
		assert(strcasecmp(key, "Privileged") || !json_is_true(v));
		assert(strcasecmp(key, "PidMode") ||
			strcasecmp(json_string_value(v) ? json_string_value(v) : "", "host"));
	}
}

static void make_body(const struct dmig_spec *s, int api_minor, bool tcp_close, bool harmless)
{
	struct dmig_docker__body_opts o = {.image = "image",
		.runtime = "dmigrate",
		.api_minor = api_minor,
		.tcp_close = tcp_close,
		.networks = s->networks};
	json_t *body = NULL;
	int r = dmig_docker__body(s, &o, &body, NULL);
	assert(r == 0 || s->container->volumes_from[0]);
	if (r == 0 && harmless)
		stays_unprivileged(body);
	json_decref(body);
}

/* A description from a peer: read, checked against an empty allow list, turned into the request for Docker.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmig_spec *s = NULL;
	struct dmig_findings f = {0};
	struct dmig_allow none = {0};
	if (dmig_spec_parse((const char *)data, size, &s, NULL) < 0)
		return 0;
	dmig_docker__check_allow(s, &none, NULL, &f);
	make_body(s, 41, false, !f.blockers);
	make_body(s, 51, true, !f.blockers);
	dmig_findings_clear(&f);
	dmig_spec_free(s);
	return 0;
}
