/* compare.h - two engines over one case, gradient by gradient. SPDX-License-Identifier: MIT */
#ifndef TESTS_CUDA_COMPARE_H
#define TESTS_CUDA_COMPARE_H

#include <math.h>
#include <stdlib.h>

#include "graph/cases.h"

/* How far gradients may be off: `own` of their norm and `share` of the largest norm in the network
 * (for gradients that cancel, such as those of key biases); and the loss.
 *
 * f32: a network of these sizes adds at most a few hundred products per element, so a gradient is
 * off by some 1e-6 of its norm; the bound is ten times that and far below any mistake. TF32 rounds
 * the inputs of a product to 11 bits, so a product is off by less than 1e-3; five products lie
 * between a parameter and its gradient. bf16 rounds every tensor of a branch to 8 bits, 2^-9 of an
 * element; at most thirty such tensors lie on the way of a gradient: 0.06 of its norm. A rounded
 * input may fall on the other side of an activation's kink; one of the 84 elements of the smallest
 * site changes its gradient by 1 / sqrt(84) = 0.11 of its norm. Wrong operands, missing terms and
 * wrong signs are off by 1. */
typedef struct bounds {
    double loss, own, share;
} bounds;
static const bounds within_f32 = {2e-6, 1e-5, 2e-7}, within_tf32 = {1e-3, 5e-3, 1e-3}, within_bf16 = {0.03, 0.17, 0.03};

static inline double *array_get(prepared *p, engine_array array, int parameter, int64_t *count)
{
    *count = tensor_elements(graph_tensor(p->g, graph_param(p->g, parameter)));
    double *values = malloc((size_t)*count * sizeof *values);
    assert_int_equal(engine_get_f64(p->e, array, parameter, values), BERLU_OK);
    return values;
}

static inline double norm_of(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (a[i] - (b ? b[i] : 0)) * (a[i] - (b ? b[i] : 0));
    return sqrt(sum);
}

/* Both 0: equal bits. */
static inline void arrays_compare(const char *name, engine_array array, prepared *got, prepared *want, double own,
                                  double share)
{
    double largest = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < graph_param_count(got->g); i++) {
            int64_t count;
            double *a = array_get(got, array, i, &count), *b = array_get(want, array, i, &count);
            double size = norm_of(b, NULL, count), off = norm_of(a, b, count);
            largest = size > largest ? size : largest;
            if (pass == 1 && !(off <= own * size + share * largest))
                fail_msg("%s: %s is off by %g of %g (largest %g)", name,
                         graph_tensor(got->g, graph_param(got->g, i))->name, off, size, largest);
            free(a);
            free(b);
        }
}

#endif
