/* update.cu - clipping, AdamW, SGD, the average of the weights and their bf16 copies.
 * SPDX-License-Identifier: MIT
 *
 * A block has a piece of at most PIECE elements of one parameter; run.c cuts the spans and keeps
 * the list on the device. The order of operations is that of cpu/ref_update.c, which is torch's;
 * scalars are computed in double and rounded once. The clip factor, and whether anything may be
 * written at all (result->fault), are read from the step's result, so a captured graph needs
 * nothing from the host. AdamW and SGD write the bf16 copy of a weight in the same pass. */
#include <math.h>

#include "cuda/storage.cuh"

namespace
{

struct job {
    const param_span *spans;
    const param_piece *pieces;
    const engine_step *step;
    step_result *result;
    float *weight, *moment1, *moment2, *ema;
    const float *gradient;
    __nv_bfloat16 *shadow;
    int nesterov;
};

job job_of(const op_call *c)
{
    const param_table *t = c->params;
    const cuda_params *p = cuda_device_of(c)->params;
    return job{p->spans,
               p->pieces,
               c->step,
               c->result,
               (float *)t->weight,
               (float *)t->moment1,
               (float *)t->moment2,
               (float *)t->ema,
               (const float *)t->gradient,
               (__nv_bfloat16 *)t->shadow,
               t->nesterov};
}

int piece_count(const op_call *c)
{
    return cuda_device_of(c)->params->piece_count;
}

/* Offsets of a piece in each of the arrays. */
struct range {
    int64_t at, gradient, shadow, count; /* shadow -1: it has no copy */
    __device__ range(const job &j, const param_piece &p, const param_span &s)
        : at(s.offset + p.begin), gradient(s.gradient + p.begin),
          shadow(s.shadow < 0 || !j.shadow ? -1 : s.shadow + p.begin), count(p.count)
    {
    }
    /* May it be processed four elements at a time? */
    __device__ bool wide(void) const
    {
        return at % 4 == 0 && gradient % 4 == 0 && (shadow < 0 || shadow % 4 == 0);
    }
};

__device__ __forceinline__ float within(float x, const param_span &s) /* a NaN stays */
{
    x = x < s.low ? s.low : x;
    return x > s.high ? s.high : x;
}

/* Runs f(w, m, v, g) over a piece. The weight is always read and written, moments where READS and
 * WRITES say so. */
enum { M = 1, V = 2 };
template <int READS, int WRITES, class F> __device__ void each_element(const job &j, const range &r, const F &f)
{
    float *weight = j.weight + r.at, *m1 = j.moment1 + r.at, *m2 = j.moment2 + r.at;
    const float *gradient = j.gradient + r.gradient;
    int step = r.wide() ? 4 : 1, full = (int)(r.count / step) * step;
    for (int i = threadIdx.x * step; i < full && step == 4; i += 4 * THREADS) {
        float4 w = *(float4 *)(weight + i), g = *(const float4 *)(gradient + i), m = {}, v = {};
        if (READS & M)
            m = *(float4 *)(m1 + i);
        if (READS & V)
            v = *(float4 *)(m2 + i);
        f(w.x, m.x, v.x, g.x), f(w.y, m.y, v.y, g.y), f(w.z, m.z, v.z, g.z), f(w.w, m.w, v.w, g.w);
        *(float4 *)(weight + i) = w;
        if (WRITES & M)
            *(float4 *)(m1 + i) = m;
        if (WRITES & V)
            *(float4 *)(m2 + i) = v;
        if (r.shadow >= 0)
            store4(array{j.shadow + r.shadow, 1}, i, w);
    }
    for (int i = (step == 4 ? full : 0) + threadIdx.x; i < r.count; i += THREADS) {
        float w = weight[i], g = gradient[i], m = READS & M ? m1[i] : 0.0f, v = READS & V ? m2[i] : 0.0f;
        f(w, m, v, g);
        weight[i] = w;
        if (WRITES & M)
            m1[i] = m;
        if (WRITES & V)
            m2[i] = v;
        if (r.shadow >= 0)
            j.shadow[r.shadow + i] = __float2bfloat16_rn(w);
    }
}

/* ---- optimizers ------------------------------------------------------------------------------ */

struct adamw_rule {
    float keep, step, root, toward, b2, rest, clip, eps;
    param_span span;
    __device__ adamw_rule(const param_span &p, const engine_step &s, double factor) : span(p)
    {
        double lr = s.lr * (p.activation ? s.act_lr : 1);
        keep = (float)(1 - lr * span_decay(&p, &s)), step = (float)(lr / s.correction1);
        root = (float)sqrt(s.correction2), toward = (float)(1 - s.beta1), b2 = (float)s.beta2;
        rest = (float)(1 - s.beta2), clip = (float)factor, eps = (float)s.eps;
    }
    __device__ __forceinline__ void operator()(float &w, float &m, float &v, float g) const
    {
        float d = g * clip;
        m += toward * (d - m);
        v = b2 * v + rest * d * d;
        w = within(w * keep - step * m / (sqrtf(v) / root + eps), span);
    }
};

struct sgd_rule {
    float wd, mu, lr, clip;
    int first, nesterov;
    param_span span;
    __device__ sgd_rule(const param_span &p, const engine_step &s, double factor, int nest) : span(p)
    {
        wd = (float)span_decay(&p, &s), mu = (float)s.momentum;
        lr = (float)(s.lr * (p.activation ? s.act_lr : 1));
        clip = (float)factor, first = s.count == 1, nesterov = nest;
    }
    __device__ __forceinline__ void operator()(float &w, float &m, float &, float g) const
    {
        float d = g * clip + wd * w;
        if (mu != 0) {
            m = (first ? 0.0f : mu * m) + d;
            d = nesterov ? d + mu * m : m;
        }
        w = within(w - lr * d, span);
    }
};

__global__ void __launch_bounds__(THREADS) adamw(job j)
{
    param_piece p = j.pieces[blockIdx.x];
    param_span span = j.spans[p.span];
    if (j.result->fault || !span_moves(&span, j.step))
        return;
    each_element<M | V, M | V>(j, range(j, p, span), adamw_rule(span, *j.step, j.result->clip_factor));
}

__global__ void __launch_bounds__(THREADS) sgd(job j)
{
    param_piece p = j.pieces[blockIdx.x];
    param_span span = j.spans[p.span];
    if (j.result->fault || !span_moves(&span, j.step))
        return;
    sgd_rule rule(span, *j.step, j.result->clip_factor, j.nesterov);
    if (rule.mu != 0)
        each_element<M, M>(j, range(j, p, span), rule);
    else
        each_element<0, 0>(j, range(j, p, span), rule);
}

__global__ void __launch_bounds__(THREADS) ema(job j)
{
    param_piece p = j.pieces[blockIdx.x];
    param_span span = j.spans[p.span];
    if (j.result->fault)
        return;
    float rest = (float)(1 - j.step->ema_decay);
    const float *weight = j.weight + span.offset + p.begin;
    float *average = j.ema + span.offset + p.begin;
    for (int i = threadIdx.x; i < p.count; i += THREADS)
        average[i] = within(average[i] + rest * (weight[i] - average[i]), span);
}

/* The copies of weights that came from elsewhere than an update. */
__global__ void __launch_bounds__(THREADS) shadow(job j)
{
    param_piece p = j.pieces[blockIdx.x];
    param_span span = j.spans[p.span];
    for (int i = threadIdx.x; i < p.count && span.shadow >= 0; i += THREADS)
        j.shadow[span.shadow + p.begin + i] = __float2bfloat16_rn(j.weight[span.offset + p.begin + i]);
}

/* ---- the norm of all gradients --------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS) squares(job j, double *part)
{
    param_piece p = j.pieces[blockIdx.x];
    param_span span = j.spans[p.span];
    const float *g = j.gradient + span.gradient + p.begin;
    double sum = 0;
    if (span_moves(&span, j.step))
#pragma unroll 4
        for (int i = threadIdx.x; i < p.count; i += THREADS)
            sum = fma((double)g[i], (double)g[i], sum);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        part[blockIdx.x] = sum;
}

/* As torch's clip_grad_norm_: the factor is clip / (norm + 1e-6), at most 1. A norm that is not
 * finite stops all updates. */
__global__ void __launch_bounds__(1024)
    norm_join(const double *part, int parts, const engine_step *step, step_result *result)
{
    double sum = 0;
    for (int i = threadIdx.x; i < parts; i += blockDim.x)
        sum += part[i];
    sum = block_sum(sum);
    if (threadIdx.x > 0)
        return;
    double norm = sqrt(sum), factor = step->clip / (norm + 1e-6);
    result->grad_norm = norm;
    result->clip_factor = step->clip > 0 && !(factor > 1) ? factor : 1;
    if (!isfinite(norm))
        result->fault = 1;
}

__global__ void __launch_bounds__(THREADS) accumulate(float *partial, float *g, const engine_step *step, int64_t count)
{
    unsigned levels = sum_levels(step);
    int level = sum_level(step);
    float *to = level < 0 ? g : partial + level * count;
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        float sum = g[i];
        for (int k = 0; levels >> k; k++)
            if (levels >> k & 1)
                sum = partial[k * count + i] + sum;
        to[i] = sum;
    }
}

} // namespace

