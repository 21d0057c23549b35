/* simd_kernels.c - one table per instruction set; compiled for each.
 * SPDX-License-Identifier: MIT */
#include "cpu/simd_internal.h"

const simd_kernels SIMD_TABLE = {
    .isa = V_ISA_TEXT,
    .width = V_LANES,
    .norm_rows = SIMD_FN(norm_rows),
    .norm_grad_rows = SIMD_FN(norm_grad_rows),
    .finish_rows = SIMD_FN(finish_rows),
    .column_sums = SIMD_FN(column_sums),
    .add = SIMD_FN(add),
    .scale_rows = SIMD_FN(scale_rows),
    .scale_grad_rows = SIMD_FN(scale_grad_rows),
    .softmax_columns = SIMD_FN(softmax_columns),
    .weights_columns = SIMD_FN(weights_columns),
    .softmax_grad_columns = SIMD_FN(softmax_grad_columns),
    .product = SIMD_FN(product),
    .transpose = SIMD_FN(transpose),
    .heads_forward = SIMD_FN(heads_forward),
    .heads_backward = SIMD_FN(heads_backward),
    .depthwise = SIMD_FN(depthwise),
    .depthwise_dw = SIMD_FN(depthwise_dw),
    .adamw = SIMD_FN(adamw),
    .square_sum = SIMD_FN(square_sum),
};
