/* act/cuda/kernels.h - the interface between a call and the CUDA kernels of one activation.
 * SPDX-License-Identifier: MIT
 *
 * The counterpart of act/cpu/kernels.h. call.c checks a call and fills a cuda_job; kernel.cu,
 * compiled once per activation over the same formula, launches it. Values and dx have the bits of
 * the CPU. Sums have an order of their own that depends on the call alone, never on the device or
 * the grid:
 *
 *     per layer    a tile is the work of a block; each thread adds its few dozen elements in f32
 *                  in index order, threads are joined by a fixed tree in double, tiles by a
 *                  second kernel, again by a fixed tree in double
 *     per channel  rows in blocks of CUDA_ROWS in f32, in order (the rule of the CPU) or every n-th
 *                  row in order and then the n sums, blocks by a fixed tree in double; where the
 *                  channel is not innermost runs of CUDA_RUN neighbours take the blocks' place */
#ifndef ACT_CUDA_KERNELS_H
#define ACT_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#include <berlu/act.h>

enum {
    CUDA_ROWS = 64,         /* rows whose column sums are added in order */
    CUDA_RUN = 2048,        /* elements of a plane that a warp adds */
    CUDA_SHAPE_NUMBERS = 64 /* capacity for the numbers of a smoothed function */
};

/* Passed to the device by value, so it holds no host pointer. */
typedef struct cuda_job {
    berlu_act_op op;
    berlu_dtype dtype;
    int plain; /* scale 1 and no centering */
    float scale;
    int center, param_index;
    size_t rows, channels, count;
    size_t inner; /* above 1: [rows, channels, inner], with parameters per channel (planes.cuh) */
    int columns;  /* 1: bias, column sums or per-channel parameters: iterate over rows and channels */

    int degree, shape_count;
    float shape_numbers[CUDA_SHAPE_NUMBERS];

    const void *x, *dy, *y_in;
    void *y, *dx;
    const float *bias;
    const float *param[BERLU_ACT_PARAMS]; /* device memory; NULL: own[] */
    float own[BERLU_ACT_PARAMS];
    int per_channel[BERLU_ACT_PARAMS];

    double *layer_sum[BERLU_ACT_PARAMS];  /* [tiles]; NULL: not requested */
    float *channel_sum[BERLU_ACT_PARAMS]; /* [row blocks][channels] */
    float *bias_sum;                      /* the same */
} cuda_job;

/* Runs of a plane, each with a partial sum of its own. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline size_t
    cuda_runs(const cuda_job *job)
{
    return (job->inner + CUDA_RUN - 1) / CUDA_RUN;
}

typedef struct cuda_kernels {
    size_t (*tiles)(const cuda_job *job); /* the number of partial sums of a layer that the launch writes */
    cudaError_t (*launch)(const cuda_job *job, cudaStream_t stream);
} cuda_kernels;

#ifdef __cplusplus
extern "C" {
#endif
/* cuda/call.c: berlu_act_cuda_run() of memory that the caller knows to be the current device's.
 * Exported, though in no public header, for the bridge to torch, which takes all of it from
 * torch. */
BERLU_API berlu_status berlu_act_cuda_run_here(const berlu_act *act, berlu_act_op op, const berlu_act_call *call,
                                               void *stream);

/* cuda/sums.cu: joins partial sums. */
cudaError_t cuda_join_layer(float *out, const double *partial, size_t count, cudaStream_t stream);
cudaError_t cuda_join_columns(float *out, const float *partial, size_t blocks, size_t channels, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
