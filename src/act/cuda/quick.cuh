/* act/cuda/quick.cuh - fast estimates with an error bound checked on every 16-bit input, on CUDA.
 * SPDX-License-Identifier: MIT
 *
 * A stored 16-bit element is the exact f32 formula, rounded. With half the bytes of f32 and as many
 * instructions that formula is slower than the memory. But a rounding to 8 or 11 bits discards most
 * of it: an estimate by the chip's own exponential and reciprocal (22 bits) together with a bound
 * on its error gives two ends, and rounding is monotone, so where both ends round to the same
 * number that number is the result. Where they do not (a few in ten thousand) the formula itself
 * runs. So the bits are those of the formula, whatever the chip's approximations do within the
 * bound.
 *
 *     quick_value(x, k), quick_slope(x, k)   near and within: the f32 result of act_value() or
 *                                            act_slope() lies in near - within .. near + within,
 *                                            as f32 numbers; NaN for a NaN only
 *     quick_slope_from_output(y, k)          the same for act_slope_from_output() where QUICK_FITS
 *     quick_alpha_from_output(y, g, k)       the first of act_param_slopes_from_output() from the
 *                                            slope, within 2^-19 of it: a term of a sum
 *
 * QUICK_VALUE, QUICK_SLOPE and QUICK_FROM_OUTPUT tell which of them the activation has;
 * QUICK_SLOPE_DEPTH is the number of a thread's accesses in flight for derivatives, as measured;
 * QUICK_LOOKUP means that in f16 a table of derivatives is faster, because the estimate of a
 * derivative with 11 bits is undecided too often. tests/act/test_cuda_quick.c compares the bounds
 * with the formula on all inputs of both formats; they are 1.3 times the largest error measured on
 * an H200, and for the root of quick_slope_from_output() 4 times the one that PTX promises.
 * Included after a formula header, by kernel.cu. */
#ifndef ACT_CUDA_QUICK_CUH
#define ACT_CUDA_QUICK_CUH

struct guess {
    float near, within;
};

#define QUICK_TINY  0x1p-105f /* exceeds every error from cutting a far tail or flushing to zero */
#define QUICK_LOG2E 1.44269504f

#ifdef CUDA_EMULATED
DEVICE float quick_exp2(float t)
{
    return exp2f(t);
}

DEVICE float quick_reciprocal(float a)
{
    return 1.0f / a;
}

DEVICE float quick_root(float a)
{
    return sqrtf(a);
}

DEVICE float quick_log2(float a)
{
    return log2f(a);
}

DEVICE float quick_max(float x, float low)
{
    return x < low ? low : x;
}

DEVICE float quick_min(float x, float high)
{
    return x > high ? high : x;
}
#else
/* 2^t, 1 / a and sqrt(a), about 2^-22; results below 2^-126 are zero */
static __device__ __forceinline__ float quick_exp2(float t)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(t));
    return y;
}

static __device__ __forceinline__ float quick_reciprocal(float a)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}

static __device__ __forceinline__ float quick_root(float a)
{
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}

/* log2(a), within 2^-22 for a from 1/2 to 2, and beyond within 2^-22 of the result */
static __device__ __forceinline__ float quick_log2(float a)
{
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}

/* The larger, the smaller; a NaN stays, where fmaxf and fminf would drop it. */
static __device__ __forceinline__ float quick_max(float x, float low)
{
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(x), "f"(low));
    return x;
}

static __device__ __forceinline__ float quick_min(float x, float high)
{
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(x), "f"(high));
    return x;
}
#endif

/* Relative error bound of a result: `base` for exponential, reciprocal and the formula itself, and
 * the rounding of the exponent t, which counts |t| times, so `growth` for each unit of it. */
static __device__ __forceinline__ float quick_share(float t, float growth, float base)
{
    return fmaf(fabsf(t), growth, base);
}

#if defined(ACT_FORMULAS_SILU_H)

#define QUICK_VALUE 1
#define QUICK_SLOPE 1

/* x s, s = 1 / (1 + e^-x). Below -80 the result is smaller than QUICK_TINY. */
static __device__ __forceinline__ guess quick_value(float x, const act_consts &)
{
    float z = quick_max(x, -80.0f), t = z * -QUICK_LOG2E, y = z * quick_reciprocal(1.0f + quick_exp2(t));
    return {y, fmaf(fabsf(y), quick_share(t, 0x1p-24f, 0x1.6p-22f), QUICK_TINY)};
}

/* s + x s (1 - s), with 1 - s = s e^-x */
static __device__ __forceinline__ guess quick_slope(float x, const act_consts &)
{
    float z = quick_min(quick_max(x, -80.0f), 80.0f), t = z * -QUICK_LOG2E, e = quick_exp2(t);
    float s = quick_reciprocal(1.0f + e), m = z * s * (s * e);
    float slope = s + m;
    return {slope, fmaf(fabsf(slope), quick_share(t, 0x1.8p-24f, 0x1p-23f), fmaf(s, 0x1.ep-23f, QUICK_TINY))};
}

#elif defined(ACT_FORMULAS_GELU_TANH_H)

