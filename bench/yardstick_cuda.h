/* yardstick_cuda.h - a copy and an add of two arrays on the GPU, as fast as memory allows.
 * SPDX-License-Identifier: MIT */
#ifndef BENCH_YARDSTICK_CUDA_H
#define BENCH_YARDSTICK_CUDA_H

#include <cuda_runtime_api.h>

#include <berlu/act.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = x, and y = x + g rounded to dtype, for n elements; arrays aligned to 16 bytes. Enqueued on
 * the default stream. */
cudaError_t yardstick_cuda_copy(void *y, const void *x, berlu_dtype dtype, size_t n);
cudaError_t yardstick_cuda_add(void *y, const void *x, const void *g, berlu_dtype dtype, size_t n);

#ifdef __cplusplus
}
#endif
#endif
