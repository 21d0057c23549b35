/* full.h - completes a formula: its optional parts, and scale= and center= around it.
 * SPDX-License-Identifier: MIT
 *
 * Included after a formula header, by the kernels of the CPU and of CUDA. The first half gives
 * every optional name of formula.h a default, so that kernels can use a plain `if`; functions
 * defined there are never called. The second half is g(x) = (f(scale x) - f(0)) / scale. `plain`
 * means that scale is 1 and nothing is centred; where it is a compile-time constant, the extra
 * operations vanish. */
#ifndef ACT_FORMULAS_FULL_H
#define ACT_FORMULAS_FULL_H

/* ---- Defaults -------------------------------------------------------------------------------- */

#ifndef ACT_COSTLY
#define ACT_COSTLY 0
#endif
#ifndef ACT_PRODUCT
#define ACT_PRODUCT v_mul
#endif
#ifndef ACT_FAST_PATH
#define ACT_FAST_PATH(k) ((void)(k), 1)
#endif
#ifndef ACT_SECOND_PATH
#define ACT_SECOND_PATH(k) ((void)(k), 0)
#endif
#ifndef ACT_EXACT16
#define ACT_EXACT16 0
#endif
#ifndef ACT_VALUE16
#define ACT_VALUE16 act_value
#endif
#ifndef ACT_EXACT_KNEE
#define ACT_EXACT_KNEE(k) ((void)(k), 1)
#endif

#if !ACT_PARAMS
V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out)
{
    (void)x, (void)k, (void)out;
}
#endif
#if !ACT_FROM_OUTPUT
V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    return act_slope(y, k);
}
#endif
#if !ACT_FROM_OUTPUT || !ACT_PARAMS
V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out)
{
    act_param_slopes(y, k, out);
}
#endif

#ifndef ACT_VALUE_PATHS
#define ACT_VALUE_PATHS 0
V_FN int act_value_path(const v_f32 *x, int n)
{
    (void)x, (void)n;
    return ACT_SOME_BEYOND;
}
V_FN void act_near_value(v_f32 *x, int n)
{
    (void)x, (void)n;
}
V_FN void act_far_value(v_f32 *x, int n)
{
    (void)x, (void)n;
}
#endif

#ifndef ACT_SLOPE_PATHS
#define ACT_SLOPE_PATHS 0
V_FN int act_slope_path(const v_f32 *x, int n)
{
    (void)x, (void)n;
    return ACT_SOME_BEYOND;
}
V_FN void act_near_backward(v_f32 *x, const v_f32 *dy, int n)
{
    (void)x, (void)dy, (void)n;
}
V_FN void act_far_backward(v_f32 *x, const v_f32 *dy, int n)
{
    (void)x, (void)dy, (void)n;
}
#endif

/* ---- Scale and center ------------------------------------------------------------------------ */

enum { CONSTS_PARAMS = ACT_PARAMS ? ACT_PARAMS : 1 };

typedef struct consts {
    act_consts f;
    v_f32 scale, offset;
    v_f32 param_offset[CONSTS_PARAMS];
} consts;

V_FN consts consts_make(const v_f32 *params, const act_shape *shape, float scale, int center)
{
    consts k;
    k.f = act_prepare(params, shape);
    k.scale = v_set(scale);
    k.offset = v_zero();
    for (int p = 0; p < CONSTS_PARAMS; p++)
        k.param_offset[p] = v_zero();
    if (center) {
        k.offset = act_value(v_zero(), &k.f);
        act_param_slopes(v_zero(), &k.f, k.param_offset);
    }
    return k;
}

V_FN v_f32 full_value(v_f32 x, const consts *k, int plain)
{
    if (plain)
        return act_value(x, &k->f);
    return v_div(v_sub(act_value(v_mul(x, k->scale), &k->f), k->offset), k->scale);
}

V_FN v_f32 full_slope(v_f32 x, const consts *k, int plain)
{
    return act_slope(plain ? x : v_mul(x, k->scale), &k->f);
}

V_FN v_f32 full_curve(v_f32 x, const consts *k, int plain)
{
    return plain ? act_curve(x, &k->f) : v_mul(k->scale, act_curve(v_mul(x, k->scale), &k->f));
}

V_FN void full_param_slopes(v_f32 x, const consts *k, int plain, v_f32 *out)
{
    act_param_slopes(plain ? x : v_mul(x, k->scale), &k->f, out);
    for (int p = 0; p < ACT_PARAMS && !plain; p++)
        out[p] = v_div(v_sub(out[p], k->param_offset[p]), k->scale);
}

#endif
