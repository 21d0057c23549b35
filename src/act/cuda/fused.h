/* act/cuda/fused.h - the interface between a fused layer and the kernels of fused.cu.
 * SPDX-License-Identifier: MIT
 *
 * fused_call.c checks the request of the engine, fills a fused_job and joins its sums; fused.cu,
 * compiled once per activation, launches it. */
#ifndef ACT_CUDA_FUSED_H
#define ACT_CUDA_FUSED_H

#include <cuda_runtime_api.h>

#include "act/cuda/fused_job.h"

typedef struct fused_kernels {
    void (*partials)(const fused_job *job, size_t *row_blocks,
                     size_t *tiles); /* how many partial sums a backward writes */
    cudaError_t (*launch)(const fused_job *job, cudaStream_t stream);
} fused_kernels;

#endif
