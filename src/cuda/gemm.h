/* gemm.h - a matrix product by cuBLASLt, row-major. SPDX-License-Identifier: MIT */
#ifndef CUDA_GEMM_H
#define CUDA_GEMM_H

#include "cuda/device.h"

/* y[rows, columns] = sum over depth of a(row, i) b(column, i), + bias[column] + residual[row,
 * column]. a is stored [rows, depth], or [depth, rows] where a_by_depth; b likewise with columns.
 * y, bias and residual share a dtype; residual may be y. */
typedef struct gemm_call {
    int64_t rows, columns, depth;
    const void *a, *b, *bias, *residual; /* bias and residual may be NULL */
    void *y;
    int a_by_depth, b_by_depth;
    int in_bf16, out_bf16; /* else f32 */
} gemm_call;

/* Puts the product on the device's stream. 0: the library has nothing for it, and nothing was done.
 * A failure is kept by the device and gives 1, for there is nothing left to do. */
int cuda_gemm(const op_call *c, const gemm_call *g);

#endif
