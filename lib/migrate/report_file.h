/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_REPORT_FILE_H
#define DMIG_MIGRATE_REPORT_FILE_H

#include <jansson.h>

#include "migrate/report.h"
#include "util/error.h"

/* Stores a report as /var/lib/dmigrate/ID/report.json. Takes the reference. The last DMIG_REPORTS_KEPT are kept. */
#define DMIG_REPORTS_KEPT 100
void dmig_report_write(const char *id, json_t *report);
/* What an error means for exit_code and "result". committed: the destination runs already. */
enum dmig_exit dmig_report_exit_code(const struct dmig_error *error, int committed);
const char *dmig_report_result(enum dmig_exit code);
json_t *dmig_report_error(const struct dmig_error *error); /* {side, code, message} or null */
/* A report for a migration whose worker died before it could write one. */
json_t *dmig_report_minimal(const char *id, const struct dmig_error *error, int committed);

#endif
