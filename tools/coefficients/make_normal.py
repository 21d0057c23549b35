#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the coefficients of src/simd/normal.h again and prints them: python3 tools/coefficients/make_normal.py

x = quantile(p) = y g(w) with y = 2 p - 1 and w = -log(1 - y^2), after Giles, "Approximating the erfinv function" (2012): g is
smooth in w for small w and in sqrt(w) for large. Needs numpy and scipy."""
import numpy as np
from scipy.special import erfinv, ndtri

from fit import chebyshev_points, minimax

SPLIT, LAST = 6.25, 21.6  # w; LAST is beyond p = 2^-33


def factor(w):
    """g(w), by erfinv where y is not near 1, by the tail probability where it is."""
    y = np.sqrt(-np.expm1(-w))
    p = np.exp(-w) / (2 * (1 + y))  # (1 - y) / 2
    return np.where(w < 1, np.sqrt(2) * erfinv(y) / y, -ndtri(p) / y)


def main():
    w = chebyshev_points(1e-9, SPLIT, 2001)
    c, error = minimax(w - SPLIT / 2, factor(w), range(15), 1 / factor(w))
    print("centre, in w - %g: 2^%.1f" % (SPLIT / 2, np.log2(error)))
    print(",\n".join("%.17g" % v for v in c))
    s = chebyshev_points(np.sqrt(SPLIT), np.sqrt(LAST), 2001)
    c, error = minimax(s - 3.5, factor(s * s), range(13), 1 / factor(s * s))
    print("tail, in sqrt(w) - 3.5: 2^%.1f" % np.log2(error))
    print(",\n".join("%.17g" % v for v in c))


if __name__ == "__main__":
    main()