#define QUICK_VALUE 1
#define QUICK_SLOPE 1
#define QUICK_A     2.30220819f /* w log2(e) = x (A + B x^2), gelu_tanh.h */

/* x s, s = 1 / (1 + e^-w); below -10 smaller than QUICK_TINY */
static __device__ __forceinline__ guess quick_value(float x, const act_consts &)
{
    float z = quick_max(x, -10.0f), t = z * -fmaf(z * z, TANH_B, QUICK_A);
    float y = z * quick_reciprocal(1.0f + quick_exp2(t));
    return {y, fmaf(fabsf(y), quick_share(t, 0x1.8p-24f, 0x1.6p-22f), QUICK_TINY)};
}

/* s + x w' s (1 - s), with 1 - s = s e^-w */
static __device__ __forceinline__ guess quick_slope(float x, const act_consts &)
{
    float z = quick_min(quick_max(x, -10.0f), 10.0f), square = z * z, t = z * -fmaf(square, TANH_B, QUICK_A);
    float e = quick_exp2(t), s = quick_reciprocal(1.0f + e), m = z * fmaf(square, TANH_3E, TANH_D) * s * (s * e);
    float slope = s + m;
    return {slope, fmaf(fabsf(slope), quick_share(t, 0x1p-23f, 0x1p-23f), fmaf(s, 0x1.2p-22f, QUICK_TINY))};
}

#elif defined(ACT_FORMULAS_GELU_H)

#define QUICK_VALUE       1
#define QUICK_SLOPE       1
#define QUICK_LOOKUP      1
#define QUICK_SLOPE_DEPTH 4
#define QUICK_END         6.25f /* beyond it P(X < -t) and its product with t are below 2^-29 */

/* P(X < -t) = e^(-t^2/2) u p(u) with u = 1 / (1 + 0.29 t), p fitted for t < QUICK_END to 2^-26 */
static __device__ __forceinline__ float quick_tail(float t, float exponent, float *density)
{
    float u = quick_reciprocal(fmaf(t, 0.29f, 1.0f)), p = 0.0394993946f;
    p = fmaf(p, u, -0.19308632f);
    p = fmaf(p, u, 0.305188641f);
    p = fmaf(p, u, -0.148056706f);
    p = fmaf(p, u, 0.181694344f);
    p = fmaf(p, u, 0.0795452452f);
    p = fmaf(p, u, 0.119796439f);
    p = fmaf(p, u, 0.115418968f);
    *density = quick_exp2(exponent);
    return *density * (u * p);
}

/* max(x, 0) - t P(X < -t) */
static __device__ __forceinline__ guess quick_value(float x, const act_consts &)
{
    float t = quick_min(fabsf(x), QUICK_END), exponent = t * (t * (-0.5f * QUICK_LOG2E)), density;
    float y = fmaf(-t, quick_tail(t, exponent, &density), fmaxf(x, 0.0f));
    return {y, fmaf(fabsf(y), quick_share(exponent, 0x1p-24f, 0x1.2p-21f), 0x1p-29f)};
}

/* at -t: P - t density, and 1 minus that at t */
static __device__ __forceinline__ guess quick_slope(float x, const act_consts &)
{
    float t = quick_min(fabsf(x), QUICK_END), exponent = t * (t * (-0.5f * QUICK_LOG2E)), density;
    float tail = quick_tail(t, exponent, &density), m = t * 0.398942280f * density, part = tail - m;
    return {x < 0 ? part : 1.0f - part,
            fmaf(tail + m, quick_share(exponent, 0x1p-24f, 0x1.cp-22f), x < 0 ? 0x1p-26f : 0x1p-22f)};
}

#elif defined(ACT_FORMULAS_MISH_H)

#define QUICK_VALUE  1
#define QUICK_SLOPE  1
#define QUICK_LOOKUP 1

/* x q / (q + 2) with n = e^x, q = n (n + 2): tanh(log(1 + n)) without a logarithm; from 20 on x */
static __device__ __forceinline__ guess quick_value(float x, const act_consts &)
{
    float z = quick_max(x, -80.0f), t = fminf(z, 20.0f) * QUICK_LOG2E, n = quick_exp2(t), q = n * (n + 2.0f);
    float y = z * (q * quick_reciprocal(q + 2.0f));
    return {y, fmaf(fabsf(y), quick_share(t, 0x1p-23f, 0x1.9p-22f), QUICK_TINY)};
}

/* T + x T' with r = 1 / (q + 2), T = q r, T' = 4 r^2 n (n + 1) */
static __device__ __forceinline__ guess quick_slope(float x, const act_consts &)
{
    float z = quick_min(quick_max(x, -80.0f), 20.0f), t = z * QUICK_LOG2E, n = quick_exp2(t), q = n * (n + 2.0f);
    float r = quick_reciprocal(q + 2.0f), inside = q * r, m = z * (4.0f * r) * (r * fmaf(n, n, n));
    float slope = inside + m;
    return {slope, fmaf(fabsf(slope), quick_share(t, 0x1p-23f, 0x1.6p-23f), fmaf(inside, 0x1.8p-22f, QUICK_TINY))};
}

