/* weight.h - the weight of y = x W^T and of dx = dy W, as the products of a call read it.
 * SPDX-License-Identifier: MIT
 *
 * Models store W by outputs, so a forward product reads its transpose, and a library packs that
 * again for every block of rows. Where that is slow (gemm.h), all threads together transpose W into
 * the workspace at the beginning of a call, and the blocks read it there. This costs 1 % of a
 * product with a thousand rows.
 *
 * oneDNN reads op(B) in place, a few columns of all rows at a time. With 1536 floats a row these
 * lines fall into few sets of the first cache and evict each other: with AVX2 80 instead of 113
 * GFLOP/s. So rows of W^T are an odd number of cache lines apart, and where those of W are not, dx
 * reads a copy. */
#ifndef CPU_WEIGHT_H
#define CPU_WEIGHT_H

#include "cpu/gemm.h"
#include "engine/backend.h"

size_t weight_bytes(const op_call *c);       /* of that copy at the beginning of the workspace; 0: W is read in place */
void weight_copy(const op_call *c);          /* by all threads of a parallel region, which leave it together */
gemm_matrix weight_matrix(const op_call *c); /* op(B) of a block's product, forward or dx */

#endif
