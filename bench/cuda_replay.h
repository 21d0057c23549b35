/* cuda_replay.h - shared by the benches of fused CUDA ops: random operands, and the time of a call
 * inside a captured graph. SPDX-License-Identifier: MIT
 *
 * A graph has REPLAY_CALLS calls over several sets of buffers, so that nothing is found in L2; a
 * figure is the median of REPLAYS replays over the number of calls. */
#ifndef BENCH_CUDA_REPLAY_H
#define BENCH_CUDA_REPLAY_H

#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/median.h"
#include "cuda/cuda.h"
#include "cuda/device.h"

enum { REPLAY_CALLS = 24, REPLAYS = 10, REPLAYS_WARM = 2 };

static inline void must(berlu_status status)
{
    if (status == BERLU_OK)
        return;
    fprintf(stderr, "%s\n", berlu_last_error());
    exit(1);
}

/* Random bf16 between -2 and 2, since power and clock depend on values; two of them are an f32 of
 * the same range. NULL without memory; free() it. */
static inline uint16_t *numbers_make(int64_t count)
{
    uint16_t *numbers = malloc((size_t)count * sizeof *numbers);
    uint32_t state = 1;
    for (int64_t i = 0; numbers && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        numbers[i] = bf16_from_f32((float)(state >> 8) * 0x1p-22f - 2.0f);
    }
    return numbers;
}

/* Microseconds of one call; run(context, i) launches number i of a graph. */
static inline double replay_microseconds(cuda_device *d, void (*run)(const void *context, int i), const void *context)
{
    cuda_graph calls;
    cuda_event from, to;
    double seconds[REPLAYS_WARM + REPLAYS];
    run(context, 0); /* chooses algorithms */
    must(gpu_stream_wait(d->stream));
    must(gpu_capture_begin(d->stream));
    for (int i = 0; i < REPLAY_CALLS; i++)
        run(context, i);
    must(gpu_capture_end(d->stream, &calls));
    must(gpu_event_create(&from, 1));
    must(gpu_event_create(&to, 1));
    for (int i = 0; i < REPLAYS_WARM + REPLAYS; i++) {
        must(gpu_event_record(from, d->stream));
        must(gpu_graph_launch(calls, d->stream));
        must(gpu_event_record(to, d->stream));
        must(gpu_event_wait(to));
        must(gpu_event_seconds(&seconds[i], from, to));
    }
    gpu_event_destroy(from);
    gpu_event_destroy(to);
    gpu_graph_free(calls);
    if (d->failed != BERLU_OK) {
        fprintf(stderr, "%s\n", d->failure);
        exit(1);
    }
    return median(seconds + REPLAYS_WARM, REPLAYS) * 1e6 / REPLAY_CALLS;
}

#endif
