/* gemm.h - the one door to a matrix library. SPDX-License-Identifier: MIT
 *
 * Row-major, C = alpha op(A) op(B) + beta C, on the calling thread alone. Threads are the callers' business: they cut a product
 * into blocks that depend on its size only, so the number of threads never changes a bit. */
#ifndef CPU_GEMM_H
#define CPU_GEMM_H

#include <stddef.h>
#include <stdint.h>

typedef struct gemm_matrix {
    const float *data;
    int64_t stride; /* between rows as stored */
    int transposed; /* op(A) is the transpose of what is stored */
} gemm_matrix;

/* op(A) is m x k, op(B) is k x n, C is m x n with `stride` between rows. */
void gemm(int64_t m, int64_t n, int64_t k, float alpha, gemm_matrix a, gemm_matrix b, float beta, float *c,
          int64_t stride);

/* Bytes that the library allocates during such a call and frees at its end: for the plan of memory. An upper bound of what its
 * version 2.6 does on AVX-512, where it was observed; elsewhere an estimate. */
size_t gemm_scratch(int64_t m, int64_t n, int64_t k, int a_transposed, gemm_matrix b);

/* What the library likes, from measurements of whole steps. oneDNN reads both matrices where they lie, so that small blocks of rows
 * cost nothing, unless op(B) is a transpose; then, and in OpenBLAS always, each call copies B. GEMM_LEAST: rows of a block that are
 * still fast, a multiple of its kernel's eight. */
#ifdef BERLU_BLAS_OPENBLAS
enum { GEMM_TURN = 0, GEMM_LEAST = 320 };
#else
enum { GEMM_TURN = 1, GEMM_LEAST = 40 };
#endif

/* Products keep signals away from the calling thread (gemm.c). A program whose threads all block them anyway, or that has no
 * handler for any signal from outside, says so here, once, before the first product. */
void gemm_expect_no_handlers(void);

const char *gemm_library(void); /* "oneDNN 2.6.3" */

#endif
