/* attention_wide_launch.cuh - attention by the products of warpgroups: its interface.
 * SPDX-License-Identifier: MIT
 *
 * attention.cu asks whether a call is for these kernels, and attention_wide.cu, compiled for sm_90a
 * alone, launches them. */
#ifndef CUDA_ATTENTION_WIDE_LAUNCH_CUH
#define CUDA_ATTENTION_WIDE_LAUNCH_CUH

#include "cuda/attention_args.cuh"

/* Tokens from and up to which they are taken: heads of 64 channels, bf16, all arrays aligned, and
 * for the gradient y at hand. No more than 256 and 208 are possible; with fewer the kernels of
 * attention_head.cuh are faster (docs/performance.md, 9). */
enum {
    WIDE_FEWEST = 73,
    WIDE_MOST = 256,
    WIDE_GRAD_FEWEST = 113,
    WIDE_GRAD_MOST = 208,
};

/* `processors`: multiprocessors of the GPU; no bit depends on it. */
void attention_wide_launch(const attention_args &a, bool backward, int processors, cudaStream_t stream);

#endif
