/* act/cuda/estimate.cuh - values and derivatives for bf16 results that need not be exact.
 * SPDX-License-Identifier: MIT
 *
 *     estimate_value(x, k), estimate_slope(x, k), estimate_param_slopes(x, k, by)
 *     estimate_slope_from_output(y, k), estimate_param_slopes_from_output(y, k, by)
 *     ESTIMATE_SHORT(k)     whether the parameters allow short forms: a kernel has a copy of its
 *                           loop in which the compiler knows that they do
 *
 * within 2^-13 of the result: a sixteenth of the rounding to bf16. Where a derivative passes
 * through zero the bound is 2^-16, where a value is tiny (GELU below -QUICK_END) 2^-29; a result
 * beyond 2^127 may be infinite. Checked on all inputs by tests/act/test_cuda_quick.c. Formulas with
 * a quick form (quick.cuh) use it without its bound, which is most of its cost; GELU has a shorter
 * polynomial, BerLU one form for every alpha; from the output roots, quotients and logarithms are
 * the chip's; all others are the formula itself. Included after quick.cuh, by fused.cuh. */
#ifndef ACT_CUDA_ESTIMATE_CUH
#define ACT_CUDA_ESTIMATE_CUH

#if defined(ACT_FORMULAS_GELU_H)

/* P(X < -t) as quick_tail() computes it, with a polynomial fitted to 2^-15.7 for t < QUICK_END. */
static __device__ __forceinline__ float estimate_tail(float t, float *density)
{
    float u = quick_reciprocal(fmaf(t, 0.37f, 1.0f)), p = -0.09273937f;
    p = fmaf(p, u, 0.21532594f);
    p = fmaf(p, u, 0.07191256f);
    p = fmaf(p, u, 0.15871206f);
    p = fmaf(p, u, 0.14677981f);
    *density = quick_exp2(t * (t * (-0.5f * QUICK_LOG2E)));
    return *density * (u * p);
}

static __device__ __forceinline__ float estimate_value(float x, const act_consts &)
{
    float t = quick_min(fabsf(x), QUICK_END), density;
    return fmaf(-t, estimate_tail(t, &density), fmaxf(x, 0.0f));
}

static __device__ __forceinline__ float estimate_slope(float x, const act_consts &)
{
    float t = quick_min(fabsf(x), QUICK_END), density, tail = estimate_tail(t, &density);
    float part = fmaf(t * -0.398942280f, density, tail);
    return x < 0 ? part : 1.0f - part;
}

#elif defined(ACT_FORMULAS_BERLU_H)

/* A learned alpha usually becomes negative in training. The formula then takes a longer form, so
 * that f' is 1 and d/dalpha 0 to the bit right of eps; beside a product a difference of
 * 2^-24 |alpha| is as good. */
#define ESTIMATE_SHORT(k) ((k)->order == 1 && fabsf((k)->alpha) <= 64.0f)

static __device__ __forceinline__ float estimate_value(float x, const act_consts &k)
{
    return ESTIMATE_SHORT(&k) ? berlu_smoothed(x, berlu_line_any(x, &k), &k) : act_value(x, &k);
}

static __device__ __forceinline__ float estimate_slope(float x, const act_consts &k)
{
    return ESTIMATE_SHORT(&k) ? berlu_slope_unit_interval(x, &k) : act_slope(x, &k);
}

static __device__ __forceinline__ void estimate_param_slopes(float x, const act_consts &k, float *by)
{
    act_param_slopes(x, &k, by);
    if (ESTIMATE_SHORT(&k))
        by[0] = berlu_slope_by_alpha_short(x, &k);
}

#else

static __device__ __forceinline__ float estimate_value(float x, const act_consts &k)
{
    return QUICK_VALUE ? quick_value(x, k).near : act_value(x, &k);
}

static __device__ __forceinline__ float estimate_slope(float x, const act_consts &k)
{
    return QUICK_SLOPE ? quick_slope(x, k).near : act_slope(x, &k);
}

