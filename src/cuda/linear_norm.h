/* linear_norm.h - a layer, the residual and the norm after it as one kernel: its interface.
 * SPDX-License-Identifier: MIT
 *
 *     x = a W^T + bias + residual,  y = (x - mean) / sqrt(var + eps) * weight + shift
 *
 * linear_norm.c decides for a call of the engine and fills a job; linear_norm.cu launches it. */
#ifndef CUDA_LINEAR_NORM_H
#define CUDA_LINEAR_NORM_H

#include "cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LINEAR_NORM_WIDTH = 192,    /* inputs and outputs */
    LINEAR_NORM_FEWEST = 16384, /* rows for which it is faster than a product and a norm */
};

/* Passed to the device by value. a, w, bias and y are bf16; residual and x have one dtype. */
typedef struct linear_norm_job {
    const void *a;              /* [rows][LINEAR_NORM_WIDTH] */
    const void *w;              /* [outputs][inputs] */
    const void *bias;           /* may be NULL */
    const void *residual;       /* may be x */
    const void *weight, *shift; /* of the norm, f32 */
    void *x, *y;
    void *statistics; /* mean and 1 / sigma of every row, f32; may be NULL */
    int rows;
    int f32;    /* residual and x */
    int blocks; /* at most; no bit depends on it */
    float eps;
} linear_norm_job;

/* linear_norm.cu */
void cuda_linear_norm_rows(const linear_norm_job *job, cuda_stream stream);

/* linear_norm.c: does the kernel take a linear_norm, and is it faster than two launches? */
int cuda_linear_norm_takes(const op_call *c);

#ifdef __cplusplus
}
#endif
#endif
