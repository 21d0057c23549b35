/* attention.cu - attention and its gradient on CUDA: which kernel a call takes.
 * SPDX-License-Identifier: MIT
 *
 *   up to 72 tokens, head width 32 or 64, bf16        attention_chip.cuh   ViT on small images
 *   73 to 256 tokens, head width 64, bf16, GPU of 9.0 attention_wide.cuh   ViT/16, 197 tokens
 *     gradient: up to 208 tokens, y given             attention_wide_grad.cuh, if compiled in
 *   73 to 256 tokens, head width 32 or 64, bf16       attention_head.cuh
 *     gradient: y given                               attention_head_grad.cuh
 *   any tokens, head width a multiple of 16, bf16     attention_stream.cuh
 *   up to 16 tokens, heads of 4 to 12 channels        attention_small.cuh  TNT's pixels
 *   everything else, f32 above all                    attention_plain.cuh
 *
 * Log-sums that the graph hands back when attention is recomputed are not read: computing them
 * again costs nothing beside the product that needs them, and then the output has the bits it had
 * the first time. Column sums of the gradients, where requested: attention_sums.cuh. */
#include <assert.h>

#include "cuda/attention_head_grad.cuh"
#include "cuda/attention_plain.cuh"
#include "cuda/attention_small.cuh"
#include "cuda/attention_wide_launch.cuh"

/* ---- the call -------------------------------------------------------------------------------- */

static array array_from(const op_operand *o, int64_t skip)
{
    assert(!o->data || o->dtype == DTYPE_F32 || o->dtype == DTYPE_BF16);
    array a = array_of(o);
    if (a.data)
        a.data = (char *)a.data + skip * (a.bf16 ? 2 : 4);
    return a;
}

/* `x` holds q, k (and v where `v` is missing). */
static attention_args args_make(const op_operand *x, const op_operand *v, const op_attr *attr)
{
    attention_args a = {};
    int apart = v->info != NULL;
    a.tokens = (int)x->info->size[x->info->rank - 2];
    a.heads = attr->heads;
    a.groups = x->rows / a.tokens;
    a.stride_k = x->channels;
    a.dim = x->channels / (apart ? 2 : 3);
    a.stride_v = apart ? a.dim : a.stride_k;
    a.width = (int)(a.dim / a.heads);
    a.scale = (float)(1 / sqrt((double)a.width));
    a.q = array_from(x, 0), a.k = array_from(x, a.dim);
    a.v = apart ? array_from(v, 0) : array_from(x, 2 * a.dim);
    return a;
}

/* All arrays of q's dtype, and aligned: then so are rows, since head widths of the fast paths make
 * them whole vectors. */
static bool all_alike(const attention_args *a, bool backward)
{
    const array forward[] = {a->q, a->v, a->y}, gradient[] = {a->q, a->v, a->dy, a->dq, a->dv};
    const array *list = backward ? gradient : forward;
    for (int i = 0; i < (backward ? 5 : 3); i++)
        if (list[i].bf16 != a->q.bf16 || !array_aligned(list[i]))
            return false;
    return true;
}

/* ---- the paths ------------------------------------------------------------------------------- */

#ifndef CHIP_STRIPS
#define CHIP_STRIPS 1
#endif
#ifndef CHIP_STRIPS_GRAD
#define CHIP_STRIPS_GRAD 1
#endif
#ifndef CHIP_BLOCKS
#define CHIP_BLOCKS 5
#endif
#ifndef CHIP_BLOCKS_GRAD
#define CHIP_BLOCKS_GRAD 4
#endif

template <int W, int N> static void chip_launch(const attention_args &a, bool backward, cudaStream_t stream)
{
    using forward = chip<W, N, CHIP_STRIPS>;
    using gradient = chip<W, N, CHIP_STRIPS_GRAD>;
    if (backward)
        kernel_launch(stream, attention_chip_grad<W, N, CHIP_STRIPS_GRAD, CHIP_BLOCKS_GRAD>, a.groups * a.heads,
                      gradient::THREADS, gradient::BACKWARD, a);
    else
        kernel_launch(stream, attention_chip<W, N, CHIP_STRIPS, CHIP_BLOCKS>, a.groups * a.heads, forward::THREADS,
                      forward::FORWARD, a);
}

