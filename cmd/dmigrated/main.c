/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "dmigrated.h"
#include "migrate/report.h"
#include "util/cleanup.h"
#include "util/error.h"

static const char usage[] =
	"Usage: dmigrated --listen [ADDRESS:PORT] [--key FILE] [--data-port LOW[-HIGH]] [--allow WHAT]...\n"
	"       dmigrated --bootstrap --id ID [--data-port LOW[-HIGH]] [--allow WHAT]...\n"
	"       dmigrated --source --request-fd N [--ready-fd N]\n"
	"\n"
	"One side of a migration. People use dmigrate; this is started by it, by ssh, or by the service manager.\n"
	"\n"
	"      --listen             serve migrations to this host (default address: all, port 7788)\n"
	"      --key FILE           pre-shared key (default /etc/dmigrate/key; see dmigrate key)\n"
	"      --bootstrap          serve one migration whose key comes on standard input\n"
	"      --id ID              its id\n"
	"      --data-port LOW[-HIGH]  ports for data connections (default 7790-7889)\n"
	"      --allow WHAT         what a peer's container may have here: privileged, host-network, host-pid,\n"
	"                           bind=PATH, device=PATH, capabilities, devices, binds (default: none)\n"
	"      --source             the source's side; the request is read from a descriptor\n"
	"      --request-fd N       where the request is\n"
	"      --ready-fd N         told once the migration can be watched\n"
	"      --verbose            log everything\n"
	"      --help, --version\n";

enum { OPT_LISTEN = 256, OPT_KEY, OPT_BOOTSTRAP, OPT_ID, OPT_DATA_PORT, OPT_ALLOW, OPT_SOURCE, OPT_REQUEST, OPT_READY,
	OPT_VERBOSE, OPT_HELP, OPT_VERSION };

static const struct option options[] = {
	{"listen", optional_argument, NULL, OPT_LISTEN},
	{"key", required_argument, NULL, OPT_KEY},
	{"bootstrap", no_argument, NULL, OPT_BOOTSTRAP},
	{"id", required_argument, NULL, OPT_ID},
	{"data-port", required_argument, NULL, OPT_DATA_PORT},
	{"allow", required_argument, NULL, OPT_ALLOW},
	{"source", no_argument, NULL, OPT_SOURCE},
	{"request-fd", required_argument, NULL, OPT_REQUEST},
	{"ready-fd", required_argument, NULL, OPT_READY},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

static int take(int opt, struct daemon_options *o, struct dmig_error **err)
{
	switch (opt) {
	case OPT_LISTEN:
		o->mode = DAEMON_LISTEN;
		o->address = optarg;
		return 0;
	case OPT_KEY:
		o->key_file = optarg;
		return 0;
	case OPT_BOOTSTRAP:
		o->mode = DAEMON_BOOTSTRAP;
		return 0;
	case OPT_ID:
		o->id = optarg;
		return 0;
	case OPT_DATA_PORT:
		return daemon_parse_ports(optarg, o, err);
	case OPT_ALLOW:
		return daemon_parse_allow(optarg, o, err);
	case OPT_SOURCE:
		o->mode = DAEMON_SOURCE;
		return 0;
	case OPT_REQUEST:
		return daemon_parse_fd(optarg, &o->request_fd, err);
	case OPT_READY:
		return daemon_parse_fd(optarg, &o->ready_fd, err);
	case OPT_VERBOSE:
		o->verbose = true;
		return 0;
	default:
		return dmig_error_set_class(err, DMIG_ERR_USAGE, 22, "unknown option: see dmigrated --help");
	}
}

int main(int argc, char **argv)
{
	struct daemon_options o = DAEMON_OPTIONS_INIT;
	cleanup_error struct dmig_error *error = NULL;
	int opt, r = 0;
	opterr = 0;
	while (r == 0 && (opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == OPT_HELP || opt == OPT_VERSION) {
			fputs(opt == OPT_HELP ? usage : "dmigrated " DMIG_VERSION "\n", stdout);
			return 0;
		}
		r = take(opt, &o, &error);
	}
	if (r == 0 && optind < argc && o.mode == DAEMON_LISTEN && !o.address)
		o.address = argv[optind++]; /* --listen ADDRESS, as people type it */
	if (r == 0 && (o.mode == DAEMON_NONE || optind < argc))
		r = dmig_error_set_class(&error, DMIG_ERR_USAGE, 22, "one of --listen, --bootstrap, --source is needed");
	if (r == 0)
		r = daemon_run(&o, &error);
	if (error) {
		fprintf(stderr, "dmigrated: %s\n", error->message);
		r = error->class == DMIG_ERR_USAGE ? DMIG_EXIT_USAGE : DMIG_EXIT_INTERNAL;
	}
	daemon_options_clear(&o);
	return r;
}
