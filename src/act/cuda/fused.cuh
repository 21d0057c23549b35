/* act/cuda/fused.cuh - elements of an activation beside a product. SPDX-License-Identifier: MIT
 *
 *     consts_at(job)                        constants of the formula, for parameters on the device
 *     value_estimate(), values_estimate()   y from x, one element or eight
 *     values_beside()                       eight, whatever the parameters are
 *     slope_estimate(), slopes_estimate()   dx from x or y and dy; its terms of sums over columns
 *                                           and parameters
 *
 * Elements are estimates good to 2^-13 where a formula is long (estimate.cuh). Included by the
 * kernels that are compiled once per activation: fused.cu, src/cuda/rows.cu and src/cuda/mlp.cu.
 * SCALED: the activation has scale or center. FUSED_APART: measured on an H200, this activation is
 * faster in a pass of its own than in the epilogue of a product. */
#ifndef ACT_CUDA_FUSED_CUH
#define ACT_CUDA_FUSED_CUH

#include "act/cuda/fused_job.h"
#include "act/cuda/storage.cuh"
#include ACT_FORMULA

#include "act/cuda/quick.cuh"
#include "act/formulas/full.h"

#include "act/cuda/estimate.cuh"

constexpr int PARAMS = ACT_PARAMS, WIDTH = 8;

/* Long formulas without an estimate want more threads than share a processor there; so do a
 * smoothed function's tables of pieces. */
#if defined(ACT_FORMULAS_SMOOTHED_H) || (ACT_COSTLY && !(QUICK_VALUE && QUICK_SLOPE))
#define FUSED_APART 1
#else
#define FUSED_APART 0
#endif

static __device__ __forceinline__ consts consts_at(const fused_job &job)
{
    const act_shape shape = {job.degree, (size_t)job.shape_count, job.shape_numbers, nullptr};
    float params[PARAMS ? PARAMS : 1] = {};
#pragma unroll
    for (int p = 0; p < PARAMS; p++)
        params[p] = job.param[p] ? *job.param[p] : job.own[p];
    return consts_make(params, &shape, job.scale, job.center);
}

/* One element. */
template <bool SCALED> static __device__ __forceinline__ float value_estimate(float x, const consts &k)
{
    return SCALED ? (estimate_value(x * k.scale, k.f) - k.offset) * quick_reciprocal(k.scale) : estimate_value(x, k.f);
}

/* What is read beside dy: x, x of a function with scale or center, or the output. */
enum slope_of { FROM_X, FROM_SCALED_X, FROM_OUTPUT };

/* Are the short forms allowed? All threads agree. There is one form from the output. A macro,
 * because the compiler assumes nothing of a function's result. */
#define SHORT_FORM(from, k) ((from) == FROM_OUTPUT || ESTIMATE_SHORT(&(k).f))

/* One element of dx; its terms are added to the sums of the first SUMS parameters. */
template <int SUMS, slope_of FROM>
static __device__ __forceinline__ float slope_estimate(float x, float dy, const consts &k, float *sum)
{
    constexpr bool SCALED = FROM == FROM_SCALED_X;
    if constexpr (SUMS > 0) {
        float by[PARAMS];
        if (FROM == FROM_OUTPUT)
            estimate_param_slopes_from_output(x, k.f, by);
        else if (SCALED)
            full_param_slopes(x, &k, 0, by);
        else
            estimate_param_slopes(x, k.f, by);
#pragma unroll
        for (int p = 0; p < SUMS; p++)
            sum[p] = fmaf(dy, by[p], sum[p]);
    }
    if (FROM == FROM_OUTPUT)
        return dy * estimate_slope_from_output(x, k.f);
    return dy * estimate_slope(SCALED ? x * k.scale : x, k.f);
}

/* Eight elements. */
template <bool SCALED> static __device__ __forceinline__ uint4 values_estimate(uint4 x, const consts &k)
{
    float v[WIDTH];
    unpack<BERLU_BF16>(x, v);
#pragma unroll
    for (int j = 0; j < WIDTH; j++)
        v[j] = value_estimate<SCALED>(v[j], k);
    return pack<BERLU_BF16>(v);
}

/* The same where the parameters may forbid the short form (ESTIMATE_SHORT): a copy in which the
 * compiler knows that they do not, and a loop over single elements in local memory; unrolled, the
 * long forms take half a minute to compile. */
static __device__ __forceinline__ uint4 values_beside(uint4 x, const consts &k)
{
    if (ESTIMATE_SHORT(&k.f)) {
        __builtin_assume(ESTIMATE_SHORT(&k.f));
        return values_estimate<false>(x, k);
    }
    float v[WIDTH];
    unpack<BERLU_BF16>(x, v);
#pragma unroll 1
    for (int j = 0; j < WIDTH; j++)
        v[j] = value_estimate<false>(v[j], k);
    return pack<BERLU_BF16>(v);
}

/* Eight elements of dx, added to the sums of their columns. */
template <int SUMS, slope_of FROM>
static __device__ __forceinline__ uint4 slopes_estimate(uint4 x, const float *dy, const consts &k, float *column,
                                                        float *sum)
{
    float v[WIDTH];
    unpack<BERLU_BF16>(x, v);
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        v[j] = slope_estimate<SUMS, FROM>(v[j], dy[j], k, sum);
        column[j] += v[j];
    }
    return pack<BERLU_BF16>(v);
}

#endif
