/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_SHOW_H
#define DMIG_COMMAND_SHOW_H

#include <jansson.h>
#include <stdbool.h>

/*
 * A migration that has ended (dmigrate-report(5)): its error on stderr, then the report on stdout, as JSON or
 * as a table for people. Returns its exit code, DMIG_EXIT_INTERNAL if the report has none of ours.
 */
int dmig_show_end(const json_t *report, bool json, bool quiet);

#endif
