#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/golden/activations.tsv again: python3 tools/make_activation_golden.py > tests/golden/activations.tsv

Values, slopes, second derivatives and d/dalpha of the transcendental activations at chosen floats, from their definitions in
200 digits; derivatives are differences in that precision, so no formula of the library is used. Needs mpmath."""
import struct
import sys

from mpmath import diff, erfc, exp, expm1, log1p, mp, mpf, nstr, pi, sqrt, tanh

mp.dps = 200
LAMBDA, ALPHA = mpf("1.0507009873554804934193349852946"), mpf("1.6732632423543772848170429916717")


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def elu(x, a):
    return x if x > 0 else a * expm1(x)


def celu(x, a):
    return x if x > 0 else a * expm1(x / a)


def gelu_tanh(x, a):
    return x / (1 + exp(-2 * sqrt(2 / pi) * (x + mpf("0.044715") * x**3)))


FUNCTIONS = {
    "gelu": (lambda x, a: x * erfc(-x / sqrt(mpf(2))) / 2, [None]),
    "gelu_tanh": (gelu_tanh, [None]),
    "silu": (lambda x, a: x / (1 + exp(-x)), [None]),
    "mish": (lambda x, a: x * tanh(log1p(exp(x))), [None]),
    "elu": (elu, [1, 0.25, -0.5]),
    "celu": (celu, [1, 0.3, -2]),
    "selu": (lambda x, a: LAMBDA * (x if x > 0 else ALPHA * expm1(x)), [None]),
}
# near 0, around zeros of derivatives, inside and beside the joins of tables and paths, the tails
POINTS = [1e-30, 3e-8, 1e-3, 0.0625, 0.129, 0.35, 0.5, 0.7517915, 0.7524614, 1, 1.1924312, 1.2784646, 1.4142135, 1.418504, 1.9,
          2.2563765, 2.3993573, 3.3, 3.999999, 4, 5.3, 7.999999, 8, 9.7, 10.2, 12.9, 13.1, 15.99, 16.01, 25, 42.5, 80.5, 86.9]


def derivative(f, x, n):
    return diff(f, x, n, h=mpf(2) ** -160) if n else f(x)


def main():
    print("# made by tools/make_activation_golden.py: function, alpha, x, f, f', f'', df/dalpha (- where there is none)")
    for name, (f, alphas) in FUNCTIONS.items():
        for alpha in alphas:
            a = mpf(f32(alpha)) if alpha is not None else mpf(1)
            for point in POINTS:
                for x in (-f32(point), f32(point)):
                    if name == "celu" and alpha < 0 and x < -40:
                        continue  # grows beyond f32
                    row = [derivative(lambda v: f(v, a), mpf(x), n) for n in range(3)]
                    by_alpha = "-" if alpha is None else nstr(derivative(lambda v: f(mpf(x), v), a, 1), 20)
                    text = "-" if alpha is None else float.hex(f32(alpha))
                    print("\t".join([name, text, float.hex(x)] + [nstr(v, 20) for v in row] + [by_alpha]))


if __name__ == "__main__":
    sys.exit(main())
