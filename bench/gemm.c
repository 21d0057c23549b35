/* gemm.c - bench_gemm: the matrix libraries of this machine side by side, shape by shape.
 * SPDX-License-Identifier: MIT
 *
 *     bench_gemm [SECONDS]    one thread, f32; GFLOP/s of the fastest call for each shape
 *
 * The shapes are the products of a ViT-Tiny/4 step with 32 images as the engine calls them: blocks
 * of rows for y and dx, all rows for dW. oneDNN, OpenBLAS and BLIS are loaded at run time, those
 * that are installed, and each round calls every one once, in an order that rotates. A library is
 * limited to an instruction set by its own variable: DNNL_MAX_CPU_ISA=AVX2,
 * OPENBLAS_CORETYPE=Haswell (or Zen), BLIS_ARCH_TYPE=zen3. docs/performance.md has the results and
 * the decision that follows from them. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112, LIBRARIES = 3, ROUNDS_LEAST = 5 };

typedef int (*dnnl_fn)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t,
                       float, float *, int64_t);
typedef void (*cblas_fn)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                         int);

typedef struct library {
    const char *name, *file, *symbol, *threads; /* `threads` is its function that sets their number */
    dnnl_fn dnnl;
    cblas_fn cblas;
} library;

static library libraries[LIBRARIES] = {
    {.name = "oneDNN", .file = "libdnnl.so.2", .symbol = "dnnl_sgemm", .threads = "omp_set_num_threads"},
    {.name = "OpenBLAS", .file = "libopenblas.so.0", .symbol = "cblas_sgemm", .threads = "openblas_set_num_threads"},
    {.name = "BLIS", .file = "libblis.so.4", .symbol = "cblas_sgemm", .threads = "bli_thread_set_num_threads"},
};

typedef struct shape {
    const char *what;
    int m, n, k, a_transposed, b_transposed;
} shape;

/* 32 images of 65 tokens are 2080 rows; 160 is a block of them. */
static const shape shapes[] = {
    {"y, 192 -> 576", 160, 576, 192, 0, 0},  {"y, 192 -> 192", 160, 192, 192, 0, 0},
    {"y, 192 -> 768", 160, 768, 192, 0, 0},  {"y, 768 -> 192", 160, 192, 768, 0, 0},
    {"y, W as stored", 160, 768, 192, 0, 1}, {"dx, 576 -> 192", 160, 192, 576, 0, 0},
    {"dx, 768 -> 192", 160, 192, 768, 0, 0}, {"dx, 192 -> 768", 160, 768, 192, 0, 0},
    {"dW, 576 x 192", 576, 192, 2080, 1, 0}, {"dW, 192 x 192", 192, 192, 2080, 1, 0},
    {"dW, 768 x 192", 768, 192, 2080, 1, 0}, {"dW, 192 x 768", 192, 768, 2080, 1, 0},
};

static int library_load(library *l)
{
    void *file = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    void *call = file ? dlsym(file, l->symbol) : NULL;
    if (!call)
        return 0;
    void *threads = dlsym(file, l->threads);
    if (threads)
        ((void (*)(int))(uintptr_t)threads)(1);
    if (l == &libraries[0])
        l->dnnl = (dnnl_fn)(uintptr_t)call;
    else
        l->cblas = (cblas_fn)(uintptr_t)call;
    return 1;
}

static void multiply(const library *l, const shape *s, const float *a, const float *b, float *c)
{
    int lda = s->a_transposed ? s->m : s->k, ldb = s->b_transposed ? s->k : s->n;
    if (l->dnnl)
        l->dnnl(s->a_transposed ? 'T' : 'N', s->b_transposed ? 'T' : 'N', s->m, s->n, s->k, 1, a, lda, b, ldb, 0, c,
                s->n);
    else
        l->cblas(ROW_MAJOR, s->a_transposed ? TRANSPOSED : AS_IS, s->b_transposed ? TRANSPOSED : AS_IS, s->m, s->n,
                 s->k, 1, a, lda, b, ldb, 0, c, s->n);
}

static void shape_run(const shape *s, const int *here, double seconds, const float *a, const float *b, float *c)
{
    double least[LIBRARIES] = {INFINITY, INFINITY, INFINITY}, flops = 2.0 * s->m * s->n * s->k;
    double end = clock_seconds() + seconds;
    for (int r = 0; r < ROUNDS_LEAST || clock_seconds() < end; r++)
        for (int i = 0; i < LIBRARIES; i++) {
            int l = (i + r) % LIBRARIES;
            if (!here[l])
                continue;
            double start = clock_seconds();
            multiply(&libraries[l], s, a, b, c);
            least[l] = fmin(least[l], clock_seconds() - start);
        }
    printf("%-16s %4d x %4d x %4d", s->what, s->m, s->n, s->k);
    for (int l = 0; l < LIBRARIES; l++)
        if (here[l])
            printf("  %s %6.1f", libraries[l].name, flops / least[l] * 1e-9);
    printf("\n");
}

int main(int count, char **args)
{
    enum { MOST = 2080 * 768 };
    double seconds = count > 1 ? atof(args[1]) : 0.5;
    int here[LIBRARIES];
    float *a = malloc(MOST * sizeof *a), *b = malloc(MOST * sizeof *b), *c = malloc(MOST * sizeof *c);
    if (!a || !b || !c)
        return fputs("bench_gemm: no memory\n", stderr), 1;
    for (size_t i = 0; i < MOST; i++) {
        a[i] = (float)(i * 7919 % 2003) / 1001 - 1;
        b[i] = (float)(i * 104729 % 1999) / 999 - 1;
        c[i] = 0;
    }
    for (int l = 0; l < LIBRARIES; l++)
        here[l] = library_load(&libraries[l]);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        shape_run(&shapes[i], here, seconds, a, b, c);
    free(a);
    free(b);
    free(c);
    return 0;
}
