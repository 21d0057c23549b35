/* blocks.c - adds the partial sums of blocks. SPDX-License-Identifier: MIT */
#include "cpu/blocks.h"

#include <string.h>

enum { COLUMNS = 128 };

/* The tree splits at the largest power of two below the count. Its depth is at most 40, so the
 * stack holds it. */
static void tree_join(double *sum, const float *part, int64_t count, int64_t stride, int64_t n)
{
    if (count == 1) {
        for (int64_t j = 0; j < n; j++)
            sum[j] = part[j];
        return;
    }
    int64_t half = 1;
    while (half * 2 < count)
        half *= 2;
    double right[COLUMNS];
    tree_join(sum, part, half, stride, n);
    tree_join(right, part + half * stride, count - half, stride, n);
    for (int64_t j = 0; j < n; j++)
        sum[j] += right[j];
}

void partials_join(float *out, const float *part, int64_t count, int64_t stride, int64_t n)
{
    for (int64_t at = 0; at < n; at += COLUMNS) {
        double sum[COLUMNS];
        int64_t wide = n - at < COLUMNS ? n - at : COLUMNS;
        tree_join(sum, part + at, count, stride, wide);
        for (int64_t j = 0; j < wide; j++)
            out[at + j] = (float)sum[j];
    }
}
