/* gemm.c - oneDNN or OpenBLAS behind gemm.h, as BERLU_BLAS says. SPDX-License-Identifier: MIT
 *
 * Both libraries would use threads of their own, and the bits of a product would depend on their
 * number. oneDNN is serial inside a parallel region of several threads. A region of one does not
 * count, so there we set the number of threads to one, within a region of our own that limits the
 * scope of the setting. OpenBLAS is set once per call: it keeps the number in a global, and setting
 * the same value again costs nothing.
 *
 * oneDNN's products are generated at run time and point the stack pointer into heap memory while
 * they compute, so a signal handler of the host (Python, R, MPI, a profiler) would overwrite heap
 * memory with its frame: the calling thread blocks signals meanwhile (docs/reliability.md has the
 * cost). OpenBLAS is compiled code that keeps to its stack. The command has no handlers and
 * declares so, since a small product takes only some tens of times as long as the two system
 * calls. */
#include "cpu/gemm.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include <omp.h>

#include "base/signals.h"

static atomic_int no_handlers; /* of the whole process, as signal handlers are */

void gemm_expect_no_handlers(void)
{
    atomic_store(&no_handlers, 1);
}

#ifdef BERLU_BLAS_OPENBLAS
#include <cblas.h>

static void product(int64_t m, int64_t n, int64_t k, float alpha, gemm_matrix a, gemm_matrix b, float beta, float *c,
                    int64_t stride)
{
    openblas_set_num_threads(1);
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
                (int)m, (int)n, (int)k, alpha, a.data, (int)a.stride, b.data, (int)b.stride, beta, c, (int)stride);
}

size_t gemm_scratch(int64_t m, int64_t n, int64_t k, int a_transposed, gemm_matrix b)
{
    (void)m, (void)n, (void)k, (void)a_transposed, (void)b;
    return 0; /* it allocates its buffers once, when the library is loaded */
}

const char *gemm_library(void)
{
    return OPENBLAS_VERSION;
}

berlu_status gemm_prepare(void)
{
    return BERLU_OK; /* compiled code */
}
#else
#include <oneapi/dnnl/dnnl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static void product(int64_t m, int64_t n, int64_t k, float alpha, gemm_matrix a, gemm_matrix b, float beta, float *c,
                    int64_t stride)
{
    sigset_t before;
    int exposed = !atomic_load_explicit(&no_handlers, memory_order_relaxed);
    if (exposed)
        signals_block(&before);
    dnnl_status_t status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data,
                                      a.stride, b.data, b.stride, beta, c, stride);
    if (exposed)
        signals_restore(&before);
    /* Without memory for its buffers oneDNN computes nothing. NaN reaches the loss, which ends the
     * run with its last checkpoint kept; stale values would be trained on. */
    for (int64_t i = 0; status != dnnl_success && i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * stride + j] = NAN;
}

static int64_t round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

/* It reads both matrices in place and needs at most 72 KiB, with two exceptions: x W^T with k a
 * multiple of 256 or few rows, and an op(B) as stored with a row stride that is a multiple of 1024.
 * Then it packs both into buffers, 384 deep and up to 9984 of n wide. Derived from a log of its
 * allocations. Most weights are transposed beforehand, to another stride (weight.h). */
size_t gemm_scratch(int64_t m, int64_t n, int64_t k, int a_transposed, gemm_matrix b)
{
    enum { DEPTH = 384, ROWS = 384, WIDTH = 9984, PAGES = 5 * 4096, IN_PLACE = 72 << 10 };
    int few = m < 200 && n < 1200 && k < 1200, turns = !a_transposed && b.transposed;
    if (m <= 8 || (turns ? n <= 100 || !(few || k % 256 == 0) : b.stride % 1024 || (!a_transposed && m <= 100)))
        return IN_PLACE;
    int64_t deep = k <= DEPTH ? (k < 128 ? 128 : k) : k < 2 * DEPTH ? (k + 1) / 2 : DEPTH;
    int64_t wide = n < WIDTH ? round_up(n, 48) : WIDTH;
    return (size_t)((wide + round_up(m < ROWS ? m : ROWS, 8)) * deep) * sizeof(float) + PAGES;
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
    {
        omp_set_num_threads(1);
        product(m, n, k, alpha, a, b, beta, c, stride);
    }
}

#ifndef BERLU_BLAS_OPENBLAS
/* One product of each kind makes it generate everything: 18 MB, to which none of 36 other shapes
 * added. */
berlu_status gemm_prepare(void)
{
    enum { NEEDED = 32 << 20 };
    struct rlimit space, data;
    if (getrlimit(RLIMIT_AS, &space) != 0 || getrlimit(RLIMIT_DATA, &data) != 0 ||
        (space.rlim_cur == RLIM_INFINITY && data.rlim_cur == RLIM_INFINITY))
        return BERLU_OK;
    void *probe = mmap(NULL, NEEDED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED)
        return berlu_fail_memory(NEEDED, "the code of matrix products");
    munmap(probe, NEEDED);
    float a[4] = {0}, b[4] = {0}, c[4];
    for (int kind = 0; kind < 4; kind++)
        gemm(2, 2, 2, 1, (gemm_matrix){a, 2, kind & 1}, (gemm_matrix){b, 2, kind >> 1}, 0, c, 2);
    return BERLU_OK;
}
#endif
