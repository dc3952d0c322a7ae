/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "criu/dump.h"
#include "migrate/dest_internal.h"
#include "migrate/process.h"
#include "migrate/undo.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"
#include "util/paths.h"

/* From Docker's start request until its runtime wrapper waits for images: mounts, network, shim. */
#define STARTED_MS 60000

static char **copy_strings(json_t *list)
{
	size_t n = json_array_size(list), out = 0;
	char **strings = calloc(n + 1, sizeof(*strings));
	for (size_t i = 0; strings && i < n; i++) {
		const char *text = json_string_value(json_array_get(list, i));
		if (text && (strings[out] = strdup(text)))
			out++;
	}
	return strings;
}

static int read_request(struct dest *d, json_t *body, struct dmig_error **err)
{
	json_t *options = json_object_get(body, "options");
	const char *tcp = json_string_value(json_object_get(options, "tcp"));
	const char *after = json_string_value(json_object_get(options, "source"));
	const char *name = json_string_value(json_object_get(options, "name"));
	cleanup_free char *text = json_dumps(json_object_get(body, "spec"), JSON_COMPACT);
	if (!text || !json_is_object(options) || !tcp || !after)
		return dmig_error_set(err, EPROTO, "CHECK lacks the container's description or the options");
	int r = dmig_spec_parse(text, strlen(text), &d->spec, err);
	if (r == 0 && name)
		r = dmig_spec_rename(d->spec, name, err);
	if (r < 0)
		return dmig_error_wrap(err, "the container's description");
	d->tcp_close = !strcmp(tcp, "close");
	d->source_keep = !strcmp(after, "keep");
	d->own_netns = json_is_true(json_object_get(options, "own_netns"));
	d->verbose = json_is_true(json_object_get(options, "verbose"));
	d->binds = copy_strings(json_object_get(options, "binds"));
	dmig_worker_set(d->w, "name", dmig_spec_container(d->spec)->name);
	return 0;
}

/* Returns what it can, for the source to know. */
static int check_criu(struct dmig_findings *f)
{
	cleanup_free char *criu_dir = dmig_criu_dir();
	cleanup_free char *version = NULL;
	cleanup_error struct dmig_error *e = NULL;
	int has = dmig_criu_probe(criu_dir, &version, &e);
	int need = DMIG_CRIU_HAS_NOTIFY_SOCKET | DMIG_CRIU_HAS_ROOT_HOST_PID;
	if (has < 0)
		dmig_findings_add(&f->blockers, "criu at the destination: %s: install Dmigrate there (make install)",
			e ? e->message : "not usable");
	else if ((has & need) != need)
		dmig_findings_add(&f->blockers,
			"criu at the destination: %s cannot restore under the pid that Docker expects: use Dmigrate's own CRIU",
			version ? version : "this version");
	return has < 0 ? 0 : has;
}

static json_t *to_list(char **lines)
{
	json_t *list = json_array();
	for (size_t i = 0; lines && lines[i]; i++)
		json_array_append_new(list, json_string(lines[i]));
	return list;
}

static int find_image(struct dest *d, json_t *result, struct dmig_error **err)
{
	size_t have = 0;
	int r = dmig_docker_image_find(d->docker, d->spec, &d->image_id, &have, err);
	if (r < 0)
		return r;
	json_object_set_new(result, "image", json_pack("{s:b,s:I,s:I}", "present", d->image_id != NULL, "have",
						  (json_int_t)have, "count", (json_int_t)dmig_spec_layers(d->spec)));
	return 0;
}

int dest__check(struct dest *d, json_t *body, json_t **ret_result, struct dmig_error **err)
{
	struct dmig_findings f = {0};
	int r = read_request(d, body, err);
	if (r == 0)
		r = dmig_docker_open(&d->docker, err);
	if (r < 0)
		return r;
	struct dmig_check_opts opts = {
		.tcp_close = d->tcp_close, .source_keep = d->source_keep, .bind_share = (const char *const *)d->binds,
		.state_dir = dmig_state_dir()};
	r = dmig_docker_check_target(d->docker, d->spec, &opts, d->o->allow, &f, err);
	int criu = r == 0 ? check_criu(&f) : 0;
	json_t *result = r == 0 ? json_pack("{s:o,s:o,s:s,s:b}", "blockers", to_list(f.blockers), "warnings",
					  to_list(f.warnings), "docker", dmig_docker_version(d->docker),
					  "inline_tmpfs", (criu & DMIG_CRIU_HAS_INLINE_TMPFS) != 0)
				: NULL;
	d->refused = f.blockers && f.blockers[0];
	dmig_findings_clear(&f);
	if (r == 0 && !result)
		r = dmig_error_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = find_image(d, result, err);
	if (r < 0) {
		json_decref(result);
		return r;
	}
	*ret_result = result;
	return 0;
}

static int made(const char *kind, const char *id, void *opaque)
{
	struct dest *d = opaque;
	log_info("created %s %s", kind, id);
	return dmig_undo_made(d->w->journal, kind, id, NULL);
}

static int take_image(struct dest *d, struct dmig_error **err)
{
	size_t have;
	char *id = NULL;
	if (d->image_id)
		return 0;
	int r = dmig_docker_image_find(d->docker, d->spec, &id, &have, err);
	if (r < 0)
		return r;
	dest__publish(d, image_id, id);
	if (!d->image_id)
		return dmig_error_set(err, ENOENT, "the image was sent, but Docker does not have it after loading");
	return dmig_undo_made(d->w->journal, "image", d->image_id, err);
}

