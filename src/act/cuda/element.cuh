/* act/cuda/element.cuh - one element of any op, and the constants of a channel.
 * SPDX-License-Identifier: MIT
 *
 * For the kernels that go element by element (columns, planes, anything of kernel.cu). Included
 * after a formula and formulas/full.h. */
constexpr int PARAMS = ACT_PARAMS;

/* DEGREE makes the degree a compile-time constant; 0 leaves it open. */
template <int DEGREE> __device__ __forceinline__ consts consts_at(const cuda_job &job, size_t channel)
{
    const act_shape shape = {DEGREE ? DEGREE : job.degree, (size_t)job.shape_count, job.shape_numbers, nullptr};
    float params[PARAMS ? PARAMS : 1] = {};
#pragma unroll
    for (int p = 0; p < PARAMS; p++)
        params[p] = job.param[p] ? job.param[p][job.per_channel[p] ? channel : 0] : job.own[p];
    return consts_make(params, &shape, job.scale, job.center);
}

/* One element, any op. Returns the term of the column sums of dx; fills the terms of the
 * parameters' sums. */
__device__ __forceinline__ float element(const cuda_job &job, const consts &k, size_t i, size_t channel, float *terms)
{
    float slopes[PARAMS ? PARAMS : 1] = {}, slope;
    if (job.op == BERLU_ACT_BACKWARD_FROM_OUTPUT) {
        slope = 0;
#if ACT_FROM_OUTPUT
        float y = load_one(job.y_in, job.dtype, i);
        slope = act_slope_from_output(y, &k.f);
#if ACT_PARAMS
        act_param_slopes_from_output(y, &k.f, slopes);
#endif
#endif
    } else {
        float x = load_one(job.x, job.dtype, i);
        if (job.bias)
            x = v_add(x, job.bias[channel]);
        if (job.op == BERLU_ACT_SECOND) {
            store_one(job.y, job.dtype, i, full_curve(x, &k, job.plain));
            return 0;
        }
        if (job.op == BERLU_ACT_PARAM_SLOPE) {
#if ACT_PARAMS
            full_param_slopes(x, &k, job.plain, slopes);
#endif
            float chosen = slopes[0];
            for (int p = 1; p < PARAMS; p++)
                chosen = p == job.param_index ? slopes[p] : chosen;
            store_one(job.y, job.dtype, i, chosen);
            return 0;
        }
        float g = job.op == BERLU_ACT_BACKWARD ? load_one(job.dy, job.dtype, i) : 0.0f;
        if (job.op != BERLU_ACT_SLOPE && job.y)
            store_one(job.y, job.dtype, i, full_value(x, &k, job.plain));
        if (job.op == BERLU_ACT_FORWARD)
            return 0;
        slope = full_slope(x, &k, job.plain);
        if (job.op == BERLU_ACT_SLOPE) {
            store_one(job.y, job.dtype, i, slope);
            return 0;
        }
#if ACT_PARAMS
        full_param_slopes(x, &k, job.plain, slopes);
#endif
        float dx = v_mul(g, slope);
        store_one(job.dx, job.dtype, i, dx);
        for (int p = 0; p < PARAMS; p++)
            terms[p] = v_fma(g, slopes[p], terms[p]);
        return dx;
    }
    float g = load_one(job.dy, job.dtype, i), dx = v_mul(g, slope);
    store_one(job.dx, job.dtype, i, dx);
    for (int p = 0; p < PARAMS; p++)
        terms[p] = v_fma(g, slopes[p], terms[p]);
    return dx;
}
