/* study_plan.h - `study run --dry-run`: cells, seeds, memory and expected time; nothing runs.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_STUDY_PLAN_H
#define CLI_STUDY_PLAN_H

#include "study_open.h"

/* The default number of runs at a time: the number of cores for small networks, which leave cores
 * idle; else 1. On a GPU --devices and --per-device decide. */
int study_jobs_default(const study_opened *x);

/* Threads of each of `jobs` workers; 0: the default. */
int study_threads(const options *o, int jobs);

/* Prints the plan, or one JSON object. What this machine lacks is a note: only mistakes of the file
 * are errors. */
berlu_status study_plan(const options *o, study_opened *x);

/* Cells, the state of their runs, contrasts. */
void study_plan_print(const study_opened *x);

#endif
