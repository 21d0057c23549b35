/* bench_act.h - times activations, interleaved with copy and add. SPDX-License-Identifier: MIT */
#ifndef BENCH_BENCH_ACT_H
#define BENCH_BENCH_ACT_H

#include <berlu/act.h>

typedef struct bench_row {
    const char *act; /* its spec as given */
    berlu_act_op op;
    berlu_dtype dtype;
    berlu_isa isa;
    int cuda; /* 1: on the GPU, where isa, threads and hint have no meaning */
    size_t n;
    int threads;     /* requested; after the run: used */
    berlu_hint hint; /* requested; after a run on the CPU: the kind of stores it used */
    double range;    /* x is uniform in +-range */

    /* results of the run */
    double median_ns, bytes, gb_per_s, ratio;
    const char *yardstick; /* "copy" or "add" */
} bench_row;

/* Times all rows of one size together: each round runs every row and every yardstick once, for
 * about `seconds`. Gradients of the parameters that the activation learns are part of a backward.
 * All rows must have the same n and threads. BERLU_ERR_MEMORY where the arrays are more than `free`
 * bytes; 0: not known. */
berlu_status bench_act_run(bench_row *rows, size_t count, double seconds, double free);

/* The same on the GPU, in builds that have CUDA. */
berlu_status bench_act_cuda_run(bench_row *rows, size_t count);

#endif
