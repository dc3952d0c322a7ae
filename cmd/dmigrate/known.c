/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "migrate/control.h"
#include "util/cleanup.h"
#include "watch.h"

static int choose(char **ids, const char *text, char **ret_id, struct dmig_error **err)
{
	const char *found = NULL;
	if (!text)
		found = ids[0];
	for (size_t i = 0; text && *text && ids[i]; i++) {
		if (strncmp(ids[i], text, strlen(text)))
			continue;
		if (found)
			return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
				"%s is the beginning of several ids: %s, %s, ...", text, found, ids[i]);
		found = ids[i];
	}
	if (!found && text)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, ENOENT,
			"no migration %s is known here; see dmigrate status", text);
	if (!found)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, ENOENT, "no migration is known here");
	*ret_id = strdup(found);
	return *ret_id ? 0 : dmig_error_set(err, ENOMEM, "out of memory");
}

int dmig_known_id(const char *text, char **ret_id, struct dmig_error **err)
{
	char **ids = NULL;
	int r = dmig_control_list(&ids, err);
	if (r < 0)
		return r;
	r = choose(ids, text, ret_id, err);
	dmig_control_free_list(ids);
	return r;
}

int dmig_known_report(const char *id, json_t **ret, struct dmig_error **err)
{
	cleanup_free char *text = NULL;
	json_error_t je;
	int r = dmig_control_report(id, &text, err);
	if (r < 0)
		return r;
	*ret = json_loads(text, 0, &je);
	return *ret ? 0
		    : dmig_error_set(err, EBADMSG, "the report of migration %s is damaged: %s", id, je.text);
}

int dmig_known_state(const char *id, json_t **ret, struct dmig_error **err)
{
	cleanup_error struct dmig_error *e = NULL;
	int r = dmig_watch_request(id, "{\"op\":\"status\"}", ret, &e);
	if (r == 0) {
		json_object_del(*ret, "event");
		return 0;
	}
	/* Gone, or going right now. */
	if (r == -ENOENT || r == -ECONNRESET || r == -EPIPE)
		return dmig_known_report(id, ret, err);
	if (err && !*err)
		*err = steal_ptr(&e);
	return r;
}