template <int W> static bool chip_pick(const attention_args &a, bool backward, cudaStream_t stream)
{
    if (a.tokens > 72)
        return false;
    if (a.tokens > 56)
        chip_launch<W, 9>(a, backward, stream);
    else if (a.tokens > 40)
        chip_launch<W, 7>(a, backward, stream);
    else if (a.tokens > 24)
        chip_launch<W, 5>(a, backward, stream);
    else
        chip_launch<W, 3>(a, backward, stream);
    return true;
}

#ifdef CUDA_EMULATED
static size_t shared_limit()
{
    return emulate_shared_most;
}
template <typename K> static int64_t resident_blocks(K, int, size_t)
{
    return 2;
}
#else
/* Bytes of shared memory that a block may have; 0 where CUDA does not say. */
static size_t shared_limit()
{
    int gpu, bytes;
    bool known = cudaGetDevice(&gpu) == cudaSuccess &&
                 cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu) == cudaSuccess;
    return known ? (size_t)bytes : 0;
}

/* Blocks that run at the same time on this GPU. */
template <typename K> static int64_t resident_blocks(K kernel, int threads, size_t shared)
{
    int gpu, processors, blocks;
    (void)cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    bool known = cudaGetDevice(&gpu) == cudaSuccess &&
                 cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu) == cudaSuccess &&
                 cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared) == cudaSuccess;
    return known && blocks > 0 ? (int64_t)processors * blocks : 1;
}
#endif

template <int W, bool ONE> static void head_launch(const attention_args &a, const head_plan &plan, cudaStream_t stream)
{
    auto kernel = attention_head_grad<ONE, W>;
    int64_t heads = a.groups * a.heads, blocks = resident_blocks(kernel, 32 * plan.warps, plan.shared);
    kernel_launch(stream, kernel, heads < blocks ? heads : blocks, 32 * plan.warps, plan.shared, a, plan);
}

template <int W> static bool head_pick(const attention_args &a, bool backward, cudaStream_t stream)
{
    if (!backward && a.tokens <= HEAD_TOKENS && head_shared<W>(a.tokens) <= shared_limit()) {
        int warps = a.tokens > 128 ? 8 : (a.tokens + 31) / 32; /* one or two strips each; eight load the SM evenly */
        kernel_launch(stream, attention_head<8, W>, a.groups * a.heads, 32 * warps, head_shared<W>(a.tokens), a);
        return true;
    }
    if (!backward || !a.y.data)
        return false;
    head_plan plan = head_plan_make<W>(a.tokens, shared_limit());
    if (!plan.shared)
        return false;
    if (plan.span == plan.rows)
        head_launch<W, true>(a, plan, stream);
    else
        head_launch<W, false>(a, plan, stream);
    return true;
}

template <int W> static void stream_launch(const attention_args &a, bool backward, cudaStream_t stream)
{
    int warps = stream_warps(a.tokens);
    int64_t blocks = a.groups * a.heads * ((a.tokens + 16 * warps - 1) / (16 * warps));
    if (!backward) {
        kernel_launch(stream, attention_stream<W>, blocks, 32 * warps, stream_forward_shared<W>(warps), a);
        return;
    }
    kernel_launch(stream, attention_stream_queries<W>, blocks, 32 * warps, stream_backward_shared<W>(warps), a);
    kernel_launch(stream, attention_stream_keys<W>, blocks, 32 * warps, stream_backward_shared<W>(warps), a);
}

