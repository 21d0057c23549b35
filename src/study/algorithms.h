/* algorithms.h - the product algorithms of GPU runs, stored with the runs.
 * SPDX-License-Identifier: MIT
 *
 * Which algorithm a product uses is chosen by timing and decides about the last bits
 * (docs/engine.md), so repeating a run needs its choices. Each worker has a file of its own,
 * FOLDER/algorithms/KEY.txt, which begins as a copy of FOLDER/algorithms/common.txt: runs of a
 * study share what is known, and none reads what another is writing. The file of a finished run
 * goes into its folder as algorithms.txt and becomes the common one if it holds more. */
#ifndef STUDY_ALGORITHMS_H
#define STUDY_ALGORITHMS_H

#include "study/runs.h"

/* Whether a cell's runs choose algorithms: on a GPU, unless its settings name a file. */
int study_algorithms_wanted(const study_cell *cell);

/* The file for --algorithms. A choice that cannot be copied is made by timing again. */
berlu_status study_algorithms_prepare(char path[STUDY_PATH], const char *folder, const char *key);

/* Stores the choices of a finished run. A failure loses no result. */
void study_algorithms_keep(const char *folder, const study_entry *run);

/* Restores the choices of an earlier run for study_algorithms_prepare(), to repeat that run. */
void study_algorithms_recall(const char *folder, const char *key, const char *run);

/* The device on which the choices of RUN/algorithms.txt were made, with its number of
 * multiprocessors; "" if not known. */
enum { STUDY_MACHINE = 192 };
void study_algorithms_machine(char out[STUDY_MACHINE], const char *run);

#endif
