/* branch.h - the Lipschitz bound of every MLP branch of a network. SPDX-License-Identifier: MIT
 *
 * x -> fc2(f(fc1(x))) increases distances by at most ||fc2|| Lip(f) ||fc1||, spectral norms, times
 * the largest |gamma| where LayerScale follows. No more can be said of a transformer block: a layer
 * norm divides by a deviation that may be arbitrarily small, and dot-product attention is not
 * Lipschitz on an unbounded domain (Kim, Papamakarios, Mnih 2021). */
#ifndef ANALYZE_BRANCH_H
#define ANALYZE_BRANCH_H

#include "analyze/opened.h"

typedef struct branch {
    const char *site;  /* the graph's; lives as long as the model */
    double alpha, eps; /* mean over channels; NaN where the activation has none */
    double lipschitz;  /* of the activation with its present parameters, the greatest over channels */
    double fc1, fc2;   /* largest singular values */
    double scale;      /* the largest |gamma|; 1 without LayerScale */
    double bound;      /* the product of the four */
} branch;

/* One per activation site, in the order of the network; free() it. Weights must be set. */
berlu_status branches_find(branch **out, size_t *count, opened *o, int threads);

#endif