extern "C" {

void cuda_accumulate(const op_call *c)
{
    const param_table *t = c->params;
    accumulate<<<blocks_for(t->total), THREADS, 0, cuda_device_of(c)->stream>>>(
        (float *)t->partial_sums, (float *)t->gradient, c->step, t->total);
    cuda_launched(c);
}

size_t cuda_grad_norm_workspace(const op_call *c)
{
    size_t pieces = 0;
    for (int i = 0; i < c->params->count; i++)
        pieces += (size_t)((c->params->spans[i].count + PIECE - 1) / PIECE);
    return pieces * sizeof(double);
}

void cuda_grad_norm(const op_call *c)
{
    cuda_stream s = cuda_device_of(c)->stream;
    squares<<<(unsigned)piece_count(c), THREADS, 0, s>>>(job_of(c), (double *)c->workspace);
    norm_join<<<1, 1024, 0, s>>>((const double *)c->workspace, piece_count(c), c->step, c->result);
    cuda_launched(c);
}

void cuda_adamw(const op_call *c)
{
    adamw<<<(unsigned)piece_count(c), THREADS, 0, cuda_device_of(c)->stream>>>(job_of(c));
    cuda_launched(c);
}

void cuda_sgd(const op_call *c)
{
    sgd<<<(unsigned)piece_count(c), THREADS, 0, cuda_device_of(c)->stream>>>(job_of(c));
    cuda_launched(c);
}

void cuda_ema(const op_call *c)
{
    ema<<<(unsigned)piece_count(c), THREADS, 0, cuda_device_of(c)->stream>>>(job_of(c));
    cuda_launched(c);
}

void cuda_shadow(const op_call *c)
{
    if (!c->params->shadow)
        return;
    shadow<<<(unsigned)piece_count(c), THREADS, 0, cuda_device_of(c)->stream>>>(job_of(c));
    cuda_launched(c);
}
}
