/* mlp.h - both layers of an MLP, its activation, the residual and the norm after it as one kernel:
 * its interface. SPDX-License-Identifier: MIT
 *
 *     u = a W1^T + bias1,  h = act(u),  x = h W2^T + bias2 + residual,  y = norm(x)
 *
 * u and h are never written. mlp.c decides for a call of the engine and fills a job; mlp.cu,
 * compiled once per activation, launches it. */
#ifndef CUDA_MLP_H
#define CUDA_MLP_H

#include "act/cuda/fused_job.h"
#include "cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MLP_WIDTH = 192,        /* inputs and outputs */
    MLP_SLICES = 128,       /* hidden channels come in multiples of this, two slices of the kernel, */
    MLP_HIDDEN_LEAST = 256, /* and are at least so many, for its three stages */
    MLP_HIDDEN_MOST = 1536, /* the most that is tested; their biases lie in shared memory */
    MLP_FEWEST = 16384,     /* rows for which it is taken; fewer leave processors idle */
};

/* Passed to the device by value. a, w1, w2, biases and y are bf16; residual and x have one dtype.
 * Of `act` the parameters and the settings of the formula are read. */
typedef struct mlp_job {
    fused_job act;
    const void *a;              /* [rows][MLP_WIDTH] */
    const void *w1;             /* [hidden][MLP_WIDTH] */
    const void *bias1;          /* may be NULL */
    const void *w2;             /* [MLP_WIDTH][hidden] */
    const void *bias2;          /* may be NULL */
    const void *residual;       /* may be x */
    const void *weight, *shift; /* of the norm, f32 */
    void *x;
    void *y;          /* NULL: no norm */
    void *statistics; /* mean and 1 / sigma of every row, f32; may be NULL */
    int rows, hidden;
    int f32;    /* residual and x */
    int blocks; /* at most; no bit depends on it */
    float eps;
} mlp_job;

/* NULL: the activation is slower in an epilogue than in a pass. */
typedef struct mlp_kernels {
    berlu_status (*forward)(const mlp_job *job, cuda_stream stream);
} mlp_kernels;

/* mlp.c: does the kernel take an mlp? Asked before one is made (op_entry.takes), without
 * pointers. */
int cuda_mlp_takes(const op_call *c);

#ifdef __cplusplus
}
#endif
#endif