#endif

#ifndef ESTIMATE_SHORT
#define ESTIMATE_SHORT(k) (ACT_FAST_PATH(k) && ACT_EXACT_KNEE(k))

static __device__ __forceinline__ void estimate_param_slopes(float x, const act_consts &k, float *by)
{
    act_param_slopes(x, &k, by);
}

#endif

/* ---- From the output ------------------------------------------------------------------------- */

/* Exact roots and divisions are a call where they leave their common range, and they do in nearly
 * every warp: right of the kink 0 is divided, and left of it the root of 0 is taken. */

#if defined(ACT_FORMULAS_BERLU_H)

/* For every alpha above 0, unlike quick_slope_from_output(): the root is held between the slopes
 * themselves, because their squares may be too small or too large. */
static __device__ __forceinline__ float estimate_slope_from_output(float y, const act_consts &k)
{
    float root = quick_root(quick_max(berlu_slope_squared(y, &k), 0.0f));
    return quick_min(quick_max(root, fminf(k.alpha, 1.0f)), fmaxf(k.alpha, 1.0f));
}

#elif defined(ACT_FORMULAS_SMELU_H)

static __device__ __forceinline__ float estimate_slope_from_output(float y, const act_consts &k)
{
    return quick_min(quick_root(quick_max(k.square * 4.0f * y, 0.0f)), 1.0f);
}

#elif defined(ACT_FORMULAS_RELU2_H)

static __device__ __forceinline__ float estimate_slope_from_output(float y, const act_consts &)
{
    return 2.0f * quick_root(y);
}

#else

static __device__ __forceinline__ float estimate_slope_from_output(float y, const act_consts &k)
{
    return act_slope_from_output(y, &k);
}

#endif

#if defined(ACT_FORMULAS_BERLU_H)

static __device__ __forceinline__ void estimate_param_slopes_from_output(float y, const act_consts &k, float *by)
{
    float g = estimate_slope_from_output(y, k), per_eps = k.quarter * 4.0f;
    float held = fminf(fmaxf(y, -(k.alpha * k.eps)), k.eps), ratio = (k.eps - held) * quick_reciprocal(1.0f + g);
    by[0] = quick_alpha_from_output(y, g, k);
    by[1] = k.jump * (ratio * per_eps) * (fmaf(held, per_eps, k.alpha) * quick_reciprocal(g + k.alpha));
}

#elif defined(ACT_FORMULAS_SMELU_H)

static __device__ __forceinline__ void estimate_param_slopes_from_output(float y, const act_consts &k, float *by)
{
    float g = estimate_slope_from_output(y, k);
    by[0] = g * (1.0f - g);
}

#elif defined(ACT_FORMULAS_LEAKY_H) || defined(ACT_FORMULAS_ELU_H)

/* For alpha from 2^-126 to 2^126: beyond, the chip's reciprocal is infinite or 0. */
static __device__ __forceinline__ void estimate_param_slopes_from_output(float y, const act_consts &k, float *by)
{
    by[0] = quick_min(y, 0.0f) * quick_reciprocal(k.alpha);
}

#elif defined(ACT_FORMULAS_CELU_H)

/* u - z e^z, u = y / alpha and e^z = 1 + u. Where y was rounded to -alpha, z e^z is 0. */
static __device__ __forceinline__ void estimate_param_slopes_from_output(float y, const act_consts &k, float *by)
{
    float u = quick_max(quick_min(y, 0.0f) * k.inverse, -1.0f), power = quick_max(1.0f + u, 0x1p-30f);
    by[0] = fmaf(-power, quick_log2(power) * (1.0f / QUICK_LOG2E), u);
}

#else

static __device__ __forceinline__ void estimate_param_slopes_from_output(float y, const act_consts &k, float *by)
{
    act_param_slopes_from_output(y, &k, by);
}

#endif

#endif
