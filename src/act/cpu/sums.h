/* sums.h - joins partial sums by a fixed binary tree in double. SPDX-License-Identifier: MIT
 *
 * The tree depends on the number of blocks alone: halves are split at the largest power of two
 * below the count, as in tree_sum() of base/threads.h. */
#ifndef ACT_CPU_SUMS_H
#define ACT_CPU_SUMS_H

#include <stddef.h>

/* out[c] = the sum over `blocks` rows of partial[block * channels + c]. */
void columns_join(float *out, const float *partial, size_t blocks, size_t channels);

#endif
