/* attention_wide_launch.cuh - attention by the products of warpgroups: its interface.
 * SPDX-License-Identifier: MIT
 *
 * attention.cu asks whether a call is for these kernels, and attention_wide.cu, compiled for sm_90a
 * alone, launches them. */
#ifndef CUDA_ATTENTION_WIDE_LAUNCH_CUH
#define CUDA_ATTENTION_WIDE_LAUNCH_CUH

#include "cuda/attention_args.cuh"

/* Tokens from and up to which they are taken. Heads of 64 channels, bf16, all arrays aligned, and
 * for the gradient y at hand. No more than 256 and 208 are possible.
 *
 * The gradient is faster from about 128 tokens on (docs/performance.md, 9), but its last version
 * was compared with the reference in emulation alone: it is compiled with -DWIDE_GRAD_FEWEST=73,
 * for tests and benches. */
enum {
    WIDE_FEWEST = 73,
    WIDE_MOST = 256,
};
#define WIDE_GRAD_MOST 208
#ifndef WIDE_GRAD_FEWEST
#define WIDE_GRAD_FEWEST 209 /* none */
#endif

/* `processors`: multiprocessors of the GPU; no bit depends on it. */
void attention_wide_launch(const attention_args &a, bool backward, int processors, cudaStream_t stream);

#endif
