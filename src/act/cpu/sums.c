/* sums.c - see sums.h. SPDX-License-Identifier: MIT
 *
 * Columns are joined in stripes, so that the tree is traversed once per stripe and the additions of
 * its columns are independent. The recursion is as deep as the logarithm of the number of
 * blocks. */
#include "act/cpu/sums.h"

enum { STRIPE = 64 };

static void stripe_join(double *out, const float *partial, size_t blocks, size_t channels, size_t width)
{
    if (blocks == 1) {
        for (size_t c = 0; c < width; c++)
            out[c] = (double)partial[c];
        return;
    }
    size_t half = 1;
    while (half * 2 < blocks)
        half *= 2;
    double right[STRIPE];
    stripe_join(out, partial, half, channels, width);
    stripe_join(right, partial + half * channels, blocks - half, channels, width);
    for (size_t c = 0; c < width; c++)
        out[c] += right[c];
}

void columns_join(float *out, const float *partial, size_t blocks, size_t channels)
{
    for (size_t c = 0; c < channels; c += STRIPE) {
        size_t width = channels - c < STRIPE ? channels - c : STRIPE;
        double sum[STRIPE] = {0};
        if (blocks > 0)
            stripe_join(sum, partial + c, blocks, channels, width);
        for (size_t i = 0; i < width; i++)
            out[c + i] = (float)sum[i];
    }
}
