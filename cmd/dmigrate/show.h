/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_SHOW_H
#define DMIG_COMMAND_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* The report of one migration (dmigrate-report(5)) as a table for people. */
void dmig_show_report(FILE *out, const json_t *report);

/* "dmigrate: <side>: message" of a report that is not ok, on stderr. */
void dmig_show_report_error(const json_t *report);

/* exit_code of the report; DMIG_EXIT_INTERNAL if it is not one of ours. */
int dmig_show_exit_code(const json_t *report);

/* All three for a migration that was waited for: error, then report or JSON. Returns the exit code. */
int dmig_show_end(const json_t *report, bool json, bool quiet);

#endif
