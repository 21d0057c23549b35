/* yardstick.h - the fastest copy and the fastest add of this machine, as baselines.
 * SPDX-License-Identifier: MIT
 *
 * y = x and y = x + dy over f32 arrays, in every variant that may be the fastest: the C library,
 * AVX2 and AVX-512, ordinary and non-temporal stores, one stream and four interleaved. The fastest
 * depends on size and threads, so a bench times them all, interleaved with the kernels, and takes
 * the one with the best median. */
#ifndef BENCH_YARDSTICK_H
#define BENCH_YARDSTICK_H

#include <stddef.h>

#include "base/cpu.h"

typedef enum yardstick_kind { YARDSTICK_COPY, YARDSTICK_ADD } yardstick_kind;

/* INTERLEAVED: four streams interleaved, streamed too */
typedef enum yardstick_stores { ORDINARY, STREAMED, INTERLEAVED } yardstick_stores;

typedef struct yardstick {
    const char *name;
    yardstick_kind kind;
    void (*part)(float *y, const float *x, const float *dy, size_t n); /* arrays aligned to 64, n a multiple of 64 */
    cpu_isa isa; /* the instruction set it needs: kernels of a narrower one are not compared with it */
    yardstick_stores stores;
} yardstick;

/* Those this machine can run, index 0, 1, ...; NULL after the last. */
const yardstick *yardstick_at(size_t index);

/* Runs one on `threads` threads, each on a contiguous part. */
void yardstick_run(const yardstick *s, int threads, float *y, const float *x, const float *dy, size_t n);

#endif
