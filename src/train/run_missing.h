/* run_missing.h - the error for a path that is no run. SPDX-License-Identifier: MIT */
#ifndef TRAIN_RUN_MISSING_H
#define TRAIN_RUN_MISSING_H

#include "base/status.h"

/* BERLU_ERR_INPUT with the reason: the name of a model, no such folder, a folder of runs, a
 * checkpoint, something else. */
berlu_status run_missing(const char *path);

/* BERLU_ERR_INPUT with the reason where nobody can tell whether there is a run: a folder that may
 * not be searched, a disk that does not answer. */
berlu_status run_hidden(const char *path);

#endif
