#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the coefficient tables of src/simd and src/act again: python3 tools/coefficients/make_tables.py [ROOT]

Needs numpy and scipy. The fits are deterministic; another version of the linear algebra may change a last digit, so the
tables in the tree stay as they are unless a formula changes (then `make format`). Prints the error of each fit, as a power of
two relative to the function. What each table is for stands in the header that uses it."""
import pathlib
import sys

import numpy as np

import functions as f
from fit import F32, centre_near_a_float, chebyshev_points, fitted, list_text, piecewise, rounded, table_text, uniform

HEAD = """/* %s - coefficients; read %s. SPDX-License-Identifier: MIT
 *
 * Made by tools/coefficients/make_tables.py. */
#ifndef %s
#define %s

#include "simd/vec.h"

%s
#endif
"""


SPLIT = 3.1              # gelu and gelu_tanh: between the near and the far places of their tables
TANH_STEP = 1.90522707   # gelu_tanh: far places per unit of t; 30 begins where the slope passes 2^-126, at 10.23500061
TANH_LIFTED, TANH_SUBNORMAL = 28, 30  # gelu_tanh: first places where the slope is kept times 2^64, and rounded
V_EXP_SHIFT = 12583039.0 # src/simd/vmath.h


def note(what, error):
    print("%-28s 2^%.2f" % (what, np.log2(error)))


def write(root, path, reader, parts):
    guard = path.upper().replace("/", "_").replace(".", "_")
    text = HEAD % (path.split("/")[-1], reader, guard, guard, "\n".join(parts))
    (root / "src" / path).write_text(text)


def part_table(name, about, function, intervals, degree, zeros=(), balanced=False, origin=0):
    """`origin` is the place of interval 0: places 0 to 7 are the cheap ones (v_lookup8)."""
    table, error = piecewise(function, intervals, degree, zeros, balanced)
    note(name, error)
    return table_text(name, about, np.roll(table, origin, axis=1))


def two_part_table(name, about, near, far, zeros=()):
    """For v_piecewise32(): sixteen intervals of each."""
    first, first_error = piecewise(near, uniform(1 / 5, 0, 0, SPLIT), 5, zeros)
    second, second_error = piecewise(far, uniform(1 / 1.29, 4, SPLIT, 15.05), 5)
    note(name + ", near", first_error)
    note(name + ", far", second_error)
    return table_text(name, about, np.concatenate([first, np.roll(second, 12, axis=1)], axis=1))


def tanh_slope_tables():
    """The derivative at -t, and further out that over 2^(base + first h + second h^2), h from the centre of the interval."""
    near, near_error = piecewise(f.tanh_slope_part, uniform(1 / 5, 0, 0, SPLIT), 5, [0.7525])
    scale, far_error = np.zeros((4, 32)), 0.0
    table = np.concatenate([near, np.zeros((7, 16))], axis=1)
    for place, low, high in uniform(1 / TANH_STEP, 6, SPLIT, 11.05):
        place = 16 + (place + 10) % 16
        c, _ = centre_near_a_float(f.tanh_slope_part, (low + high) / 2, low, high)
        base, first, second = (float(F32(v)) for v in f.tanh_exponent(c))
        base = np.round(base)
        rest = lambda t: f.tanh_slope_part(t) * np.exp2(-(base + (first + second * (t - c)) * (t - c)))
        table[:, place], error = fitted(rest, c, float(F32(rest(np.array([c]))[0])), low, high, 5)
        scale[:, place] = [base, first, second, 0]
        far_error = max(far_error, error)
    note("tanh_slope_part, near", near_error)
    note("tanh_slope_part, far", far_error)
    scale[0] += V_EXP_SHIFT
    scale[0, TANH_LIFTED:] += 64
    scale[3, TANH_SUBNORMAL:] = 2.0**-62
    return [table_text("tanh_slope_part", "The derivative at -t. Row 0: the centre of each interval; rows 1 to 6: coefficients of powers of "
                       "h = t - centre, lowest first. Columns 0 to 15, t < 3.1: the derivative; 16 to 31: the derivative "
                       "over 2^(a + b h + c h^2).", table),
            table_text("tanh_slope_scale", "a + V_EXP_SHIFT, and 64 more from interval 28 on; b; c; the unit of rounding", scale)]


def tail_list(name, about, function, low, high, degree):
    x = chebyshev_points(low, high, 2001)
    y = function(x)
    coefficients, error = rounded(x, y, range(degree + 1), 1 / np.abs(y))
    note(name, error)
    return list_text(name, about, coefficients)


def exp2_list(name, about, low, high):
    """2^r = 1 + r g(r), by the series of g."""
    r = chebyshev_points(low, high, 801)
    g = sum(np.log(2) ** (i + 1) * r**i / np.prod(np.arange(1.0, i + 2)) for i in range(18))
    c, error = rounded(r, g, range(6), np.abs(r) / np.exp2(r))
    note(name, error)
    return list_text(name, about, c)


def elementary():
    half = np.log(2) / 2 * 1.0005
    x = chebyshev_points(-half, half, 801)
    # (e^r - 1 - r) / r^2 by its series: no cancellation
    q = sum(x**i / np.prod(np.arange(1.0, i + 3)) for i in range(16))
    parts = []
    for name, about, size in (("v_exp_terms", "e^r", np.exp(x)), ("v_expm1_terms", "e^r - 1", np.abs(np.expm1(x)))):
        c, error = rounded(x, q, range(5), x * x / size)
        note(name, error)
        parts.append(list_text(name, "(e^r - 1 - r) / r^2 on |r| <= ln 2 / 2, for the least error relative to " + about, c))
    parts.append(exp2_list("v_exp2_terms", "(2^r - 1) / r on |r| <= 1/2, for the least error relative to 2^r", -0.5005, 0.5005))
    # log((1 + s) / (1 - s)) = 2 s + s^3 g(s^2), |s| <= 0.1716 for a mantissa in [sqrt 1/2, sqrt 2]
    s = chebyshev_points(0.02, 0.1725, 801)
    g = (2 * np.arctanh(s) - 2 * s) / s**3
    c, error = rounded(s * s, g, range(4), s**3 / (2 * np.arctanh(s)))
    note("log", error)
    return parts + [list_text("v_log_terms", "(log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2, |s| <= 3 - 2 sqrt 2", c)]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    write(root, "simd/vmath_tables.h", "simd/vmath.h", elementary())
    write(root, "act/formulas/gelu_tables.h", "act/formulas/gelu.h", [
        two_part_table("gelu_part", "t Phi(-t) in sixteen intervals for t < 3.1, then t Phi(-t) 2^(0.72 t^2)", f.gelu_part, f.gelu_far),
        two_part_table("gelu_slope_part", "Phi(-t) - t n(t), likewise", f.gelu_slope_part, f.gelu_slope_far, [0.7518])])
    write(root, "act/formulas/gelu_tanh_tables.h", "act/formulas/gelu_tanh.h", tanh_slope_tables() + [
        exp2_list("tanh_exp2_terms", "(2^r - 1) / r for r from -3/4 to 1/2", -0.755, 0.5005),
        part_table("tanh_curve_part", "the second derivative on [0, 4), intervals of 8/31", f.tanh_curve,
                   uniform(8 / 31, 0, 0, 4), 6, [1.4185])])
    wide = lambda: uniform(25 / 31, 0, 0, 12.5)
    write(root, "act/formulas/silu_tables.h", "act/formulas/silu.h", [
        part_table("silu_slope_part", "the derivative at -t, t on [0, 12.5), intervals of 25/31", f.silu_slope_part, wide(), 7, [1.2785]),
        part_table("silu_curve_part", "the second derivative, the same intervals", f.silu_curve, wide(), 8, [2.3994])])
    write(root, "act/formulas/celu_tables.h", "act/formulas/celu.h", [
        tail_list("celu_alpha_terms", "(e^z - 1 - z e^z) / z^2, |z| <= 1.25", f.celu_alpha_factor, -1.26, 1.26, 8)])
    around = lambda: uniform(8 / 15, -8, -4.3, 4)
    write(root, "act/formulas/mish_tables.h", "act/formulas/mish.h", [
        part_table("mish_factor", "tanh(log(1 + e^x)) on (-13, 9.04), intervals of 64/45, the one around 0 in place 4",
                   f.mish_factor, uniform(64 / 45, -9, -13.1, 9.0425), 9, balanced=True, origin=4),
        part_table("mish_slope_part", "the derivative on (-4, 4), intervals of 8/15", f.mish_slope, around(), 6, [-1.1924]),
        part_table("mish_curve_part", "the second derivative, the same intervals", f.mish_curve, around(), 7, [-2.2564, 1.4906])])


if __name__ == "__main__":
    main()
