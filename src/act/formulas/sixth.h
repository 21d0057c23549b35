/* sixth.h - (a + b) / 6 with nearly one rounding, for hard_sigmoid. SPDX-License-Identifier: MIT
 *
 * A product with the rounded 1/6, then its remainder, which an fma gives exactly, again times 1/6.
 * b is the low part of a, |b| below an ulp of a. The error is 0.5 ULP and a few units of 2^-24 of
 * one. */
#ifndef ACT_FORMULAS_SIXTH_H
#define ACT_FORMULAS_SIXTH_H

#include "act/formulas/formula.h"

V_FN v_f32 sixth_of(v_f32 a, v_f32 b)
{
    v_f32 sixth = v_set(1.0f / 6), q = v_mul(a, sixth);
    return v_fma(v_add(v_fnma(q, v_set(6.0f), a), b), sixth, q);
}

/* 3 + x for |x| <= 3 as a sum of two floats. */
V_FN v_f32 three_plus(v_f32 x, v_f32 *low)
{
    v_f32 sum = v_add(v_set(3.0f), x);
    *low = v_sub(x, v_sub(sum, v_set(3.0f)));
    return sum;
}

#endif
