/* act/cuda/fused_job.h - the activation of a fused layer, as its kernels take it.
 * SPDX-License-Identifier: MIT
 *
 * fused_call.c fills it, fused.cu and src/cuda/rows.cu read it on the device. Plain C without a
 * header of CUDA, so that the host side of the engine builds everywhere. */
#ifndef ACT_CUDA_FUSED_JOB_H
#define ACT_CUDA_FUSED_JOB_H

#include <berlu/act.h>

enum { FUSED_SHAPE_NUMBERS = 64 };

/* bf16 throughout, on whole vectors of 16 bytes; passed to the device by value, so it holds no host
 * pointer. */
typedef struct fused_job {
    size_t rows, channels;
    float scale;
    int center, degree, shape_count, from_output;
    float shape_numbers[FUSED_SHAPE_NUMBERS];
    const void *x, *dy;                   /* from_output: x is y */
    void *y, *dx;                         /* dx NULL: forward; else y is recomputed where it is given */
    const float *param[BERLU_ACT_PARAMS]; /* device memory; NULL: own[] */
    float own[BERLU_ACT_PARAMS];
    double *layer_sum[BERLU_ACT_PARAMS]; /* [tiles]; NULL: not requested */
    float *bias_sum;                     /* [row blocks][channels] */
} fused_job;

#endif
