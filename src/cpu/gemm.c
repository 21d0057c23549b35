/* gemm.c - oneDNN or OpenBLAS behind gemm.h, chosen at build (BERLU_BLAS). SPDX-License-Identifier: MIT
 *
 * Both libraries would use threads of their own. oneDNN does not when it is called inside a parallel region or with one OpenMP
 * thread; where neither holds we open a region of one thread around the call. OpenBLAS is told so once per call: it keeps
 * the number in a global of its own, and setting the same value twice costs nothing. */
#include "cpu/gemm.h"

#include <stdio.h>

#include <omp.h>

#ifdef BERLU_BLAS_OPENBLAS
#include <cblas.h>

static void product(int64_t m, int64_t n, int64_t k, float alpha, gemm_matrix a, gemm_matrix b, float beta, float *c,
                    int64_t stride)
{
    openblas_set_num_threads(1);
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
                (int)m, (int)n, (int)k, alpha, a.data, (int)a.stride, b.data, (int)b.stride, beta, c, (int)stride);
}

size_t gemm_scratch(int64_t m, int64_t n, int64_t k, int a_transposed, int b_transposed)
{
    (void)m, (void)n, (void)k, (void)a_transposed, (void)b_transposed;
    return 0; /* its buffers are made once, when the library is loaded */
}

const char *gemm_library(void)
{
    return OPENBLAS_VERSION;
}
#else
#include <oneapi/dnnl/dnnl.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static void product(int64_t m, int64_t n, int64_t k, float alpha, gemm_matrix a, gemm_matrix b, float beta, float *c,
                    int64_t stride)
{
    dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.stride, b.data, b.stride,
               beta, c, stride);
}

static int64_t round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

/* It reads both matrices where they lie and needs 72 KiB (16 with AVX2), but for x W^T with strides that are multiples of 256 or few
 * rows: then it copies W and x into buffers, 384 numbers deep. (Rows are at most a few hundred in our blocks, where the other
 * cases of its rule do not apply; and most weights are turned beforehand, weight.h.) */
size_t gemm_scratch(int64_t m, int64_t n, int64_t k, int a_transposed, int b_transposed)
{
    enum { DEPTH = 384, ROWS = 384, PAGES = 5 * 4096, IN_PLACE = 72 << 10 };
    int few = m < 200 && n < 1200 && k < 1200;
    if (a_transposed || !b_transposed || n <= 100 || !(few || k % 256 == 0))
        return IN_PLACE;
    int64_t deep = k <= DEPTH ? (k < 128 ? 128 : k) : k < 2 * DEPTH ? (k + 1) / 2 : DEPTH;
    return (size_t)((round_up(n, 48) + round_up(m < ROWS ? m : ROWS, 8)) * deep) * sizeof(float) + PAGES;
}

const char *gemm_library(void)
{
    return "oneDNN " TEXT(DNNL_VERSION_MAJOR) "." TEXT(DNNL_VERSION_MINOR) "." TEXT(DNNL_VERSION_PATCH);
}
#endif

void gemm(int64_t m, int64_t n, int64_t k, float alpha, gemm_matrix a, gemm_matrix b, float beta, float *c,
          int64_t stride)
{
    if (omp_in_parallel()) {
        product(m, n, k, alpha, a, b, beta, c, stride);
        return;
    }
#pragma omp parallel num_threads(1)
    product(m, n, k, alpha, a, b, beta, c, stride);
}
