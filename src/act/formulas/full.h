/* full.h - the formula with scale= and center= around it: g(x) = (f(scale x) - f(0)) / scale.
 * SPDX-License-Identifier: MIT
 *
 * Included after a formula header, by the kernels of the CPU and of CUDA. `plain` means that scale
 * is 1 and nothing is centred; where it is a compile-time constant, the extra operations vanish. */
#ifndef ACT_FORMULAS_FULL_H
#define ACT_FORMULAS_FULL_H

typedef struct consts {
    act_consts f;
    v_f32 scale, offset;
#if ACT_PARAMS
    v_f32 param_offset[ACT_PARAMS];
#endif
} consts;

V_FN consts consts_make(const v_f32 *params, const act_shape *shape, float scale, int center)
{
    consts k;
    k.f = act_prepare(params, shape);
    k.scale = v_set(scale);
    k.offset = v_zero();
    if (center)
        k.offset = act_value(v_zero(), &k.f);
#if ACT_PARAMS
    for (int p = 0; p < ACT_PARAMS; p++)
        k.param_offset[p] = v_zero();
    if (center)
        act_param_slopes(v_zero(), &k.f, k.param_offset);
#endif
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

#if ACT_PARAMS
V_FN void full_param_slopes(v_f32 x, const consts *k, int plain, v_f32 *out)
{
    act_param_slopes(plain ? x : v_mul(x, k->scale), &k->f, out);
    if (!plain)
        for (int p = 0; p < ACT_PARAMS; p++)
            out[p] = v_div(v_sub(out[p], k->param_offset[p]), k->scale);
}
#endif

#endif
