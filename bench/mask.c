/* mask.c - the cost of keeping signals away from a product. SPDX-License-Identifier: MIT
 *
 *     cmake --build build --target bench_mask && build/bench/bench_mask
 *
 * Times a pair of calls that block and restore the mask, then products of the shapes that a
 * training step of vit_micro and of vit_tiny_cifar is made of, without that. The least of many
 * short rounds, so that a busy machine changes little; one thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/signals.h"
#include "base/status.h"
#include "cpu/gemm.h"

enum { ROUNDS = 1000 };

static double pair_seconds(void)
{
    enum { PAIRS = 100 };
    double least = 1;
    for (int r = 0; r < ROUNDS; r++) {
        double begin = clock_seconds();
        for (int i = 0; i < PAIRS; i++) {
            sigset_t before;
            signals_block(&before);
            signals_restore(&before);
        }
        least = fmin(least, (clock_seconds() - begin) / PAIRS);
    }
    return least;
}

static double product_seconds(const int64_t shape[3], float *data)
{
    double least = 1;
    int64_t m = shape[0], n = shape[1], k = shape[2];
    for (int r = 0; r < ROUNDS; r++) {
        double begin = clock_seconds();
        gemm(m, n, k, 1, (gemm_matrix){data, k, 0}, (gemm_matrix){data + m * k, n, 0}, 0, data + m * k + k * n, n);
        least = fmin(least, clock_seconds() - begin);
    }
    return least;
}

int main(void)
{
    static const int64_t shapes[][3] = {
        {136, 64, 64}, {544, 64, 64}, {544, 256, 64}, {260, 192, 192}, {1040, 768, 192}};
    float *data = calloc(1 << 22, sizeof *data);
    if (!data)
        return 1;
    gemm_expect_no_handlers(); /* the product alone */
    double pair = pair_seconds();
    printf("blocking and restoring the mask: %.2f us\n%22s %12s %8s\n", pair * 1e6, "rows x outputs x inputs",
           "product", "share");
    for (size_t i = 0; i < COUNT(shapes); i++) {
        double product = product_seconds(shapes[i], data);
        printf("%10lld x %4lld x %4lld %9.1f us %6.2f %%\n", (long long)shapes[i][0], (long long)shapes[i][1],
               (long long)shapes[i][2], product * 1e6, 100 * pair / product);
    }
    free(data);
    return 0;
}
