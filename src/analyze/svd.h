/* svd.h - the singular values of a matrix. SPDX-License-Identifier: MIT
 *
 * One-sided Jacobi rotations (Hestenes 1958) in double. The shorter side gives the vectors; where
 * the matrix is not square they are first reduced to the triangle of a QR factorisation, on which
 * the rotations cost less and converge in fewer sweeps. The error of every value is a few ulp of
 * the largest one. No LAPACK: the weights of our networks are small, and the same bits come out
 * on every machine. */
#ifndef ANALYZE_SVD_H
#define ANALYZE_SVD_H

#include <stddef.h>

#include "base/status.h"

/* Writes the min(rows, columns) singular values of a row-major matrix, largest first. An element
 * that is not finite makes all of them NaN. */
berlu_status singular_values(double *out, const float *matrix, size_t rows, size_t columns);

/* The sum of a[i] b[i] in 8 lanes: an order that no machine changes. */
double dot_product(const double *a, const double *b, size_t count);

#endif
