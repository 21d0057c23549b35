/* landscape_file.h - RUN/landscape.json: how sharp the loss of a run is around its last weights.
 * SPDX-License-Identifier: MIT
 *
 * A study deletes weights to save space, and a report has none. The figures that a verdict about
 * flatness (claim C18) needs are measured while the weights exist and stored in the run's folder:
 * sharpness, the largest eigenvalue of the Hessian with its error, and how they were measured.
 * Figures measured in different ways are never compared, so the settings are part of the file. */
#ifndef ANALYZE_LANDSCAPE_FILE_H
#define ANALYZE_LANDSCAPE_FILE_H

#include <stddef.h>

#include "base/status.h"

enum { LANDSCAPE_HOW = 128 };
#define LANDSCAPE_FILE "landscape.json"

typedef struct landscape_summary {
    double loss, gradient, sharpness;
    double eigenvalue, error; /* the largest of the Hessian; NaN: none was computed */
    char how[LANDSCAPE_HOW];  /* "256 training images, last weights, rho 0.05" */
} landscape_summary;

/* Writes FOLDER/landscape.json atomically. */
berlu_status landscape_save(const char *folder, const landscape_summary *s);

/* BERLU_ERR_INPUT: there is no such file, or it holds something else. */
berlu_status landscape_load(landscape_summary *out, const char *folder);

#endif