#elif defined(ACT_FORMULAS_ELU_H) || defined(ACT_FORMULAS_SELU_H)

#define QUICK_VALUE 0
#define QUICK_SLOPE 1

static __device__ __forceinline__ guess quick_slope(float x, const act_consts &k)
{
#ifdef ACT_FORMULAS_ELU_H
    const float left = k.alpha, right = k.right;
#else
    const float left = SELU_LEFT, right = SELU_RIGHT;
#endif
    float t = quick_max(x * QUICK_LOG2E, -200.0f), y = left * quick_exp2(t);
    float flushed = fmaf(fabsf(left), 0x1p-125f, QUICK_TINY); /* alpha may be large */
    float within = fmaf(fabsf(y), quick_share(t, 0x1p-24f, 0x1.6p-22f), flushed);
    return {x > 0 ? right : y, x > 0 ? 0.0f : within};
}

#elif defined(ACT_FORMULAS_CELU_H)

#define QUICK_VALUE 1
#define QUICK_SLOPE 1

static __device__ __forceinline__ guess quick_slope(float x, const act_consts &k)
{
    float t = quick_max(x * k.inverse * QUICK_LOG2E, -200.0f), y = k.right * quick_exp2(t);
    float within = fmaf(fabsf(y), quick_share(t, 0x1p-23f, 0x1.6p-22f), QUICK_TINY);
    return {x > 0 ? k.right : y, x > 0 ? 0.0f : within};
}

/* alpha (e^z - 1), by the series where the two would cancel, alpha z being x. On the right x
 * itself, which has 16 bits and so is far from a rounding boundary. */
static __device__ __forceinline__ guess quick_value(float x, const act_consts &k)
{
    float z = x * k.inverse, t = z * QUICK_LOG2E, far = fmaf(k.alpha, quick_exp2(t), -k.alpha), p = 1.9841270e-4f;
    p = fmaf(p, z, 1.3888889e-3f);
    p = fmaf(p, z, 8.3333333e-3f);
    p = fmaf(p, z, 4.1666667e-2f);
    p = fmaf(p, z, 0.16666667f);
    p = fmaf(p, z, 0.5f);
    float near = fmaf(p * z, x, x), right = x * k.right, y = fabsf(z) < 0.5f ? near : far;
    y = x > 0 ? right : y;
    return {y, fmaf(fabsf(y), quick_share(fmaxf(t, 0.0f), 0x1p-23f, 0x1.dp-22f), QUICK_TINY)}; /* t > 0: alpha < 0 */
}

#elif defined(ACT_FORMULAS_BERLU_H)

#define QUICK_VALUE       0
#define QUICK_SLOPE       0
#define QUICK_FROM_OUTPUT 1
#define QUICK_FITS(k)     ((k)->alpha >= 0x1p-50f && (k)->alpha <= 0x1p50f)

/* The root by the chip, 2^-22, of the same square as in the formula. Held between the squares of
 * the two slopes, whose roots are these to the bit, it needs no other limit. The formula's root and
 * its division are a hundred instructions where they leave their common range, and they do: right
 * of eps 0 is divided. */
static __device__ __forceinline__ guess quick_slope_from_output(float y, const act_consts &k)
{
    float low = fminf(k.alpha, 1.0f), high = fmaxf(k.alpha, 1.0f);
    float g = quick_root(quick_min(quick_max(berlu_slope_squared(y, &k), low * low), high * high));
    return {g, g * 0x1p-21f};
}

/* -(eps - y)^2 / (eps (1 + g)^2) for y held to -alpha eps .. eps, and the part beyond over alpha */
static __device__ __forceinline__ float quick_alpha_from_output(float y, float g, const act_consts &k)
{
    float beyond = fminf(fmaf(k.alpha, k.eps, y), 0.0f), held = fminf(fmaxf(y, -(k.alpha * k.eps)), k.eps);
    float ratio = (k.eps - held) * quick_reciprocal(1.0f + g);
    return fmaf(-(ratio * ratio), k.quarter * 4.0f, beyond * k.inverse_alpha);
}

#else

#ifdef ACT_QUICK
#error "the formula says that there is an estimate of it, and none of the names above is its header's"
#endif
#define QUICK_VALUE 0
#define QUICK_SLOPE 0

#endif

#ifndef QUICK_SLOPE_DEPTH
#define QUICK_SLOPE_DEPTH 2
#endif

#ifndef QUICK_FROM_OUTPUT
#define QUICK_FROM_OUTPUT 0
#define QUICK_FITS(k)     0
static __device__ __forceinline__ guess quick_slope_from_output(float, const act_consts &)
{
    return {};
}
static __device__ __forceinline__ float quick_alpha_from_output(float, float, const act_consts &)
{
    return 0;
}
#endif
#if !QUICK_VALUE
static __device__ __forceinline__ guess quick_value(float, const act_consts &)
{
    return {};
}
#endif
#if !QUICK_SLOPE
static __device__ __forceinline__ guess quick_slope(float, const act_consts &)
{
    return {};
}
#endif

#endif
