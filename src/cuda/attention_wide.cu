/* attention_wide.cu - attention and its gradient by the products of warpgroups: launches.
 * SPDX-License-Identifier: MIT
 *
 * Compiled for sm_90a alone; attention.cu asks the GPU first. The forward is compiled for several
 * numbers of keys, since scores are in registers: fewer keys are fewer registers, and more blocks
 * share a processor. */
#include <assert.h>

#include "cuda/attention_wide.cuh"
#include "cuda/attention_wide_grad.cuh"
#include "cuda/attention_wide_launch.cuh"

template <int KEYS, int FEWEST, int BLOCKS> static void forward_launch(const attention_args &a, cudaStream_t stream)
{
    kernel_launch(stream, attention_wide<KEYS, FEWEST, BLOCKS>, a.groups * a.heads, WIDE_GROUP, wide_shared<KEYS>, a);
}

template <int TILES> static void grad_launch(const attention_args &a, int processors, cudaStream_t stream)
{
    int64_t heads = a.groups * a.heads;
    auto kernel =
        a.tokens > wide_grad<TILES>::KEYS ? attention_wide_grad<TILES, true> : attention_wide_grad<TILES, false>;
    kernel_launch(stream, kernel, heads < processors ? heads : processors, wide_grad<TILES>::THREADS,
                  wide_grad<TILES>::SHARED, a);
}

static void backward_launch(const attention_args &a, int processors, cudaStream_t stream)
{
    assert(a.tokens <= wide_grad<3>::ROWS && processors > 0);
    if (a.tokens <= wide_grad<2>::ROWS)
        grad_launch<2>(a, processors, stream);
    else
        grad_launch<3>(a, processors, stream);
}

void attention_wide_launch(const attention_args &a, bool backward, int processors, cudaStream_t stream)
{
    assert(a.width == WIDE && a.tokens > WIDE && a.tokens <= HEAD_TOKENS);
    if (backward)
        backward_launch(a, processors, stream);
    else if (a.tokens <= 96)
        forward_launch<96, 64, 4>(a, stream);
    else if (a.tokens <= 128)
        forward_launch<128, 96, 4>(a, stream);
    else if (a.tokens <= 160)
        forward_launch<160, 128, 3>(a, stream);
    else if (a.tokens <= 208)
        forward_launch<208, 160, 3>(a, stream);
    else
        forward_launch<256, 208, 2>(a, stream);
}
