/* hessian.h - the largest eigenvalues of a loss's second derivative, from gradients alone.
 * SPDX-License-Identifier: MIT
 *
 * Lanczos with full reorthogonalisation over H v = (g(w + h v) - g(w - h v)) / 2h. Every value
 * comes with an error: || H y - theta y || of its unit Ritz vector, with H recomputed at half the
 * step. For a symmetric matrix some eigenvalue lies within that distance of theta, so the error
 * includes unconverged Lanczos, the curvature of the gradient over a step, and its rounding. */
#ifndef ANALYZE_HESSIAN_H
#define ANALYZE_HESSIAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A loss over `count` weights. `gradient` may be NULL. */
typedef struct surface {
    size_t count;
    berlu_status (*evaluate)(void *context, const double *weights, double *loss, double *gradient);
    void *context;
} surface;

typedef struct hessian_options {
    size_t wanted;                                 /* eigenvalues, at least 1 */
    size_t steps;                                  /* of Lanczos, at least `wanted`; limited to the number of weights */
    double step;                                   /* h; 0: hessian_step() */
    uint64_t seed;                                 /* of the first vector */
    void (*tick)(void *context, size_t gradients); /* after every gradient; may be NULL */
    void *context;
} hessian_options;

typedef struct eigenvalue {
    double value, error;
} eigenvalue;

/* The algebraically largest first. `found` is less than `wanted` only where the Krylov space of the
 * first vector is smaller. `out` has space for `wanted`. */
berlu_status hessian_largest(eigenvalue *out, size_t *found, const surface *s, const double *weights,
                             const hessian_options *o);

/* out = H v by a central difference of step h along v, which need not be a unit vector. `work`
 * holds two more vectors. */
berlu_status hessian_times(double *out, const surface *s, const double *weights, const double *v, double h,
                           double *work);

double hessian_step(const surface *s, const double *weights); /* a ten-thousandth of their length; 1e-4 for none */

/* Eigenvalues, largest first, and vectors (row k belongs to value k) of a symmetric n x n matrix by
 * Jacobi rotations; overwrites the matrix. */
void symmetric_eigen(double *matrix, size_t n, double *values, double *vectors);

#endif
