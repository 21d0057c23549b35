# SPDX-License-Identifier: MIT
"""Polynomials with float32 coefficients whose largest weighted error is (nearly) the least possible.

minimax()  Lawson's algorithm: least squares again and again, with more weight where the error was large.
rounded()  the same, then the lowest coefficient is rounded to float32 and the rest is fitted again, and so on: each later
           coefficient makes up for the rounding of the earlier ones.
Piecewise  sixteen intervals for v_lookup16 (src/simd/vec.h), or twice sixteen for v_lookup32. Each has its own centre, chosen
           near the middle so that the function's value there is almost a float32: the constant term then costs no accuracy.
           In wide intervals of a steep positive function the middle is where it is the harmonic mean of its ends
           ("balanced"): what the higher terms add, and their rounding with it, is then the same part of the function at
           both ends.
The tables are read as: row 0 the centres, row 1 + i the coefficients of (x - centre)^i.
"""
import numpy as np

F32 = np.float32


def chebyshev_points(low, high, count=401):
    return (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(count) + 0.5) / count)


def minimax(x, y, powers, weight, rounds=60):
    """Coefficients for `powers` of x, and the largest |error| * weight."""
    columns = np.stack([x**p for p in powers], 1)
    lawson = np.ones_like(x)
    best = (np.inf, None)
    for _ in range(rounds):
        s = np.sqrt(lawson) * weight
        c, *_ = np.linalg.lstsq(columns * s[:, None], y * s, rcond=None)
        error = np.abs((columns @ c - y) * weight)
        if error.max() < best[0]:
            best = (error.max(), c)
        lawson = lawson * (error / error.max() + 1e-12)
        lawson = lawson / lawson.max() + 1e-9
    return best[1], best[0]


def rounded(x, y, powers, weight):
    """As minimax(), with float32 coefficients; powers ascending."""
    powers, rest, coefficients = list(powers), y.copy(), []
    while powers:
        c, _ = minimax(x, rest, powers, weight)
        coefficients.append(float(F32(c[0])))
        rest = rest - coefficients[-1] * x ** powers.pop(0)
    return coefficients, np.max(np.abs(rest) * weight)


def balanced_middle(f, low, high):
    """Where the rising positive f is the harmonic mean of its values at the ends."""
    at = lambda x: f(np.array([x]))[0]
    mean, a, b = 2 / (1 / at(low) + 1 / at(high)), low, high
    for _ in range(60):
        a, b = ((a + b) / 2, b) if at((a + b) / 2) < mean else (a, (a + b) / 2)
    return a


def centre_near_a_float(f, middle, low, high, tries=600):
    """A float32 near the middle of [low, high] where f is nearest to a float32."""
    best = (np.inf, None, None)
    for i in range(-tries, tries + 1):
        c = float(F32(middle + i * (high - low) / (15 * tries)))
        value = float(f(np.array([c]))[0])
        off = abs(float(F32(value)) - value) / abs(value)
        if off < best[0]:
            best = (off, c, float(F32(value)))
    return best[1], best[2]


def uniform(scale, first, low, high):
    """Sixteen intervals around j * scale, j = first ... first + 15, cut to [low, high]; entry j goes to place j mod 16."""
    slack = 1e-6 * scale
    for j in range(first, first + 16):
        yield j % 16, max(low, (j - 0.5) * scale - slack), min(high, (j + 0.5) * scale + slack)


def fitted(f, c, value, low, high, degree, zeros=()):
    """Centre, value there and coefficients of one interval, and the error.

    It is relative to |f|, except within a quarter of a zero of f: there it is relative to at least 2^-5."""
    x = chebyshev_points(low, high)
    y = f(x)
    near_zero = np.any([np.abs(x - zero) < 0.25 for zero in zeros], axis=0) if zeros else False
    weight = 1 / np.where(near_zero, np.maximum(np.abs(y), 2.0**-5), np.abs(y))
    h = x - c
    keep = np.abs(h) > 1e-9
    coefficients, error = rounded(h[keep], ((y - value) / h)[keep], range(degree), (np.abs(h) * weight)[keep])
    return [c, value] + coefficients, error


def piecewise(f, intervals, degree, zeros=(), balanced=False):
    """Polynomials for (place, low, high) of `intervals`; the centre is 0 where f is."""
    table, worst = np.zeros((degree + 2, 16)), 0.0
    for place, a, b in intervals:
        if a >= b:
            continue
        c, value = 0.0, 0.0
        if a > 0 or f(np.zeros(1))[0] != 0:
            c, value = centre_near_a_float(f, balanced_middle(f, a, b) if balanced else (a + b) / 2, a, b)
        table[:, place], error = fitted(f, c, value, a, b, degree, zeros)
        worst = max(worst, error)
    return table, worst


def float_text(v):
    text = "%.9g" % v
    return text + ("f" if "." in text or "e" in text else ".0f")


def table_text(name, about, table):
    rows = ["    {" + ", ".join(float_text(v) for v in row) + "}," for row in table]
    return "/* %s */\nV_TABLE float %s[%d][%d] = {\n%s\n};\n" % (about, name, *table.shape, "\n".join(rows))


def list_text(name, about, values):
    return "/* %s */\nV_TABLE float %s[%d] = {%s};\n" % (about, name, len(values), ", ".join(float_text(v) for v in values))
