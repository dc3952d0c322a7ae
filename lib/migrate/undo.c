/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "migrate/undo.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "criu/freezer.h"
#include "docker/docker.h"
#include "migrate/process.h"
#include "netns/netns.h"
#include "runtime/placeholder.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/log.h"

/* CRIU lets its tasks go within milliseconds of losing us; runc needs some more to end. */
#define DUMP_END_MS 3000
/* A UUID as text. */
#define MAX_BOOT_ID 64

struct undo_context {
	struct dmig_journal *journal;
	struct dmig_docker *docker; /* opened when first needed */
	struct dmig_freezer *freezer; /* of the source's tasks, once thawed */
};

static int docker_of(struct undo_context *c, struct dmig_error **err)
{
	return c->docker ? 0 : dmig_docker_open(&c->docker, err);
}

static const char *text_of(json_t *rec, const char *name)
{
	const char *s = json_string_value(json_object_get(rec, name));
	return s ? s : "";
}

/* Names one boot of this host; "" if it cannot be read. Caller frees. */
static char *boot_id(void)
{
	char *text = NULL;
	if (dmig_read_file("/proc/sys/kernel/random/boot_id", MAX_BOOT_ID, &text, NULL) < 0)
		return strdup("");
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* A reboot found the policy switched off, so Docker did not start the container: what it would have done is done now. */
static int start_again(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	cleanup_free char *boot = boot_id();
	const char *then = text_of(rec, "boot");
	struct dmig_container *container = NULL;
	if (!boot || !*boot || !*then || !strcmp(boot, then))
		return 0;
	int r = dmig_docker_inspect(c->docker, text_of(rec, "container"), &container, err);
	if (r < 0)
		return r;
	if (!container->running) {
		log_warn("container %s is started again: a reboot came while its restart policy was off", container->name);
		r = dmig_docker_start(c->docker, container->id, err);
	}
	dmig_container_free(container);
	return r;
}

static int put_policy(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	int r = docker_of(c, err);
	if (r == 0)
		r = dmig_docker_set_restart_policy(c->docker, text_of(rec, "container"), text_of(rec, "policy"),
			(int)json_integer_value(json_object_get(rec, "max")), err);
	return r < 0 ? r : start_again(c, rec, err);
}

static int put_links(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	(void)c;
	struct dmig_links *links = NULL;
	int r = dmig_links_parse(text_of(rec, "links"), &links, err);
	if (r == 0)
		r = dmig_links_up(links, err);
	dmig_links_free(links);
	return r == -ENODEV ? 0 : r; /* the container ended meanwhile, and its links with it */
}

static int put_freezer(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	if (c->freezer || access(text_of(rec, "path"), F_OK) < 0)
		return 0;
	int r = dmig_freezer_open_path(text_of(rec, "path"), &c->freezer, err);
	return r < 0 ? r : dmig_freezer_thaw(c->freezer, err);
}

static int end_dump(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	int r = dmig_process_end_tree((pid_t)json_integer_value(json_object_get(rec, "pid")),
		(unsigned long long)json_integer_value(json_object_get(rec, "start")), DUMP_END_MS, err);
	/* A CRIU that was killed left sockets that neither send nor receive. */
	if (c->freezer)
		dmig_freezer_release_tcp(c->freezer, NULL);
	return r;
}

static int remove_container(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	int r = docker_of(c, err);
	if (r == 0)
		r = dmig_docker_remove_container(c->docker, text_of(rec, "id"), true, true, err);
	/* Only now: with the record a `docker start` cannot make a fresh copy beside the source. */
	return r < 0 ? r : dmig_target_record_remove(text_of(rec, "id"));
}

static int remove_network(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	int r = docker_of(c, err);
	return r < 0 ? r : dmig_docker_remove_network(c->docker, text_of(rec, "id"), err);
}

static int remove_volume(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	int r = docker_of(c, err);
	return r < 0 ? r : dmig_docker_remove_volume(c->docker, text_of(rec, "id"), err);
}

static int remove_image(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	int r = docker_of(c, err);
	return r < 0 ? r : dmig_docker_image_remove(c->docker, text_of(rec, "id"), err);
}

static int open_gate(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	(void)rec;
	return dmig_gate_open(dmig_journal_id(c->journal), err);
}

static int end_target(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	(void)c;
	return dmig_target_recover(text_of(rec, "container"), err);
}

static const struct {
	const char *what;
	int (*put_back)(struct undo_context *, json_t *, struct dmig_error **);
} actions[] = {
	{"restart-policy", put_policy},
	{"links", put_links},
	{"held-links", put_links},
	{"freezer", put_freezer},
	{"dump", end_dump},
	{"container", remove_container},
	{"network", remove_network},
	{"volume", remove_volume},
	{"image", remove_image},
	{"gate", open_gate},
	{"target", end_target},
	{"held-links", put_links},
};

/* A destination's links stand in the journal by themselves: the commit lets them go as well. */
static const char *what_of(json_t *rec)
{
	const char *kind = text_of(rec, "rec");
	if (!strcmp(kind, "undo"))
		return text_of(rec, "what");
	return strcmp(kind, "held-links") ? NULL : kind;
}

static int put_back(struct undo_context *c, json_t *rec, struct dmig_error **err)
{
	const char *what = what_of(rec);
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strcmp(actions[i].what, what))
			return actions[i].put_back(c, rec, err);
	return dmig_error_set(err, EINVAL, "the journal asks to undo \"%s\", which this version does not know", what);
}

