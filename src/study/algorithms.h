/* algorithms.h - the product algorithms of GPU runs, kept with the runs.
 * SPDX-License-Identifier: MIT
 *
 * Which algorithm a product takes is chosen by time and decides about the last bits
 * (docs/engine.md), so a run that is to be repeated needs its choices. Each worker gets a file of
 * its own, FOLDER/algorithms/KEY.txt, that begins as a copy of FOLDER/algorithms/common.txt: runs
 * of a study share what is known and none reads what another is writing. When a run is done its
 * file goes into its folder as algorithms.txt, and becomes the common one if it holds more. */
#ifndef STUDY_ALGORITHMS_H
#define STUDY_ALGORITHMS_H

#include "study/runs.h"

/* Whether a cell's runs choose algorithms: on a GPU, unless its settings name a file. */
int study_algorithms_wanted(const study_cell *cell);

/* The file for --algorithms. What cannot be copied is chosen anew. */
berlu_status study_algorithms_prepare(char path[STUDY_PATH], const char *folder, const char *key);

/* After a run that is done. Failing to keep them loses no result. */
void study_algorithms_keep(const char *folder, const study_entry *run);

/* Puts the choices of an earlier run in front of study_algorithms_prepare(): for repeating it. */
void study_algorithms_recall(const char *folder, const char *key, const char *run);

/* The machine that the choices of RUN/algorithms.txt were made on, with its number of
 * multiprocessors; "" if not known. */
enum { STUDY_MACHINE = 192 };
void study_algorithms_machine(char out[STUDY_MACHINE], const char *run);

#endif
