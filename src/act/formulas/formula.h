/* formula.h - the contents of an activation's formula header (act/formulas/NAME.h).
 * SPDX-License-Identifier: MIT
 *
 * A formula is the f32 text of one function over the vocabulary of simd/vec.h. cpu/kernel.c
 * includes it, once per instruction set, and names no activation itself: the names below are fixed.
 * CUDA includes the same text. The header defines, in this order:
 *
 *     #define ACT_PARAMS n          number of real parameters (0 to BERLU_ACT_PARAMS), in the
 *                                   order of NAME.c
 *     #define ACT_FROM_OUTPUT b     1 when f' can be computed from the output alone, else 0
 *
 * and, as optional hints to backends, which change no bit (full.h has the defaults):
 *
 *     #define ACT_COSTLY 1          the formula is long: longer ranges and groups (kernel.c), on
 *                                   CUDA more elements per thread (kernel.cu)
 *     #define ACT_PRODUCT v_product the product of f' and dy; v_product where subnormal f' are
 *                                   frequent (vmath.h)
 *     #define ACT_VALUE_PATHS 1     the value has a fast path for x near 0 and a slow one, by
 *         V_FN int act_value_path(const v_f32 *x, int n);    of n vectors: ACT_ALL_NEAR,
 *                                                            ACT_SOME_FAR, or ACT_SOME_BEYOND,
 *                                                            where act_value() is called
 *         V_FN void act_near_value(v_f32 *x, int n);         in place, n <= ACT_INTERLEAVED vectors
 *         V_FN void act_far_value(v_f32 *x, int n);
 *     #define ACT_SLOPE_PATHS 1     the same for f' times dy, with the bits of ACT_PRODUCT; beyond
 *                                   is act_slope() and that product
 *         V_FN int act_slope_path(const v_f32 *x, int n);
 *         V_FN void act_near_backward(v_f32 *x, const v_f32 *dy, int n);
 *         V_FN void act_far_backward(v_f32 *x, const v_f32 *dy, int n);
 *     #define ACT_EXACT16 1         of a 16-bit x the value is a 16-bit number, and f' is 0, 1 or
 *                                   NaN, so that stores in bf16 need not round
 *     #define ACT_VALUE16 name      act_value() of a 16-bit x in fewer operations: rounded to 16
 *                                   bits it has the same bits (tests compare all x)
 *     #define ACT_QUICK 1           act/cuda/quick.cuh has an estimate of it
 *     #define ACT_DEGREES 1         the formula reads shape->degree: one copy per common degree
 *                                   may pay
 *     #define ACT_FAST_PATH(k) ((k)->order == 1)
 *                                   a condition on uniform members of act_consts under which the
 *                                   function is simpler: loops have a copy in which the compiler
 *                                   knows that it is true
 *     #define ACT_SECOND_PATH(k) ((k)->order == 1)
 *                                   another such condition, asked where ACT_FAST_PATH is false
 *     #define ACT_EXACT_KNEE(k) ((k)->all_knee_exact)
 *                                   where ACT_FAST_PATH holds, df/dp of the first parameter has
 *                                   two forms: loops that sum it alone have a copy for each
 *
 *     typedef struct act_consts { v_f32 alpha, square; ... } act_consts;
 *         Constants derived from the parameters, lane by lane, because a parameter may differ from
 *         channel to channel. Members that are the same for all lanes (an int for the degree) are
 *         plain numbers.
 *
 *     V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape);
 *         Derives them; params has ACT_PARAMS vectors. Runs once per call (once per channel where a
 *         parameter is per channel), so it may divide and compensate. A NaN parameter must make
 *         every value NaN.
 *
 *     ACT_NO_CONSTS    instead of both, where nothing is derived
 *
 *     V_FN v_f32 act_value(v_f32 x, const act_consts *k);
 *     V_FN v_f32 act_slope(v_f32 x, const act_consts *k);      the derivative
 *     V_FN v_f32 act_curve(v_f32 x, const act_consts *k);      the second derivative
 *     V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out);
 *         df/dp, ACT_PARAMS vectors; only if ACT_PARAMS > 0
 *     V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k);
 *         only if ACT_FROM_OUTPUT
 *     V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out);
 *         only if both
 *
 * All of them are pure: no memory but constant tables (V_TABLE), no branch but v_any() or v_all()
 * around a path and on uniform members of act_consts. Kernels evaluate value, derivative and
 * parameter derivatives of the same x together; write common parts as the same inline function with
 * the same arguments and the compiler computes them once. The lanes past the end of an array hold
 * zeros; their results are discarded.
 *
 * State the bound and the worst input known at the head of the file; NAME.c
 * (act/formulas/definition.h) holds the same function in double and the bounds that the tests read.
 * docs/add-an-activation.md has an example. */
#ifndef ACT_FORMULAS_FORMULA_H
#define ACT_FORMULAS_FORMULA_H

#include "act/formulas/shape.h"
#include "simd/vec.h"

/* Vectors of a group that takes one path; the slow path interleaves them. With one lane there is
 * nothing to choose for a group, and paths are not used. */
#define ACT_INTERLEAVED (V_LANES > 1 ? 4 : 1)

enum { ACT_ALL_NEAR, ACT_SOME_FAR, ACT_SOME_BEYOND };

/* A line of a formula for n interleaved vectors: a single one is a chain of dependent
 * operations. */
#define ACT_EACH V_FOR(int v = 0; v < n; v++)

/* The largest |x| of each lane; n is 1 or even. A NaN may be lost, since it stays NaN on every
 * path, but no number beside it may: v_max_abs() of the two is the number or NaN, and to
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