static bool stream_pick(const attention_args &a, bool backward, cudaStream_t stream)
{
    int warps = stream_warps(a.tokens);
    if (a.width == 128 && (backward ? stream_backward_shared<128> : stream_forward_shared<128>)(warps) > shared_limit())
        return false; /* GPUs of 8.6 and 8.9 have too little; narrower heads fit everywhere */
    switch (a.width) {
    case 16:
        stream_launch<16>(a, backward, stream);
        return true;
    case 32:
        stream_launch<32>(a, backward, stream);
        return true;
    case 48:
        stream_launch<48>(a, backward, stream);
        return true;
    case 64:
        stream_launch<64>(a, backward, stream);
        return true;
    case 80:
        stream_launch<80>(a, backward, stream);
        return true;
    case 96:
        stream_launch<96>(a, backward, stream);
        return true;
    case 128:
        stream_launch<128>(a, backward, stream);
        return true;
    }
    return false;
}

template <typename T, int W> static void small_launch(const attention_args &a, bool backward, cudaStream_t stream)
{
    int groups = small_groups(&a);
    int64_t blocks = (a.groups + groups - 1) / groups;
    if (backward)
        kernel_launch(stream, attention_small_grad<T, W>, blocks, small_threads(&a), small_shared(&a, true), a, groups);
    else
        kernel_launch(stream, attention_small<T, W>, blocks, small_threads(&a), small_shared(&a, false), a, groups);
}

template <typename T> static bool small_pick(const attention_args &a, bool backward, cudaStream_t stream)
{
    if (!small_fits(&a))
        return false;
    switch (a.width) {
    case 4:
        small_launch<T, 4>(a, backward, stream);
        return true;
    case 6:
        small_launch<T, 6>(a, backward, stream);
        return true;
    case 8:
        small_launch<T, 8>(a, backward, stream);
        return true;
    case 10:
        small_launch<T, 10>(a, backward, stream);
        return true;
    case 12:
        small_launch<T, 12>(a, backward, stream);
        return true;
    }
    return false;
}

static void plain_launch(const attention_args &a, bool backward, cudaStream_t stream)
{
    int64_t blocks = a.groups * a.heads * ((a.tokens + PLAIN_ROWS - 1) / PLAIN_ROWS);
    if (!backward) {
        kernel_launch(stream, attention_plain, blocks, PLAIN_THREADS, 0, a);
        return;
    }
    kernel_launch(stream, attention_plain_queries, blocks, PLAIN_THREADS, 0, a);
    kernel_launch(stream, attention_plain_keys, blocks, PLAIN_THREADS, 0, a);
}

/* wgmma exists on compute capability 9.0 alone. */
static bool wide_pick(const attention_args &a, bool backward, const cuda_device *dev)
{
    int fewest = backward ? WIDE_GRAD_FEWEST : WIDE_FEWEST, most = backward ? WIDE_GRAD_MOST : WIDE_MOST;
    bool hopper = dev->gpu.major == 9 && dev->gpu.minor == 0;
    if (!hopper || a.width != 64 || a.tokens < fewest || a.tokens > most || (backward && !a.y.data))
        return false;
    attention_wide_launch(a, backward, dev->gpu.processors, dev->stream);
    return true;
}

/* The kernels with a whole head on chip, which add up columns by groups. */
static bool chip_launch_any(const attention_args &a, bool backward, const cuda_device *dev)
{
    cudaStream_t stream = dev->stream;
    if (!a.q.bf16 || !all_alike(&a, backward))
        return false;
    if (wide_pick(a, backward, dev))
        return true;
    if (a.width == 64 ? chip_pick<64>(a, backward, stream) : a.width == 32 && chip_pick<32>(a, backward, stream))
        return true;
    return a.width == 64 ? head_pick<64>(a, backward, stream) : a.width == 32 && head_pick<32>(a, backward, stream);
}

