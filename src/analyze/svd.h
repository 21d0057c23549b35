/* svd.h - the singular values of a matrix. SPDX-License-Identifier: MIT
 *
 * One-sided Jacobi rotations (Hestenes 1958) in double. The shorter side gives the vectors; a
 * matrix that is not square is first reduced to the triangle of a QR factorisation, on which the
 * rotations cost less and converge in fewer sweeps. The error of every value is a few ulp of the
 * largest one. No LAPACK: the weights of our networks are small, and every machine computes the
 * same bits. */
#ifndef ANALYZE_SVD_H
#define ANALYZE_SVD_H

#include <stddef.h>

#include "base/status.h"

/* Writes the min(rows, columns) singular values of a row-major matrix, largest first. An element
 * that is not finite makes all of them NaN. */
berlu_status singular_values(double *out, const float *matrix, size_t rows, size_t columns);

/* The sum of a[i] b[i] in 8 partial sums: an order independent of the machine. */
double dot_product(const double *a, const double *b, size_t count);

#endif
