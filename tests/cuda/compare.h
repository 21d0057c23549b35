/* compare.h - two engines over one case, gradient by gradient. SPDX-License-Identifier: MIT */
#ifndef TESTS_CUDA_COMPARE_H
#define TESTS_CUDA_COMPARE_H

#include <math.h>
#include <stdlib.h>

#include "graph/cases.h"

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

/* Each array of `got` within `own` of its norm, plus `share` of the largest norm of all (for gradients that cancel, such as
 * those of key biases). Both 0: equal bits. */
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
