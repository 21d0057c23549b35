/* scale_weight.cu - LayerScale in the weights, and its gradients. SPDX-License-Identifier: MIT
 *
 *     W' = gamma W, b' = gamma b;  dW = gamma dW', dgamma = row sums of dW' W + db' b, db = gamma db'
 *
 * A block has one row of the weights, that is one output of the layer: gamma is one number there, and the row's sum needs no
 * second launch. Threads add in float along the row and the block in double by a fixed tree. Everything is as small as the
 * weights: two passes over a ConvNeXt-T's cost some 60 us a step, of which the launches are the larger part. */
#include "cuda/prim.cuh"

namespace
{

struct scaled {
    array to, bias;
    const float *w, *gamma, *b; /* b NULL: a layer without bias */
    int64_t each;               /* elements of a row */
};

template <int WIDE> __global__ void __launch_bounds__(THREADS) scale_rows(scaled s)
{
    int64_t row = blockIdx.x, begin = row * s.each;
    float gamma = s.gamma[row];
    array from = {(void *)s.w, 0};
    for (int64_t k = (int64_t)threadIdx.x * WIDE; k < s.each; k += THREADS * WIDE) {
        float v[WIDE];
        get<WIDE>(v, from, begin + k);
        for (int j = 0; j < WIDE; j++)
            v[j] *= gamma;
        put<WIDE>(s.to, begin + k, v);
    }
    if (threadIdx.x == 0 && s.b)
        store(s.bias, row, gamma * s.b[row]);
}

struct scaled_grad {
    const float *d, *w, *gamma, *dbias, *b; /* dbias and b NULL: a layer without bias */
    float *dw, *dgamma, *db;
    int64_t each;
};

template <int WIDE> __global__ void __launch_bounds__(THREADS) scale_rows_grad(scaled_grad s)
{
    int64_t row = blockIdx.x, begin = row * s.each;
    float gamma = s.gamma[row], sum = 0;
    array d = {(void *)s.d, 0}, w = {(void *)s.w, 0}, dw = {s.dw, 0};
#pragma unroll 2
    for (int64_t k = (int64_t)threadIdx.x * WIDE; k < s.each; k += THREADS * WIDE) {
        float a[WIDE], b[WIDE];
        get<WIDE>(a, d, begin + k);
        get<WIDE>(b, w, begin + k);
        for (int j = 0; j < WIDE; j++) {
            sum = fmaf(a[j], b[j], sum);
            a[j] *= gamma;
        }
        put<WIDE>(dw, begin + k, a);
    }
    double all = block_sum(sum);
    if (threadIdx.x != 0)
        return;
    s.dgamma[row] = (float)(all + (s.b ? (double)s.dbias[row] * s.b[row] : 0));
    if (s.b)
        s.db[row] = gamma * s.dbias[row];
}

} // namespace

extern "C" {

void cuda_scale_weight(const op_call *c)
{
    int64_t rows = operand_count(&c->in[1]);
    scaled s = {array_of(&c->out[0]),         array_of(&c->out[1]),         (const float *)c->in[0].data,
                (const float *)c->in[1].data, (const float *)c->in[2].data, operand_count(&c->in[0]) / rows};
    kernel_launch((cudaStream_t)cuda_device_of(c)->stream, s.each % 4 ? scale_rows<1> : scale_rows<4>, rows, THREADS, 0,
                  s);
    cuda_launched(c);
}

void cuda_scale_weight_grad(const op_call *c)
{
    int64_t rows = operand_count(&c->in[2]);
    scaled_grad s = {(const float *)c->in[0].data, (const float *)c->in[1].data, (const float *)c->in[2].data,
                     (const float *)c->in[3].data, (const float *)c->in[4].data, (float *)c->out[0].data,
                     (float *)c->out[1].data,      (float *)c->out[2].data,      operand_count(&c->in[1]) / rows};
    kernel_launch((cudaStream_t)cuda_device_of(c)->stream, s.each % 4 ? scale_rows_grad<1> : scale_rows_grad<4>, rows,
                  THREADS, 0, s);
    cuda_launched(c);
}
}