int dest__prepare(struct dest *d, struct dmig_error **err)
{
	struct dmig_target_opts opts = {.runtime = "dmigrate", .tcp_close = d->tcp_close,
		.state_dir = dmig_state_dir(), .made = made, .opaque = d};
	/* What --allow permits is decided here, not by what the peer does with our answer. */
	if (d->refused)
		return dmig_error_set_class(err, DMIG_ERR_REFUSED, EPERM, "PREPARE although the check refused this container");
	int r = take_image(d, err);
	if (r < 0)
		return r;
	opts.image_id = d->image_id;
	struct dmig_container *container = NULL;
	r = dmig_docker_create_target(d->docker, d->spec, &opts, &d->container_id, err);
	if (r == 0)
		r = dmig_docker_inspect(d->docker, d->container_id, &container, err);
	if (r < 0)
		return r;
	dest__publish(d, container, container);
	dmig_worker_set(d->w, "container", d->container_id);
	r = dmig_journal_add(d->w->journal, json_pack("{s:s,s:s,s:s,s:i}", "rec", "target", "container", d->container_id,
						  "policy", dmig_spec_container(d->spec)->restart_policy, "max",
						  dmig_spec_container(d->spec)->restart_max), err);
	dest__reached(d, DMIG_PHASE_PREPARE);
	return r;
}

static int close_gate(struct dest *d, struct dmig_error **err)
{
	const struct dmig_container *c = dmig_spec_container(d->spec);
	cleanup_free const char **macs = calloc(c->n_networks + 1, sizeof(*macs));
	size_t n = 0;
	for (size_t i = 0; macs && i < c->n_networks; i++)
		if (c->networks[i].mac && c->networks[i].mac[0])
			macs[n++] = c->networks[i].mac;
	if (n == 0 || d->tcp_close)
		return 0;
	int r = dmig_undo_gate(d->w->journal, err);
	return r < 0 ? r : dmig_gate_close(d->w->id, macs, n, err);
}

/* Hold the host's ends of the container's links down until the commit, then the gate is not needed any more. */
static int hold_links(struct dest *d, struct dmig_error **err)
{
	int ns = dmig_target_netns_fd(d->target);
	if (!d->own_netns)
		return 0;
	int r = dmig_links_find(ns, &d->links, err);
	if (r < 0)
		return r;
	cleanup_free char *text = dmig_links_format(d->links);
	r = dmig_journal_add(d->w->journal, json_pack("{s:s,s:s}", "rec", "held-links", "links", text ? text : ""), err);
	if (r == 0)
		r = dmig_links_down(d->links, err);
	if (r == 0)
		r = dmig_announcer_new(ns, &d->announcer, err);
	return r < 0 ? r : dmig_gate_open(d->w->id, err);
}

static int write_descriptors(struct dest *d, json_t *body, struct dmig_error **err)
{
	json_t *list = json_object_get(body, "descriptors");
	if (!json_is_array(list) || json_array_size(list) != 3)
		return dmig_error_set(err, EPROTO, "START lacks the container's descriptors");
	const char *tty = json_string_value(json_object_get(body, "tty"));
	if (tty && tty[0]) {
		unsigned long long rdev, dev;
		if (strlen(tty) > 60 || sscanf(tty, "tty[%llx:%llx]", &rdev, &dev) != 2)
			return dmig_error_set(err, EPROTO, "START names a terminal that is none");
		d->tty_key = dmig_asprintf("tty[%llx:%llx]", rdev, dev);
	}
	dest__publish(d, images_dir, dmig_asprintf("%s/images", d->w->run_dir));
	int r = d->images_dir ? dmig_mkdir_p(d->images_dir, 0700) : -ENOMEM;
	if (r < 0)
		return dmig_error_set(err, -r, "cannot make %s/images: %s", d->w->run_dir, strerror(-r));
	cleanup_free char *path = dmig_asprintf("%s/descriptors.json", d->images_dir);
	cleanup_free char *text = json_dumps(list, JSON_COMPACT);
	if (!path || !text)
		return dmig_error_set(err, ENOMEM, "out of memory");
	return dmig_write_file_atomic(path, text, strlen(text), 0600, err);
}

static int new_target(struct dest *d, struct dmig_error **err)
{
	cleanup_free char *criu_dir = dmig_criu_dir();
	struct dmig_target_paths paths = {.run_dir = d->w->run_dir, .runc = "runc", .criu_dir = criu_dir};
	struct dmig_target *target = NULL;
	int r = dmig_undo_target(d->w->journal, d->container_id, err);
	if (r == 0)
		r = dmig_target_new(d->container_id, d->w->id, &paths, &target, err);
	if (r < 0)
		return r;
	dest__publish(d, target, target);
	return dest__watch_target(d, err);
}

int dest__start(struct dest *d, json_t *body, struct dmig_error **err)
{
	int64_t start = dmig_now_us();
	int r = write_descriptors(d, body, err);
	if (r == 0)
		r = new_target(d, err);
	if (r == 0)
		r = close_gate(d, err);
	if (r == 0)
		r = dmig_docker_start(d->docker, d->container_id, err);
	if (r == 0)
		r = dmig_target_wait_started(d->target, STARTED_MS, err);
	if (r == 0)
		r = hold_links(d, err);
	if (r == 0)
		r = dmig_target_vacate(d->target, err);
	dmig_timeline_step(d->w->timeline, "docker start up to the waiting runtime", start, 0);
	if (r == 0)
		r = dest__launch_restore(d, err);
	dest__reached(d, DMIG_PHASE_STAGE);
	return r;
}
