/* bench_step.h - speed and memory of training and inference of a network.
 * SPDX-License-Identifier: MIT */
#ifndef BENCH_BENCH_STEP_H
#define BENCH_BENCH_STEP_H

#include "engine/engine.h"
#include "models/models.h"

typedef struct bench_step {
    /* the run */
    const char *model, *act; /* for the row; the network itself is the model passed to bench_step_run() */
    engine_options options;
    int steps;       /* at least this many after the warm-up, */
    double seconds;  /* and at least this long */
    int cpu_time;    /* processor time instead of the clock: one thread on a machine shared with others */
    int memory_only; /* the times are not used */
    engine_profile profile;
    /* NULL: one measurement. Otherwise it says before each one whether to go on (`*more`), and
     * finds the results of the last one here where `measured` is not 0. */
    berlu_status (*next)(struct bench_step *b, int *more);
    const void *user; /* for next() */
    int measured;
    /* the results: medians over the steps */
    char machine[96]; /* as the backend describes its device */
    double images_per_s, forward_ms, backward_ms, update_ms;
    double loss;          /* of the last step, to see that something was computed */
    uint64_t peak_bytes;  /* measured: growth of the process's resident memory */
    engine_memory memory; /* planned */
} bench_step;

/* Makes the engine, runs two warm-up steps, then measures, once or as often as next() says. With
 * options.profile `profile` (may be NULL) gets the table of times. */
berlu_status bench_step_run(bench_step *b, const model *m, text *profile);

#endif
