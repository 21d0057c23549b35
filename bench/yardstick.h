/* yardstick.h - the best copy and the best add of this machine, to judge kernels by. SPDX-License-Identifier: MIT
 *
 * y = x and y = x + dy over f32 arrays, in every way that may be the fastest: the C library, AVX2 and AVX-512, ordinary and
 * non-temporal stores, one place after the other and four by turns. Which one wins depends on size and threads, so a bench times them all, interleaved with what it
 * judges, and takes the one with the best median. */
#ifndef BENCH_YARDSTICK_H
#define BENCH_YARDSTICK_H

#include <stddef.h>

#include "base/cpu.h"

typedef enum yardstick_kind { YARDSTICK_COPY, YARDSTICK_ADD } yardstick_kind;

typedef enum yardstick_way { ORDINARY, STREAMED, BY_TURNS } yardstick_way; /* BY_TURNS is streamed too */

typedef struct yardstick {
    const char *name;
    yardstick_kind kind;
    void (*part)(float *y, const float *x, const float *dy, size_t n); /* arrays aligned to 64, n a multiple of 64 */
    cpu_isa isa; /* what it needs: kernels of a narrower instruction set are not judged by it */
    yardstick_way way;
} yardstick;

/* Those this machine can run, index 0, 1, ...; NULL after the last. */
const yardstick *yardstick_at(size_t index);

/* Runs one on so many threads, each on a contiguous part. */
void yardstick_run(const yardstick *s, int threads, float *y, const float *x, const float *dy, size_t n);

#endif
