/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_MIGRATE_PHASES_H
#define DMIG_MIGRATE_PHASES_H

/*
 * The phases of design/phases.md, in order. Each side has one table {phase, enter}; what a phase changes is in the journal
 * before it is changed, so its undo is undo.c. There is exactly one commit point: between COMMIT and what stands before it.
 */
enum dmig_phase {
	DMIG_PHASE_CONNECT = 0,
	DMIG_PHASE_CHECK,
	DMIG_PHASE_PREPARE,
	DMIG_PHASE_STAGE,
	DMIG_PHASE_FREEZE,
	DMIG_PHASE_STATE,
	DMIG_PHASE_READY,
	DMIG_PHASE_COMMIT,
	DMIG_PHASE_FINISH,
	DMIG_PHASE_DONE,
};

static inline const char *dmig_phase_name(enum dmig_phase p)
{
	static const char *const names[] = {
		"connect", "check", "prepare", "stage", "freeze", "state", "ready", "commit", "finish", "done"};
	return (unsigned)p < sizeof(names) / sizeof(names[0]) ? names[p] : "?";
}

#endif
