/* cuda/fused.h - the interface between a fused layer and the kernels of fused.cu.
 * SPDX-License-Identifier: MIT
 *
 * fused_call.c checks what the engine asks for, fills a fused_job and joins its sums; fused.cu,
 * compiled once per activation, launches it. */
#ifndef ACT_CUDA_FUSED_H
#define ACT_CUDA_FUSED_H

#include <cuda_runtime_api.h>

#include <berlu/act.h>

enum { FUSED_SHAPE_NUMBERS = 64 };

/* bf16 throughout, on whole vectors of 16 bytes; passed to the device by value, so it holds no host
 * pointer. */
typedef struct fused_job {
    size_t rows, channels;
    float scale;
    int center, degree, shape_count;
    float shape_numbers[FUSED_SHAPE_NUMBERS];
    const void *x, *dy;
    void *y, *dx;                         /* dx NULL: forward; else y is recomputed where it is given */
    const float *param[BERLU_ACT_PARAMS]; /* device memory; NULL: own[] */
    float own[BERLU_ACT_PARAMS];
    double *layer_sum[BERLU_ACT_PARAMS]; /* [tiles]; NULL: not requested */
    float *bias_sum;                     /* [row blocks][channels] */
} fused_job;

typedef struct fused_kernels {
    void (*partials)(const fused_job *job, size_t *row_blocks,
                     size_t *tiles); /* how many partial sums a backward writes */
    cudaError_t (*launch)(const fused_job *job, cudaStream_t stream);
} fused_kernels;

#endif
