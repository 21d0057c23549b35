/* diagnose_values.h - statistics of one site's pre-activations: shares, moments, dead units.
 * SPDX-License-Identifier: MIT
 *
 * The rows of a site are divided into a fixed number of parts; each processes its rows in blocks
 * that stay in cache while they are counted, differentiated and evaluated. Parts are joined in
 * order, so results do not depend on the number of threads. */
#ifndef TRAIN_DIAGNOSE_VALUES_H
#define TRAIN_DIAGNOSE_VALUES_H

#include <berlu/act.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"

/* Rows of one site. `call` has channels and the learned parameters; the edge of the transition is
 * the activation's own float, one for all (stride 0) or one per channel (stride 1). */
typedef struct site_values {
    const berlu_act *act;
    const float *x;
    size_t rows;
    const float *edge;
    size_t edge_stride;
    berlu_act_call call;
} site_values;

enum { VALUES_BLOCK = 1 << 13 }; /* values of a block, or one row where that is longer */

/* Scratch for sites of up to `channels` channels whose calls need up to `workspace` bytes. It lives
 * in the arena. */
typedef struct value_parts value_parts;
value_parts *value_parts_make(arena *memory, size_t channels, size_t workspace);

/* Writes SITE_LEFT to SITE_RIGHT, SITE_DEAD, SITE_MEAN, SITE_VAR, SITE_Y_MEAN, SITE_Y_VAR and
 * SITE_NONLINEAR. */
berlu_status values_measure(value_parts *parts, const site_values *v, int threads, double *site_metrics);

/* The `count` outputs of the first block's rows, for a histogram; valid until the next call. */
berlu_status values_outputs(value_parts *parts, const site_values *v, const float **out, size_t *count);

#endif
