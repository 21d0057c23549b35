/* stub_internal.h - what the files of the stub share. SPDX-License-Identifier: MIT */
#ifndef TESTS_CUDA_STUB_INTERNAL_H
#define TESTS_CUDA_STUB_INTERNAL_H

#include "base/half.h"
#include "cuda/kernels.h"
#include "cuda/stub.h"

/* Runs work with a copy of its data: at once, or when the graph is launched that a stream is
 * captured for. */
void stub_enqueue(cuda_stream s, void (*run)(const void *), const void *data, size_t bytes);
int stub_launch_ok(void); /* counts a launch; 0 where it is the one that fails */
void stub_clock_add(double seconds);

static inline float element(const void *data, int bf16, int64_t i)
{
    return bf16 ? bf16_to_f32(((const uint16_t *)data)[i]) : ((const float *)data)[i];
}

static inline void element_set(void *data, int bf16, int64_t i, double x)
{
    if (bf16)
        ((uint16_t *)data)[i] = bf16_from_f32((float)x);
    else
        ((float *)data)[i] = (float)x;
}

#endif
