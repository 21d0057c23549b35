/* spectrum.h - singular values of all weight matrices of a network, and gradient norms by depth.
 * SPDX-License-Identifier: MIT
 *
 * At the start (the weights that the seed draws) and, for a run, after training. The gradient is
 * that of the mean loss over the images of the opened network. A site's gradient is the norm of
 * fc1's bias gradient, as in metrics.csv: the gradient at the activation, summed over positions. If
 * expansive activations let gradients grow as L^depth, the norms of a network at its start fall
 * from the first site to the last by that factor a layer. */
#ifndef ANALYZE_SPECTRUM_H
#define ANALYZE_SPECTRUM_H

#include "analyze/opened.h"

enum { SPECTRUM_START, SPECTRUM_TRAINED, SPECTRUM_STATES };
extern const char *const spectrum_states[SPECTRUM_STATES]; /* "start", "trained" */

/* A matrix that multiplies rows: a linear layer, or a convolution as (outputs, inputs k k). */
typedef struct spectrum_matrix {
    const char *name;
    size_t rows, columns, count;       /* count: the smaller of the two */
    double *singular[SPECTRUM_STATES]; /* largest first; NULL where the state was not analysed */
    double gradient[SPECTRUM_STATES];  /* Frobenius norm of the loss's gradient */
} spectrum_matrix;

typedef struct spectrum_site {
    const char *name;
    double gradient[SPECTRUM_STATES]; /* NaN where fc1 has no bias */
} spectrum_site;

typedef struct spectrum {
    size_t matrices, sites;
    spectrum_matrix *matrix;
    spectrum_site *site;
    int states; /* 1: only the start */
    double loss[SPECTRUM_STATES];
    double growth[SPECTRUM_STATES]; /* factor a site from the last to the first, geometric mean; NaN for one site */
    arena memory;
} spectrum;

/* Names belong to the model of `o`, which must have images. */
berlu_status spectrum_find(spectrum *out, opened *o, int threads);
void spectrum_free(spectrum *s);

/* (sum of squares) / (largest square): how many directions carry the matrix. */
double stable_rank(const double *singular, size_t count);

#endif