static void undo_one(struct undo_context *c, json_t *rec, struct dmig_error **first)
{
	cleanup_error struct dmig_error *e = NULL;
	int64_t start = dmig_now_us();
	if (put_back(c, rec, &e) < 0) {
		log_error("undo of %s failed: %s", what_of(rec), e ? e->message : "?");
		if (!*first)
			*first = steal_ptr(&e);
		return;
	}
	log_info("undone: %s (%lld us)", what_of(rec), (long long)(dmig_now_us() - start));
}

enum rank { FIRST, THEN, LAST, NEVER };

/*
 * Links and freezer first, whatever their place: the source must serve again at once, the rest may take its time. A
 * destination's links last: while its container is there, its address must not be heard.
 */
static enum rank rank_of(json_t *rec)
{
	const char *what = what_of(rec);
	if (!what)
		return NEVER;
	if (!strcmp(what, "links") || !strcmp(what, "freezer"))
		return FIRST;
	return !strcmp(what, "held-links") || !strcmp(what, "gate") ? LAST : THEN;
}

int dmig_undo_run(struct dmig_journal *j, struct dmig_error **err)
{
	struct undo_context c = {.journal = j};
	struct dmig_error *first = NULL;
	json_t *list = NULL;
	int r = dmig_journal_read(j, &list, err);
	if (r < 0)
		return r;
	for (enum rank rank = FIRST; rank < NEVER; rank++)
		for (size_t i = json_array_size(list); i-- > 0;)
			if (rank_of(json_array_get(list, i)) == rank)
				undo_one(&c, json_array_get(list, i), &first);
	json_decref(list);
	dmig_docker_free(c.docker);
	dmig_freezer_free(c.freezer);
	if (first) {
		r = -first->code;
		if (err && !*err)
			*err = first;
		else
			dmig_error_free(first);
		return r;
	}
	return dmig_journal_add(j, json_pack("{s:s,s:s}", "rec", "done", "result", "undone"), err);
}

static int add(struct dmig_journal *j, json_t *rec, struct dmig_error **err)
{
	if (!rec)
		return dmig_error_set(err, ENOMEM, "out of memory");
	json_object_set_new(rec, "rec", json_string("undo"));
	return dmig_journal_add(j, rec, err);
}

int dmig_undo_restart_policy(struct dmig_journal *j, const char *container, const char *policy, int max,
	struct dmig_error **err)
{
	cleanup_free char *boot = boot_id();
	return add(j, json_pack("{s:s,s:s,s:s,s:i,s:s}", "what", "restart-policy", "container", container, "policy", policy,
			      "max", max, "boot", boot ? boot : ""), err);
}

int dmig_undo_links(struct dmig_journal *j, const char *links, struct dmig_error **err)
{
	return add(j, json_pack("{s:s,s:s}", "what", "links", "links", links), err);
}

int dmig_undo_freezer(struct dmig_journal *j, const char *path, struct dmig_error **err)
{
	return add(j, json_pack("{s:s,s:s}", "what", "freezer", "path", path), err);
}

int dmig_undo_dump(struct dmig_journal *j, pid_t pid, struct dmig_error **err)
{
	return add(j, json_pack("{s:s,s:i,s:I}", "what", "dump", "pid", (int)pid, "start",
			      (json_int_t)dmig_process_start_time(pid)), err);
}

int dmig_undo_made(struct dmig_journal *j, const char *kind, const char *id, struct dmig_error **err)
{
	return add(j, json_pack("{s:s,s:s}", "what", kind, "id", id), err);
}

int dmig_undo_gate(struct dmig_journal *j, struct dmig_error **err)
{
	return add(j, json_pack("{s:s}", "what", "gate"), err);
}

int dmig_undo_target(struct dmig_journal *j, const char *container, struct dmig_error **err)
{
	return add(j, json_pack("{s:s,s:s}", "what", "target", "container", container), err);
}
