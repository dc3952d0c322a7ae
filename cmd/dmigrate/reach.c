/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "migrate.h"
#include "net/net.h"
#include "paths.h"
#include "ssh.h"
#include "util/cleanup.h"
#include "util/io.h"

/* A person may have to find and type a password. */
#define SSH_TIMEOUT_MS 120000

DMIG_DEFINE_CLEANUP(struct dmig_key, dmig_key_free)

static int take_key(const struct dmig_key *key, struct dmig_options *o, struct dmig_error **err)
{
	o->key = dmig_key_format(key);
	return o->key ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

static int reach_tls(struct dmig_migrate_values *v, struct dmig_error **err)
{
	struct dmig_options *o = &v->options;
	cleanup_with(dmig_key_free) struct dmig_key *key = NULL;
	struct dmig_address a;

	if (v->ports.low)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
			"--data-port is for ssh://; at tls:// the dmigrated there decides");
	int r = dmig_address_parse(o->destination + strlen("tls://"), 0, &a, err);
	if (r == 0)
		r = dmig_key_load(v->key_file ? v->key_file : DMIG_KEY_FILE, &key, err);
	if (r < 0) {
		if (err && *err)
			(*err)->class = DMIG_ERR_USAGE;
		return r;
	}
	o->host = strdup(a.host);
	o->port = a.port;
	return o->host ? take_key(key, o, err) : dmig_error_set(err, ENOMEM, "out of memory");
}

/* The time that ssh takes, with the person at it, counts. */
static void spend(struct dmig_options *o, int64_t since)
{
	int64_t left = o->timeout_ms - (dmig_now_ms() - since);
	if (o->timeout_ms)
		o->timeout_ms = left > 1 ? (int)left : 1;
}

static int bootstrap(struct dmig_migrate_values *v, const struct dmig_ssh *ssh, struct dmig_error **err)
{
	struct dmig_options *o = &v->options;
	cleanup_with(dmig_key_free) struct dmig_key *key = NULL;
	int64_t since = dmig_now_ms();
	int limit = o->timeout_ms && o->timeout_ms < SSH_TIMEOUT_MS ? o->timeout_ms : SSH_TIMEOUT_MS;

	int r = dmig_key_generate(&key, err);
	if (r < 0 || (r = take_key(key, o, err)) < 0)
		return r;
	r = dmig_ssh_bootstrap(ssh, o->id, o->key, v->ports, limit, &o->port, err);
	if (r < 0)
		return r;
	spend(o, since);
	o->host = strdup(ssh->hostname);
	o->tunnel = dmig_ssh_tunnel(ssh, o->port);
	return o->host && o->tunnel ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

static int reach_ssh(struct dmig_migrate_values *v, struct dmig_error **err)
{
	struct dmig_ssh ssh;
	if (v->key_file)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
			"--key is for tls://; ssh:// makes a key for each migration");
	int r = dmig_ssh_open(v->options.destination, &ssh, err);
	if (r == 0)
		r = bootstrap(v, &ssh, err);
	dmig_ssh_clear(&ssh);
	return r;
}

int dmig_migrate_reach(struct dmig_migrate_values *v, struct dmig_error **err)
{
	const char *dest = v->options.destination;
	if (!strncmp(dest, "ssh://", 6))
		return reach_ssh(v, err);
	if (!strncmp(dest, "tls://", 6))
		return reach_tls(v, err);
	return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
		"%s: the destination is ssh://[user@]host[:port] or tls://host:port", dest);
}
