/* svd.c - QR by Gram-Schmidt, then Jacobi rotations of pairs of rows until all are orthogonal.
 * SPDX-License-Identifier: MIT
 *
 * svd.h has the method and its error. singular_values() reduces the matrix to a triangle and sweeps
 * over all pairs; the lengths of the vectors are then the singular values. */
#include "analyze/svd.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"

enum { LANES = 8, SWEEPS = 60 }; /* matrices of random weights need 6 to 9 sweeps */

double dot_product(const double *a, const double *b, size_t count)
{
    double sums[LANES] = {0};
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            sums[k] += a[i + k] * b[i + k];
    for (size_t i = whole; i < count; i++)
        sums[i - whole] += a[i] * b[i];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* The n vectors of length m become Q R by modified Gram-Schmidt, whose R is as good as
 * Householder's (Bjorck 1967); row k of R, n numbers, is written to r + k n. */
static void triangle(double *r, double *vectors, size_t n, size_t m)
{
    for (size_t k = 0; k < n; k++) {
        double *q = vectors + k * m, length = sqrt(dot_product(q, q, m));
        r[k * n + k] = length;
        for (size_t i = 0; i < m && length > 0; i++)
            q[i] /= length;
        for (size_t j = k + 1; j < n; j++) {
            double *v = vectors + j * m, along = dot_product(q, v, m);
            r[k * n + j] = along;
            for (size_t i = 0; i < m; i++)
                v[i] -= along * q[i];
        }
    }
}

/* Rotates two vectors until they are orthogonal; 0 where they are already. */
static int rotate(double *p, double *q, size_t m)
{
    double a = dot_product(p, p, m), b = dot_product(q, q, m), c = dot_product(p, q, m);
    if (!(fabs(c) > DBL_EPSILON * sqrt(a) * sqrt(b)))
        return 0;
    double zeta = (b - a) / (2 * c), t = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta));
    double cosine = 1 / sqrt(1 + t * t), sine = cosine * t;
    for (size_t i = 0; i < m; i++) {
        double x = p[i], y = q[i];
        p[i] = cosine * x - sine * y;
        q[i] = sine * x + cosine * y;
    }
    return 1;
}

static void orthogonalize(double *vectors, size_t n, size_t m)
{
    int rotated = 1;
    for (int sweep = 0; rotated && sweep < SWEEPS; sweep++) {
        rotated = 0;
        for (size_t p = 0; p + 1 < n; p++)
            for (size_t q = p + 1; q < n; q++)
                rotated |= rotate(vectors + p * m, vectors + q * m, m);
    }
}

static int larger_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Takes the rows or the columns as vectors, whichever are fewer; false if a number is not finite.
 * */
static int vectors_fill(double *vectors, const float *matrix, size_t rows, size_t columns)
{
    int across = rows <= columns, finite = 1;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++) {
            float value = matrix[i * columns + k];
            vectors[across ? i * columns + k : k * rows + i] = value;
            finite &= isfinite(value) != 0;
        }
    return finite;
}

berlu_status singular_values(double *out, const float *matrix, size_t rows, size_t columns)
{
    size_t n = rows < columns ? rows : columns, m = rows < columns ? columns : rows, first, second, bytes;
    assert(n > 0);
    int fits = size_mul(n, m, &first) && size_mul(n, n, &second) && size_mul(first + second, sizeof(double), &bytes);
    double *vectors = fits ? malloc(bytes) : NULL;
    if (!vectors)
        return berlu_fail_memory(fits ? bytes : SIZE_MAX, "a matrix of weights");
    int finite = vectors_fill(vectors, matrix, rows, columns);
    double *work = vectors;
    if (finite && m > n) {
        work = vectors + first;
        for (size_t i = 0; i < second; i++)
            work[i] = 0;
        triangle(work, vectors, n, m);
        m = n;
    }
    if (finite)
        orthogonalize(work, n, m);
    for (size_t k = 0; k < n; k++)
        out[k] = finite ? sqrt(dot_product(work + k * m, work + k * m, m)) : NAN;
    qsort(out, n, sizeof *out, larger_first);
    free(vectors);
    return BERLU_OK;
}
