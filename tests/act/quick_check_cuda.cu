/* quick_check_cuda.cu - compares cuda/quick.cuh and cuda/estimate.cuh with the formula.
 * SPDX-License-Identifier: MIT
 *
 * Compiled once per activation that has a quick form or an estimate of its own, as cuda/kernel.cu
 * is; QUICK_CHECK is the name of the exported function. It evaluates all 65,536 inputs of a 16-bit
 * format and returns the worst error as a share of the bound that the header promises, or -1 where
 * the device failed. test_cuda_quick.c calls it. With CUDA_EMULATED the host evaluates them, with
 * exact roots, quotients, powers and logarithms. */
#ifdef CUDA_EMULATED
#include "cuda/prim.cuh" /* the emulation */

extern "C" {
#include "base/half.h" /* the scalar words convert by it */
}
#endif

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
 * 64th of the bound of estimates. A term of the formula has 2 ulp of eps itself. */
__device__ float from_output_distance(float y, const act_consts &k, int params)
{
#if QUICK_FROM_OUTPUT
    if (!QUICK_FITS(&k))
        return 0.0f; /* the kernels then use the formula */
    guess g = quick_slope_from_output(y, k);
    if (!params)
        return distance(y, act_slope_from_output(y, &k), g);
    float exact[ACT_PARAMS];
    act_param_slopes_from_output(y, &k, exact);
    return 64.0f * estimate_distance(exact[0], quick_alpha_from_output(y, g.near, k), 0x1p-30);
#else
    return 0.0f;
#endif
}

/* Estimates from y hold for every parameter above 0, where it is a value of the function at all. */
__device__ float estimate_from_output_distance(float y, const act_consts &k, int params)
{
    float slope = act_slope_from_output(y, &k), worst = 0.0f;
    if (isnan(slope) && !isnan(y))
        return 0.0f;
    if (!params)
        return estimate_distance(slope, estimate_slope_from_output(y, k), 0x1p-16);
    float exact[ACT_PARAMS + 1] = {}, got[ACT_PARAMS + 1] = {};
    act_param_slopes_from_output(y, &k, exact);
    estimate_param_slopes_from_output(y, k, got);
    for (int p = 0; p < ACT_PARAMS; p++)
        worst = fmaxf(worst, estimate_distance(exact[p], got[p], QUICK_FROM_OUTPUT && p == 0 ? 0x1p-27 : 0x1p-16));
    return worst;
}

__device__ float share_of_bound(int bits, float alpha, int dtype, int slope, int estimate)
{
    const uint16_t raw = (uint16_t)bits;
    const float params[] = {alpha, 0.01f};
    const act_shape shape = {2, 0, nullptr, nullptr};
    const act_consts k = act_prepare(params, &shape);
    float x = load_one(&raw, dtype, 0);
    if (slope >= FROM_OUTPUT && estimate)
        return ACT_FROM_OUTPUT && alpha > 0 ? estimate_from_output_distance(x, k, slope == PARAMS_FROM_OUTPUT) : 0.0f;
    if (slope >= FROM_OUTPUT)
        return from_output_distance(x, k, slope == PARAMS_FROM_OUTPUT);
    if (slope == BY_ALPHA)
        return ACT_PARAMS && estimate ? alpha_distance(x, k) : 0.0f;
    if (estimate)
        return slope ? estimate_distance(act_slope(x, &k), estimate_slope(x, k), 0x1p-16)
                     : estimate_distance(act_value(x, &k), estimate_value(x, k), 0x1p-29);
    return slope ? distance(x, act_slope(x, &k), quick_slope(x, k)) : distance(x, act_value(x, &k), quick_value(x, k));
}

#ifdef CUDA_EMULATED
bool shares_of_bound(float *out, float alpha, int dtype, int slope, int estimate)
{
    for (int i = 0; i < INPUTS; i++)
        out[i] = share_of_bound(i, alpha, dtype, slope, estimate);
    return true;
}
#else
__global__ void check(float *out, float alpha, int dtype, int slope, int estimate)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    out[i] = share_of_bound(i, alpha, dtype, slope, estimate);
}

bool shares_of_bound(float *out, float alpha, int dtype, int slope, int estimate)
{
    float *device;
    if (cudaMalloc(&device, INPUTS * sizeof *device) != cudaSuccess)
        return false;
    check<<<INPUTS / THREADS, THREADS>>>(device, alpha, dtype, slope, estimate);
    cudaError_t error = cudaMemcpy(out, device, INPUTS * sizeof *device, cudaMemcpyDeviceToHost);
    cudaFree(device);
    return error == cudaSuccess;
}
#endif

} // namespace

extern "C" float QUICK_CHECK(float alpha, berlu_dtype dtype, int slope, int estimate)
{
    if (slope < FROM_OUTPUT && !estimate && (slope ? !QUICK_SLOPE : !QUICK_VALUE))
        return 0;
    static float share[INPUTS];
    float worst = 0;
    if (!shares_of_bound(share, alpha, dtype, slope, estimate))
        return -1;
    for (int i = 0; i < INPUTS; i++)
        worst = share[i] > worst ? share[i] : worst;
    return worst;
}