static bool fast_launch(const attention_args &a, bool backward, cudaStream_t stream)
{
    if (!all_alike(&a, backward))
        return false;
    if (!a.q.bf16)
        return small_pick<float>(a, backward, stream);
    return stream_pick(a, backward, stream) || small_pick<__nv_bfloat16>(a, backward, stream);
}

/* Rows of partial sums where a kernel of this file's own reads the gradients again. */
static int sums_chunks(int64_t groups)
{
    return (int)(groups < SUMS_CHUNKS ? groups : (int64_t)SUMS_CHUNKS);
}

/* Returns how many rows of partial sums there are. */
static int64_t attention_launch(const attention_args &a, bool backward, const cuda_device *dev)
{
    cudaStream_t stream = dev->stream;
    if (a.groups <= 0)
        return 0;
    bool chip = chip_launch_any(a, backward, dev);
    if (!chip && !fast_launch(a, backward, stream))
        plain_launch(a, backward, stream);
    int chunks = sums_chunks(a.groups), columns = (int)(3 * a.dim + 31) / 32;
    if (a.partial && !chip)
        kernel_launch(stream, attention_sums_any, (int64_t)chunks * columns, SUMS_DEEP * 32, 0, a, chunks, columns);
    return chip ? a.groups : chunks;
}

/* ---- the ops --------------------------------------------------------------------------------- */

extern "C" size_t cuda_attention_workspace(const op_call *c)
{
    (void)c;
    return 0;
}

extern "C" void cuda_attention(const op_call *c)
{
    attention_args a = args_make(&c->in[0], &c->in[1], c->attr);
    a.y = array_of(&c->out[0]);
    a.logsum = (float *)c->out[1].data;
    assert(!a.logsum || c->out[1].dtype == DTYPE_F32);
    attention_launch(a, false, cuda_device_of(c));
    cuda_launched(c);
}

static size_t delta_bytes(const op_call *c)
{
    return (size_t)(c->in[0].rows * c->attr->heads) * sizeof(float);
}

/* Delta of every row and head, and a row of partial sums for every group. The kernels that keep all
 * on chip need no delta and the others fewer sums, but which one it is depends on addresses too. */
extern "C" size_t cuda_attention_grad_workspace(const op_call *c)
{
    attention_args a = args_make(&c->in[1], &c->in[2], c->attr);
    int64_t parts = !c->out[2].info && !c->out[3].info ? 0 : a.tokens > HEAD_TOKENS ? sums_chunks(a.groups) : a.groups;
    return delta_bytes(c) + (size_t)(parts * 3 * a.dim) * sizeof(float);
}

extern "C" void cuda_attention_grad(const op_call *c)
{
    attention_args a = args_make(&c->in[1], &c->in[2], c->attr);
    int apart = c->in[2].info != NULL;
    a.dy = array_of(&c->in[0]), a.y = array_of(&c->in[4]);
    if (a.y.bf16 != a.q.bf16 || !array_aligned(a.y))
        a.y.data = NULL; /* no kernel needs it */
    a.logsum = (float *)c->in[3].data;
    a.dq = array_of(&c->out[0]), a.dk = array_from(&c->out[0], a.dim);
    a.dv = apart ? array_of(&c->out[1]) : array_from(&c->out[0], 2 * a.dim);
    a.delta = (float *)c->workspace;
    float *sums = (float *)c->out[2].data, *sums_v = (float *)c->out[3].data;
    if (sums || sums_v)
        a.partial = (float *)((char *)c->workspace + delta_bytes(c));
    assert(c->in[3].dtype == DTYPE_F32);
    int64_t parts = attention_launch(a, true, cuda_device_of(c)), own = (apart ? 2 : 3) * a.dim;
    cuda_launched(c);
    if (!a.partial)
        return;
    cuda_end end = {a.partial, sums, parts, own, 3 * a.dim, 0};
    cuda_end_add(c, &end);
    cuda_end end_v = {a.partial + own, sums_v, parts, a.dim, 3 * a.dim, 0};
    if (apart)
        cuda_end_add(c, &end_v);
}
