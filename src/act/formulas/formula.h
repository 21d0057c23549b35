/* formula.h - what the formula header of an activation (act/formulas/NAME.h) must define.
 * SPDX-License-Identifier: MIT
 *
 * A formula is the f32 text of one function over the vocabulary of simd/vec.h. kernel.c includes
 * it, once per instruction set, and names no activation itself: the names below are fixed. CUDA
 * includes the same text. The header defines, in this order:
 *
 *   #define ACT_PARAMS n        how many real parameters the function has (0 to BERLU_ACT_PARAMS),
 *                               in the order of NAME.c
 *   #define ACT_FROM_OUTPUT b   1 when the slope can be had from the output alone, else 0
 *
 * and, as hints to backends, which change no bit:
 *
 *   #define ACT_COSTLY 1        the formula is long: longer turns and groups (kernel.c), on CUDA
 *                               more elements a thread (kernel_cuda.cu)
 *   #define ACT_PRODUCT v_product   how slope and dy are multiplied; v_product where subnormal
 *                                   slopes are no rarity (vmath.h)
 *   #define ACT_FAR 1           the slope has a short way for near x and a long one for any; the
 *                               header has, beside act_slope(),
 *       V_FN int act_slope_path(const v_f32 *x, int n);                 ACT_SHORT or ACT_LONG: what n vectors need
 *       V_FN v_f32 act_near_times(v_f32 x, v_f32 dy);                  slope times dy, the bits those of ACT_PRODUCT
 *       V_FN void act_far_times(v_f32 *x, const v_f32 *dy, int n);     likewise in x, n <= ACT_SIDE vectors side by side
 *   #define ACT_FAR_VALUE 1     the same for the value; the header has
 *       V_FN int act_value_path(const v_f32 *x, int n);                 ACT_SHORT, ACT_LONG, or ACT_NEITHER: act_value()
 *       V_FN v_f32 act_near_value(v_f32 x);
 *       V_FN void act_far_value(v_f32 *x, int n);                      in x, n <= ACT_SIDE vectors side by side
 *   #define ACT_DEGREES 1       the formula looks at shape->degree: one copy per common degree may
 *                               pay
 *
 *   typedef struct act_consts { v_f32 alpha, square; ... } act_consts;
 *       what is derived from the parameters, lane by lane, because a parameter may differ from channel to channel. Plain
 *       numbers that are the same for all lanes (an int for the degree) may stand here too.
 *
 *   V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape);
 *       derives them; params has ACT_PARAMS vectors. Runs once per call (once per channel where a parameter is per
 *       channel), so it may divide and compensate. A NaN parameter must make every value NaN.
 *
 *   ACT_NO_CONSTS               instead of both, where nothing is derived
 *
 *   V_FN v_f32 act_value(v_f32 x, const act_consts *k);
 *   V_FN v_f32 act_slope(v_f32 x, const act_consts *k);
 *   V_FN v_f32 act_curve(v_f32 x, const act_consts *k);             the second derivative
 *   V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out);    ACT_PARAMS vectors;
 *                                                                            only if ACT_PARAMS > 0
 *
 *   V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k);          only if
 *                                                                            ACT_FROM_OUTPUT
 *   V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out);      only if
 *                                                                                          both
 *
 *   #define ACT_FAST_PATH(k) ((k)->order == 1)      optional: a condition on plain numbers of
 *                                                   act_consts under which the function
 *       is simpler. Kernels then hold two copies of their fast loops, and in one of them the compiler knows it is true.
 *   #define ACT_EXACT_KNEE(k) ((k)->neat)              optional: where ACT_FAST_PATH holds, the
 *                                                      slope by the first parameter has two forms.
 *       Loops that sum it and no other have a copy for each.
 *
 * All of them are pure: no memory but constant tables (V_TABLE), no branch but v_any() around a
 * rare path and on uniform numbers of act_consts. Kernels ask for value, slope and parameter slopes
 * of the same x side by side; write common parts as the same inline function with the same
 * arguments and the compiler computes them once. The lanes behind the end of an array hold zeros;
 * their results are thrown away.
 *
 * State the bound and the worst input known at the head of the file; NAME.c
 * (act/formulas/definition.h) holds the same function in double and the numbers that the tests
 * read. docs/add-an-activation.md walks through one. */
#ifndef ACT_FORMULAS_FORMULA_H
#define ACT_FORMULAS_FORMULA_H

#include "act/formulas/shape.h"
#include "simd/vec.h"

/* Vectors side by side: four where there are registers for it; with one nothing is gained, and
 * ACT_FAR has no effect. */
#define ACT_SIDE (V_LANES == 16 ? 4 : 1)

enum { ACT_SHORT, ACT_LONG, ACT_NEITHER };

/* A line of a formula for n vectors side by side: one alone is a chain of operations that wait for
 * each other. */
#define ACT_EACH V_FOR(int v = 0; v < n; v++)

/* The largest |x| of each lane; n is 1 or even. A NaN may be passed over, since on every way it
 * stays one, but no number beside it may: v_max_abs() of the two is the number or NaN, and to
 * v_max_bits() NaN is the largest. */
V_FN v_f32 act_most(const v_f32 *x, int n)
{
    v_f32 most = n > 1 ? v_max_abs(x[0], x[1]) : v_abs(x[0]);
    V_FOR(int v = 2; v < n; v += 2)
        most = v_max_bits(most, v_max_abs(x[v], x[v + 1]));
    return most;
}

#define ACT_NO_CONSTS                                                                                                  \
    typedef struct act_consts {                                                                                        \
        int none;                                                                                                      \
    } act_consts;                                                                                                      \
    V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape)                                           \
    {                                                                                                                  \
        (void)params, (void)shape;                                                                                     \
        return (act_consts){0};                                                                                        \
    }

#endif
