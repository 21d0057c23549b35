/* known.h - runs that another store already holds, so that nothing runs twice on any machine.
 * SPDX-License-Identifier: MIT
 *
 * A machine borrowed for minutes stores nothing permanently: finished runs are in a store
 * elsewhere, perhaps without their folders. Keys are the same everywhere, so a run that such a
 * store holds as done or failed is so here too. Its results stay there: the index of this study has
 * only what its own folders hold, and `study merge` joins the stores. */
#ifndef STUDY_KNOWN_H
#define STUDY_KNOWN_H

#include "study/store.h"

/* Opens the store at `path`, a file or a folder with a study.db, to read; says what to do with a
 * pack. */
berlu_status study_known_open(store **out, const char *path);

/* Marks every run without results of its own that such a store holds as done or failed: state, last
 * metrics, `known`. One that failed here yields to results. A run in training here keeps its state.
 * Nothing is written. */
berlu_status study_known_take(study_entries *runs, const char *path);

/* The same for the study's own index, of runs that have no folder here: `study merge` takes results
 * without folders, and training them again would replace them. An index that cannot be read knows
 * none. */
berlu_status study_known_here(study_entries *runs, const char *folder);

#endif
