/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "migrate/options.h"
#include "util/cleanup.h"

static void fill(struct dmig_options *o)
{
	assert_int_equal(dmig_options_init(o, NULL), 0);
	o->container = strdup("web");
	o->destination = strdup("tls://10.0.0.2:7788");
	o->host = strdup("10.0.0.2");
	o->port = 7788;
	o->key = strdup("dmigrate-key-1 x 00");
	o->tcp = DMIG_TCP_CLOSE;
	o->exec = DMIG_EXEC_DROP;
	o->tunnel = calloc(3, sizeof(char *));
	o->tunnel[0] = strdup("ssh");
	o->tunnel[1] = strdup("-W");
	o->binds = calloc(1, sizeof(*o->binds));
	o->binds[0] = (struct dmig_bind_choice){strdup("/srv"), DMIG_BIND_COPY};
	o->n_binds = 1;
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	struct dmig_options a, b;
	fill(&a);
	cleanup_free char *json = dmig_options_to_json(&a);
	assert_non_null(json);
	assert_int_equal(dmig_options_from_json(json, strlen(json), &b, NULL), 0);
	assert_string_equal(b.id, a.id);
	assert_string_equal(b.container, "web");
	assert_string_equal(b.tunnel[1], "-W");
	assert_null(b.tunnel[2]);
	assert_null(b.name);
	assert_int_equal(b.port, 7788);
	assert_int_equal(b.tcp, DMIG_TCP_CLOSE);
	assert_int_equal(b.exec, DMIG_EXEC_DROP);
	assert_int_equal(b.exec_wait_ms, DMIG_OPTIONS_EXEC_WAIT_MS);
	assert_int_equal(b.binds[0].mode, DMIG_BIND_COPY);
	dmig_options_clear(&a);
	dmig_options_clear(&b);
}

static void bad_requests_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "[]", "{}", "{\"id\":\"../../etc\"}", "{\"port\":70000}", "{\"source\":\"eat\"}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dmig_options o;
		cleanup_error struct dmig_error *e = NULL;
		assert_true(dmig_options_from_json(bad[i], strlen(bad[i]), &o, &e) < 0);
		assert_int_equal(e->class, DMIG_ERR_USAGE);
	}
}

static void an_id_that_is_a_path_is_refused(void **state)
{
	(void)state;
	struct dmig_options a, b;
	fill(&a);
	memcpy(a.id, "../../../../etc/", 16);
	cleanup_free char *json = dmig_options_to_json(&a);
	assert_int_equal(dmig_options_from_json(json, strlen(json), &b, NULL), -EINVAL);
	dmig_options_clear(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(an_id_that_is_a_path_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
