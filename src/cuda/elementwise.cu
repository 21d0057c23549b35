/* elementwise.cu - sums, factors, dropout, conversions: one thread, four elements.
 * SPDX-License-Identifier: MIT
 *
 * Every op here is a function of up to two elements at the same index, of a channel's factor and of
 * the index itself; map() is the one loop around them. An output may overwrite an input: a thread
 * reads its four elements before it writes them. The random ops draw by the index in the global
 * batch, as cpu/draw.h does, so both backends drop the same elements. */
#include "base/philox.h"
#include "cuda/storage.cuh"

namespace
{

template <class F> __global__ void __launch_bounds__(THREADS) map(F f, array a, array b, array y, int64_t count)
{
    for (int64_t i = 4 * thread_index(); i < count; i += 4 * thread_count()) {
        if (i + 4 <= count) {
            float4 p = load4(a, i), q = b.data ? load4(b, i) : make_float4(0, 0, 0, 0);
            store4(y, i, make_float4(f(i, p.x, q.x), f(i + 1, p.y, q.y), f(i + 2, p.z, q.z), f(i + 3, p.w, q.w)));
            continue;
        }
        for (int64_t j = i; j < count; j++)
            store(y, j, f(j, load(a, j), b.data ? load(b, j) : 0.0f));
    }
}

template <class F> void run(const op_call *c, F f, const op_operand *second)
{
    int64_t count = operand_count(&c->out[0]);
    if (!count)
        return;
    map<<<blocks_for((count + 3) / 4), THREADS, 0, cuda_device_of(c)->stream>>>(
        f, array_of(&c->in[0]), second ? array_of(second) : array{}, array_of(&c->out[0]), count);
    cuda_launched(c);
}

struct sum {
    __device__ float operator()(int64_t, float a, float b) const
    {
        return a + b;
    }
};

struct average {
    __device__ float operator()(int64_t, float a, float b) const
    {
        return (a + b) / 2;
    }
};

struct halve {
    __device__ float operator()(int64_t, float a, float) const
    {
        return a / 2;
    }
};

struct same {
    __device__ float operator()(int64_t, float a, float) const
    {
        return a;
    }
};

struct scale {
    array gamma;
    int64_t channels;
    __device__ float operator()(int64_t i, float x, float residual) const
    {
        return x * load(gamma, i - quotient(i, channels) * channels) + residual;
    }
};

/* Is group `index` of this op kept in this step? The twin of draw_keeps(). */
struct draw {
    const engine_step *step;
    philox_purpose purpose;
    uint32_t site;
    float rate, factor;
    __device__ bool keeps(uint64_t index) const
    {
        philox_words words = philox_draw(step->seed, purpose, step->step, index / 4, site);
        uint32_t word = words.w[0]; /* no index that is known only at run time: that would put the words in memory */
        word = index % 4 == 1 ? words.w[1] : word;
        word = index % 4 == 2 ? words.w[2] : word;
        word = index % 4 == 3 ? words.w[3] : word;
        return philox_f32(word) >= rate;
    }
};

struct dropout {
    draw d;
    int64_t each; /* elements of an image */
    __device__ float operator()(int64_t i, float x, float) const
    {
        return d.keeps(d.step->first_sample * (uint64_t)each + (uint64_t)i) ? x * d.factor : 0.0f;
    }
};

struct drop_path {
    draw d;
    int64_t groups, size; /* per image; elements of a group */
    __device__ float operator()(int64_t i, float x, float residual) const
    {
        uint64_t index = d.step->first_sample * (uint64_t)groups + (uint64_t)quotient(i, size);
        return (d.keeps(index) ? x * d.factor : 0.0f) + residual;
    }
};

draw draw_of(const op_call *c, philox_purpose purpose)
{
    return draw{c->step, purpose, (uint32_t)c->attr->site, c->attr->rate, (float)(1 / (1 - (double)c->attr->rate))};
}

} // namespace

extern "C" {

void cuda_add(const op_call *c)
{
    run(c, sum{}, &c->in[1]);
}

void cuda_average(const op_call *c)
{
    run(c, average{}, &c->in[1]);
}

void cuda_half(const op_call *c)
{
    run(c, halve{}, nullptr);
}

void cuda_scale(const op_call *c)
{
    run(c, scale{array_of(&c->in[1]), c->out[0].channels}, &c->in[2]);
}

void cuda_dropout(const op_call *c)
{
    run(c, dropout{draw_of(c, PURPOSE_DROPOUT), operand_count(&c->in[0]) / c->batch}, nullptr);
}

void cuda_drop_path(const op_call *c)
{
    int64_t groups = c->attr->groups;
    run(c, drop_path{draw_of(c, PURPOSE_DROP_PATH), groups, operand_count(&c->in[0]) / (c->batch * groups)}, &c->in[1]);
}

void cuda_convert(const op_call *c, void *to, tensor_dtype to_dtype, const void *from, tensor_dtype from_dtype,
                  int64_t count)
{
    if (!count)
        return;
    array source = {(void *)from, from_dtype == DTYPE_BF16}, target = {to, to_dtype == DTYPE_BF16};
    map<<<blocks_for((count + 3) / 4), THREADS, 0, cuda_device_of(c)->stream>>>(same{}, source, array{}, target, count);
    cuda_launched(c);
}

int cuda_kernels_usable(void)
{
    cudaFuncAttributes about;
    if (cudaFuncGetAttributes(&about, map<same>) == cudaSuccess)
        return 1;
    cudaGetLastError();
    return 0;
}
}
