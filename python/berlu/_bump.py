"""The polynomials of a smooth kink, from exact rationals. SPDX-License-Identifier: MIT

Used by every form of BerLU that is written in another library's operations (torch, jnp, ONNX);
docs/math.md derives them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import List, Tuple

Polynomial = List[Fraction]


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    out = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, s in enumerate(a):
        for j, t in enumerate(b):
            out[i + j] += s * t
    return out


def _over(a: Polynomial, root_power: int) -> Polynomial:
    """a(v) / ((1 - v) / 2)^root_power, which leaves no rest."""
    for _ in range(root_power):
        out, carry = [], Fraction(0)
        for coefficient in a[:-1]:
            carry += coefficient
            out.append(2 * carry)
        assert carry + a[-1] == 0
        a = out
    return a


def bump_polynomials(m: int) -> Tuple[List[float], List[float]]:
    """Q and W of degree 2m: with r the depth over 2 eps and v = 1 - 2r the bump is J eps r^(m+1)
    Q(v), and its slope J r^m W(v). From p(v), the Taylor polynomial of sqrt(1 - w) in w = 1 - v^2:
    bump (p - v) / 2, slope (1 - p') / 2."""
    w, power, p, coefficient = (
        [Fraction(1), Fraction(0), Fraction(-1)],
        [Fraction(1)],
        [Fraction(0)] * (2 * m + 1),
        Fraction(1),
    )
    for k in range(m + 1):
        if k:
            power, coefficient = _times(power, w), coefficient * Fraction(2 * k - 3, 2 * k)
        for i, c in enumerate(power):
            p[i] += coefficient * c
    bump = [c / 2 for c in p]
    bump[1] -= Fraction(1, 2)
    slope = [-(i + 1) * c / 2 for i, c in enumerate(p[1:])]
    slope[0] += Fraction(1, 2)
    return [float(c) for c in _over(bump, m + 1)], [float(c) for c in _over(slope, m)]
