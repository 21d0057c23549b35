/* quick_check_cuda.cu - compares cuda/quick.cuh and cuda/estimate.cuh with the formula.
 * SPDX-License-Identifier: MIT
 *
 * Compiled once per activation that has a quick form or an estimate of its own, as cuda/kernel.cu
 * is; QUICK_CHECK is the name of the exported function. It evaluates all 65,536 inputs of a 16-bit
 * format and returns the worst error as a share of the bound that the header promises, or -1 where
 * the device failed. test_cuda_quick.c calls it. */
#include "act/cuda/kernels.h"
#include "act/cuda/storage.cuh"
#include ACT_FORMULA

#include "act/cuda/quick.cuh"
#include "act/formulas/full.h"

#include "act/cuda/estimate.cuh"

namespace
{

enum { INPUTS = 65536, THREADS = 256, BY_ALPHA = 2, FROM_OUTPUT, PARAMS_FROM_OUTPUT };

/* Above 1: not enclosed, or NaN for a number. A NaN end makes the kernels compute, unless both
 * are. */
__device__ float distance(float x, float exact, guess g)
{
    float low = g.near - g.within, high = g.near + g.within;
    if (isnan(low) || isnan(high))
        return isnan(low) && isnan(high) && !isnan(x) && !isnan(exact) ? INFINITY : 0.0f;
    if (!(exact >= low && exact <= high))
        return INFINITY;
    return g.within > 0 && !isinf(g.near) ? (float)(fabs((double)exact - g.near) / g.within) : 0.0f;
}

/* The bound of estimate.cuh: relative, or `least` where the result is smaller. A result near the
 * end of the floats may be infinite. */
__device__ float estimate_distance(float exact, float got, double least)
{
    if (isnan(exact) || isinf(exact))
        return isnan(exact) == isnan(got) && (isnan(exact) || got == exact) ? 0.0f : INFINITY;
    if (isinf(got) && fabsf(exact) >= 0x1p127f && (got > 0) == (exact > 0))
        return 0.0f;
    double bound = fmax(0x1p-13 * fabs((double)exact), least), error = fabs((double)exact - got);
    return isnan(error) ? INFINITY : (float)(error / bound);
}

/* d/dalpha cancels near the end of the transition: there it is good to a few ulp of eps. */
__device__ float alpha_distance(float x, const act_consts &k)
{
    float exact[ACT_PARAMS + 1] = {}, got[ACT_PARAMS + 1] = {};
    act_param_slopes(x, &k, exact);
    estimate_param_slopes(x, k, got);
    return estimate_distance(exact[0], got[0], 0x1p-27);
}

/* From y: the slope encloses, and the terms of the gradient of alpha are within 2^-19, which is a
 * 64th of the bound of estimates. A term of the formula has 2 ulp of eps itself. Estimates hold for
 * every alpha above 0. */
__device__ float from_output_distance(float y, const act_consts &k, int params, int estimate)
{
#if QUICK_FROM_OUTPUT
    if (estimate ? !(k.alpha > 0) : !QUICK_FITS(&k))
        return 0.0f; /* the kernels then use the formula, or are not called */
    guess g = quick_slope_from_output(y, k);
    if (!params)
        return estimate ? estimate_distance(act_slope_from_output(y, &k), estimate_slope_from_output(y, k), 0x1p-16)
                        : distance(y, act_slope_from_output(y, &k), g);
    float exact[ACT_PARAMS], got[ACT_PARAMS];
    act_param_slopes_from_output(y, &k, exact);
    if (!estimate)
        return 64.0f * estimate_distance(exact[0], quick_alpha_from_output(y, g.near, k), 0x1p-30);
    estimate_param_slopes_from_output(y, k, got);
    return fmaxf(estimate_distance(exact[0], got[0], 0x1p-27), estimate_distance(exact[1], got[1], 0x1p-16));
#else
    return 0.0f;
#endif
}

__global__ void check(float *out, float alpha, int dtype, int slope, int estimate)
{
    uint16_t bits = (uint16_t)(blockIdx.x * THREADS + threadIdx.x);
    const float params[] = {alpha, 0.01f};
    const act_shape shape = {2, 0, nullptr, nullptr};
    const act_consts k = act_prepare(params, &shape);
    float x = load_one(&bits, dtype, 0);
    if (slope >= FROM_OUTPUT)
        out[bits] = from_output_distance(x, k, slope == PARAMS_FROM_OUTPUT, estimate);
    else if (slope == BY_ALPHA)
        out[bits] = ACT_PARAMS && estimate ? alpha_distance(x, k) : 0.0f;
    else if (estimate)
        out[bits] = slope ? estimate_distance(act_slope(x, &k), estimate_slope(x, k), 0x1p-16)
                          : estimate_distance(act_value(x, &k), estimate_value(x, k), 0x1p-29);
    else
        out[bits] =
            slope ? distance(x, act_slope(x, &k), quick_slope(x, k)) : distance(x, act_value(x, &k), quick_value(x, k));
}

} // namespace

extern "C" float QUICK_CHECK(float alpha, berlu_dtype dtype, int slope, int estimate)
{
    if (slope < FROM_OUTPUT && !estimate && (slope ? !QUICK_SLOPE : !QUICK_VALUE))
        return 0;
    static float host[INPUTS];
    float *device, worst = 0;
    if (cudaMalloc(&device, sizeof host) != cudaSuccess)
        return -1;
    check<<<INPUTS / THREADS, THREADS>>>(device, alpha, dtype, slope, estimate);
    cudaError_t error = cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
    cudaFree(device);
    for (int i = 0; i < INPUTS; i++)
        worst = host[i] > worst ? host[i] : worst;
    return error == cudaSuccess ? worst : -1;
}
