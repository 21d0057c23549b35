/* hessian.c - Lanczos over differences of gradients, and Jacobi's method for its small matrix.
 * SPDX-License-Identifier: MIT
 *
 * hessian.h says what is computed and how far it may be off. Read hessian_largest(): extend() adds
 * a vector to the basis, ritz_pairs() takes the eigenvalues of the projected matrix, ritz_error()
 * measures each of them again at half the step. */
#include "analyze/hessian.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/svd.h"
#include "base/arena.h"
#include "simd/normal.h"

/* ---- a small symmetric matrix ---------------------------------------------------------------- */

/* Annihilates element (p, q): rows and columns of the matrix, rows of the vectors. */
static void annihilate(double *a, double *vectors, size_t n, size_t p, size_t q)
{
    double off = a[p * n + q];
    if (off == 0)
        return;
    double theta = (a[q * n + q] - a[p * n + p]) / (2 * off);
    double t = copysign(1, theta) / (fabs(theta) + hypot(1, theta)), c = 1 / sqrt(1 + t * t), s = c * t;
    for (size_t k = 0; k < n; k++) {
        double x = a[k * n + p], y = a[k * n + q];
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for (size_t k = 0; k < n; k++) {
        double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
        x = vectors[p * n + k], y = vectors[q * n + k];
        vectors[p * n + k] = c * x - s * y;
        vectors[q * n + k] = s * x + c * y;
    }
}

static double off_diagonal(const double *a, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            sum += i == k ? 0 : a[i * n + k] * a[i * n + k];
    return sum;
}

void symmetric_eigen(double *matrix, size_t n, double *values, double *vectors)
{
    double whole = dot_product(matrix, matrix, n * n);
    memset(vectors, 0, n * n * sizeof *vectors);
    for (size_t i = 0; i < n; i++)
        vectors[i * n + i] = 1;
    for (int sweep = 0; sweep < 60 && off_diagonal(matrix, n) > whole * DBL_EPSILON * DBL_EPSILON; sweep++)
        for (size_t p = 0; p + 1 < n; p++)
            for (size_t q = p + 1; q < n; q++)
                annihilate(matrix, vectors, n, p, q);
    for (size_t i = 0; i < n; i++)
        values[i] = matrix[i * n + i];
    for (size_t i = 0; i < n; i++) /* sort, vectors along */
        for (size_t k = i + 1; k < n; k++)
            if (values[k] > values[i]) {
                double swap = values[i];
                values[i] = values[k], values[k] = swap;
                for (size_t c = 0; c < n; c++) {
                    swap = vectors[i * n + c];
                    vectors[i * n + c] = vectors[k * n + c], vectors[k * n + c] = swap;
                }
            }
}

/* ---- the Hessian times a vector -------------------------------------------------------------- */

double hessian_step(const surface *s, const double *weights)
{
    double length = sqrt(dot_product(weights, weights, s->count));
    return length > 0 ? 1e-4 * length : 1e-4;
}

berlu_status hessian_times(double *out, const surface *s, const double *weights, const double *v, double h,
                           double *work)
{
    double *moved = work, *behind = work + s->count, loss;
    for (int side = -1; side <= 1; side += 2) {
        for (size_t i = 0; i < s->count; i++)
            moved[i] = weights[i] + side * h * v[i];
        TRY(s->evaluate(s->context, moved, &loss, side < 0 ? behind : out));
    }
    for (size_t i = 0; i < s->count; i++)
        out[i] = (out[i] - behind[i]) / (2 * h);
    return BERLU_OK;
}

/* ---- Lanczos --------------------------------------------------------------------------------- */

typedef struct lanczos {
    const surface *s;
    const double *weights;
    const hessian_options *o;
    size_t most, made;           /* vectors allocated; in use */
    double *basis, *next, *work; /* most, one and two vectors */
    double *diagonal, *beside;   /* of the tridiagonal matrix, `most` each */
    double h;
    size_t gradients;
} lanczos;

static double *vector(const lanczos *l, size_t i)
{
    return l->basis + i * l->s->count;
}

static berlu_status times(lanczos *l, double *out, const double *v, double h)
{
    TRY(hessian_times(out, l->s, l->weights, v, h, l->work));
    l->gradients += 2;
    if (l->o->tick)
        l->o->tick(l->o->context, l->gradients);
    return BERLU_OK;
}

static void add_multiple(double *to, const double *v, double factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += factor * v[i];
}

/* Normal draws: no direction is preferred. */
static void first_vector(const lanczos *l)
{
    double *v = vector(l, 0);
    for (size_t i = 0; i < l->s->count; i++)
        v[i] = normal_of_word(philox_draw(l->o->seed, PURPOSE_ANALYZE, UINT32_MAX, i, 0).w[0]);
    double length = sqrt(dot_product(v, v, l->s->count));
    for (size_t i = 0; i < l->s->count; i++)
        v[i] /= length;
}

/* One step. The space is exhausted when only rounding is left of the new vector. */
static berlu_status extend(lanczos *l, int *exhausted)
{
    size_t k = l->made - 1, n = l->s->count;
    TRY(times(l, l->next, vector(l, k), l->h));
    double before = sqrt(dot_product(l->next, l->next, n));
    l->diagonal[k] = dot_product(l->next, vector(l, k), n);
    for (int twice = 0; twice < 2; twice++) /* the second pass removes the rounding of the first */
        for (size_t i = 0; i <= k; i++)
            add_multiple(l->next, vector(l, i), -dot_product(l->next, vector(l, i), n), n);
    double length = sqrt(dot_product(l->next, l->next, n));
    *exhausted = !(length > 1e-10 * before);
    l->beside[k] = length;
    if (*exhausted || l->made == l->most)
        return BERLU_OK;
    for (size_t i = 0; i < n; i++)
        vector(l, l->made)[i] = l->next[i] / length;
    l->made++;
    return BERLU_OK;
}

/* The error of one Ritz pair; `part` is the eigenvector of the tridiagonal matrix. */
static berlu_status ritz_error(lanczos *l, eigenvalue *out, const double *part, double *y)
{
    size_t n = l->s->count;
    memset(y, 0, n * sizeof *y);
    for (size_t i = 0; i < l->made; i++)
        add_multiple(y, vector(l, i), part[i], n);
    TRY(times(l, l->next, y, l->h / 2));
    add_multiple(l->next, y, -out->value, n);
    out->error = sqrt(dot_product(l->next, l->next, n));
    return BERLU_OK;
}

static berlu_status ritz_pairs(lanczos *l, eigenvalue *out, size_t *found)
{
    size_t m = l->made, n = l->s->count;
    double *small = calloc(2 * m * m + m + n, sizeof *small);
    if (!small)
        return berlu_fail_memory((2 * m * m + m + n) * sizeof *small, "Ritz vectors");
    double *vectors = small + m * m, *values = vectors + m * m, *y = values + m;
    for (size_t i = 0; i < m; i++) {
        small[i * m + i] = l->diagonal[i];
        if (i + 1 < m)
            small[i * m + i + 1] = small[(i + 1) * m + i] = l->beside[i];
    }
    symmetric_eigen(small, m, values, vectors);
    *found = l->o->wanted < m ? l->o->wanted : m;
    berlu_status status = BERLU_OK;
    for (size_t i = 0; status == BERLU_OK && i < *found; i++) {
        out[i].value = values[i];
        status = ritz_error(l, &out[i], vectors + i * m, y);
    }
    free(small);
    return status;
}

berlu_status hessian_largest(eigenvalue *out, size_t *found, const surface *s, const double *weights,
                             const hessian_options *o)
{
    lanczos l = {.s = s, .weights = weights, .o = o, .most = o->steps < s->count ? o->steps : s->count, .made = 1};
    size_t numbers, bytes;
    assert(o->wanted >= 1 && o->steps >= o->wanted && s->count > 0);
    l.h = o->step > 0 ? o->step : hessian_step(s, weights);
    if (!size_mul(l.most + 3, s->count, &numbers) || !size_mul(numbers + 2 * l.most, sizeof(double), &bytes))
        bytes = 0;
    l.basis = bytes ? malloc(bytes) : NULL;
    if (!l.basis)
        return berlu_fail_memory(bytes, "the vectors of Lanczos (fewer --steps need less)");
    l.next = vector(&l, l.most);
    l.work = l.next + s->count;
    l.diagonal = l.work + 2 * s->count;
    l.beside = l.diagonal + l.most;
    first_vector(&l);
    berlu_status status;
    for (int over = 0; !over;) {
        size_t before = l.made;
        TRY_DONE(extend(&l, &over));
        over |= l.made == before; /* exhausted, or as many as wanted */
    }
    status = ritz_pairs(&l, out, found);
done:
    free(l.basis);
    return status;
}
