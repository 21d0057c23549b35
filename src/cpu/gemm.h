/* gemm.h - the only interface to a matrix library. SPDX-License-Identifier: MIT
 *
 * Row-major, C = alpha op(A) op(B) + beta C, on the calling thread alone. Callers parallelise: they
 * divide a product into blocks that depend on its size only, so the number of threads never changes
 * a bit. */
#ifndef CPU_GEMM_H
#define CPU_GEMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct gemm_matrix {
    const float *data;
    int64_t stride; /* between rows as stored */
    int transposed; /* op(A) is the transpose of the stored matrix */
} gemm_matrix;

/* op(A) is m x k, op(B) is k x n, C is m x n with `stride` between rows. */
void gemm(int64_t m, int64_t n, int64_t k, float alpha, gemm_matrix a, gemm_matrix b, float beta, float *c,
          int64_t stride);

/* Bytes that the library allocates during such a call and frees at its end: for the memory plan. An
 * upper bound for version 2.6 on AVX-512, where it was observed; elsewhere an estimate. */
size_t gemm_scratch(int64_t m, int64_t n, int64_t k, int a_transposed, gemm_matrix b);

/* Tuning by measurements of whole steps. oneDNN reads both matrices in place, so that small blocks
 * of rows cost nothing, unless op(B) is a transpose; then, and in OpenBLAS always, each call packs
 * B. GEMM_LEAST: the fewest rows of an efficient block, a multiple of its kernel's eight. */
#ifdef BERLU_BLAS_OPENBLAS
enum { GEMM_TURN = 0, GEMM_LEAST = 320 };
#else
enum { GEMM_TURN = 1, GEMM_LEAST = 40 };
#endif

/* Products block signals in the calling thread (gemm.c). A program whose threads all block them
 * anyway, or that has no handler for any signal from outside, declares so here, once, before the
 * first product. */
void gemm_expect_no_handlers(void);

/* Under a limit of memory (ulimit -v): lets the library generate its code now, or fails for lack
 * of memory. Later, in the first product, that would end the process: oneDNN 2.6 writes to a page
 * it did not get. */
berlu_status gemm_prepare(void);

const char *gemm_library(void); /* "oneDNN 2.6.3" */

#endif
