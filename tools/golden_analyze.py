#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/golden/analyze.tsv again: python3 tools/golden_analyze.py > tests/golden/analyze.tsv

The analyses of src/analyze from definitions and closed forms, in 30 digits with mpmath; some minutes. Nothing follows the C code: that
integrates f itself over two inputs, while here the correlation maps come from the exact law of the relu family, from the curvature of
gelu (a Gaussian integral in closed form) and from the probability that both inputs lie inside BerLU's transition.

    lipschitz  act  constant  at  max_curvature
    supremum   act  constant  max_curvature (no slope attains the constant)
    edge       act  sw2  sb2  beta_q  coefficient
    depth      act  layer  gap  q
    linearity  act  scale  nonlinear"""
from mpmath import (acos, cos, diff, erf, erfc, exp, expm1, findroot, inf, log1p, mp, mpf, nstr, pi, quad, sin, sqrt, tanh)

mp.dps = 30
LAYERS, SHOWN = 1000, (1, 10, 100, 1000)
LAMBDA, ALPHA = mpf("1.0507009873554804934193349852946"), mpf("1.6732632423543772848170429916717")


def row(*fields):
    print("\t".join(f if isinstance(f, str) else str(f) if isinstance(f, int) else nstr(f, 20) for f in fields), flush=True)


def density(z):
    return exp(-z * z / 2) / sqrt(2 * pi)


# -- functions ----------------------------------------------------------------------------------------------------------

def gelu(x):
    return x * erfc(-x / sqrt(mpf(2))) / 2


def gelu_tanh(x):
    return x / (1 + exp(-2 * sqrt(2 / pi) * (x + mpf("0.044715") * x**3)))


def silu(x):
    return x / (1 + exp(-x))


def mish(x):
    return x * tanh(log1p(exp(x)))


def sigmoid(x):
    return 1 / (1 + exp(-x))


def quick_gelu(x):
    return x / (1 + exp(-mpf("1.702") * x))


def clamp(x, low, high):
    return min(max(x, mpf(low)), mpf(high))


def leaky(a):
    return lambda x: x if x > 0 else mpf(a) * x


def berlu(a, e):
    a, e = mpf(a), mpf(e)
    return lambda x: (x if x > 0 else a * x) + (1 - a) / (4 * e) * max(e - abs(x), mpf(0)) ** 2


# text, function, where it is not smooth
FUNCTIONS = [
    ("identity", lambda x: x, []),
    ("relu", leaky(0), [0]),
    ("leaky_relu", leaky("0.01"), [0]),
    ("prelu", leaky("0.25"), [0]),
    ("relu6", lambda x: clamp(x, 0, 6), [0, 6]),
    ("hard_tanh", lambda x: clamp(x, -1, 1), [-1, 1]),
    ("hard_sigmoid", lambda x: clamp(x + 3, 0, 6) / 6, [-3, 3]),
    ("hard_swish", lambda x: x * clamp(x + 3, 0, 6) / 6, [-3, 3]),
    ("elu", lambda x: x if x > 0 else expm1(x), [0]),
    ("celu", lambda x: x if x > 0 else expm1(x), [0]),
    ("selu", lambda x: LAMBDA * (x if x > 0 else ALPHA * expm1(x)), [0]),
    ("gelu", gelu, []),
    ("gelu_tanh", gelu_tanh, []),
    ("silu", silu, []),
    ("mish", mish, []),
    ("smelu", berlu(0, 1), [-1, 1]),
    ("tanh", tanh, []),
    ("sigmoid", sigmoid, []),
    ("softplus", lambda x: log1p(exp(x)), []),
    ("quick_gelu", quick_gelu, []),
    ("relu2", lambda x: max(x, mpf(0)) ** 2, [0]),
    ("gelu:scale=8", lambda x: gelu(8 * x) / 8, []),
] + [(f"berlu:eps={e}", berlu("0.01", e), [-mpf(e), mpf(e)]) for e in ("0.0001", "0.001", "0.01", "0.1", "0.2", "0.5", "1", "5", "10")]


def lipschitz():
    for name, f, start in (("gelu", gelu, 1.4), ("gelu_tanh", gelu_tanh, 1.4), ("silu", silu, 2.4), ("mish", mish, 1.5),
                           ("quick_gelu", quick_gelu, 1.4)):
        at = findroot(lambda x: diff(f, x, 2), start)
        bend = mpf(0) if name != "mish" else findroot(lambda x: diff(f, x, 3), 0.1)
        row("lipschitz", name, diff(f, at), at, abs(diff(f, bend, 2)))
    for name, f in (("tanh", tanh), ("sigmoid", sigmoid)):  # odd but for a constant: steepest at 0
        bend = findroot(lambda x: diff(f, x, 3), 0.7 if name == "tanh" else 1.3)
        row("lipschitz", name, diff(f, 0), mpf(0), abs(diff(f, bend, 2)))
    row("supremum", "softplus", mpf(1), diff(lambda x: log1p(exp(x)), 0, 2))
    row("supremum", "relu2", inf, mpf(2))


def linearity():
    for name, f, kinks in FUNCTIONS:
        for text in ("0.1", "0.27712812921102037", "0.3", "1", "3"):
            s = mpf(text)
            cuts = sorted({mpf(z) for z in range(-16, 17, 2)} | {mpf(k) / s for k in kinks if abs(mpf(k) / s) < 16})
            if "scale" in name:
                cuts = sorted(set(cuts) | {mpf(k) / 4 for k in range(-16, 17)})
            mean = lambda g: quad(lambda z: g(z) * density(z), cuts)
            m = mean(lambda z: f(s * z))
            line = mean(lambda z: z * f(s * z))
            variance = mean(lambda z: (f(s * z) - m) ** 2)
            row("linearity", name, text, mean(lambda z: (f(s * z) - m - line * z) ** 2) / variance)


# -- depth, q = 1 and c_0 = 1/2 -----------------------------------------------------------------------------------------

def iterate(name, step):
    gap, q = mpf(1) / 2, mpf(1)
    for layer in range(1, LAYERS + 1):
        gap, q = step(gap, q)
        if layer in SHOWN:
            row("depth", name, layer, gap, q)


def relu_family(name, a):
    a = mpf(a)
    kappa = (1 - a) ** 2 / (1 + a * a)
    row("edge", name, 2 / (1 + a * a), mpf(0), mpf(0), 9 * pi**2 / (2 * kappa**2))

    def step(gap, q):
        t = acos(1 - gap)
        return 1 - kappa * (sin(t) + (pi - t) * cos(t)) / pi - (1 - kappa) * (1 - gap), q

    iterate(name, step)


def gelu_depth():
    slope2 = quad(lambda z: diff(gelu, z) ** 2 * density(z), range(-14, 15, 2))
    square = quad(lambda z: gelu(z) ** 2 * density(z), range(-14, 15, 2))

    def bends(c):  # E f''(X) f''(Y), f'' = (2 - x^2) n(x)
        d = 1 - c * c
        own, both = (d + 1) / (d + 3), c / (d + 3)
        return (4 - 4 * own + own**2 + 2 * both**2) / (2 * pi * sqrt(d + 3))

    row("edge", "gelu", 1 / slope2, 1 - square / slope2, 2 * slope2 / bends(mpf(1)), 2 * slope2 / bends(mpf(1)))
    iterate("gelu", lambda gap, q: (gap - quad(lambda t: (gap - t) * bends(1 - t) / slope2, [0, gap]), q))


def berlu_moments(a, b):
    """E phi'^2 and E phi^2 / q with b = eps / sqrt q."""
    inside, n0 = erf(b / sqrt(mpf(2))), density(b)
    outside = (1 - inside) / 2
    m2, m4 = inside - 2 * b * n0, 3 * inside - 2 * (b**3 + 3 * b) * n0
    A, B, C = (1 - a) / (4 * b), (1 + a) / 2, (1 - a) * b / 4
    slope2 = (1 + a * a) * outside + 4 * A * A * m2 + B * B * inside
    square = (1 + a * a) * (outside + b * n0) + A * A * m4 + (B * B + 2 * A * C) * m2 + C * C * inside
    return slope2, square


def berlu_gap(a, b, gap):
    """(E phi^2 - E phi phi) / (q E phi'^2)."""
    slope2, _ = berlu_moments(a, b)
    k = ((1 - a) / (2 * b)) ** 2 / slope2
    end = acos(1 - gap)
    cuts = [mpf(0)] + [c for c in (b / 8 * mpf("1.6") ** i for i in range(60)) if c < end] + [end]
    f = lambda t: (cos(t) - 1 + gap) ** 2 * (exp(-b * b / (1 + cos(t))) - (exp(-b * b / (2 * sin(t / 2) ** 2)) if t else 0))
    return gap - k * erf(b / sqrt(mpf(2))) * gap**2 / 2 + k / (2 * pi) * quad(f, cuts)


def berlu_depth(text):
    a, e = mpf("0.01"), mpf(text)
    slope2, square = berlu_moments(a, e)
    offset = (1 - a) * e / 4
    mean = (1 - a) * density(e) + (1 - a) / (4 * e) * (erf(e / sqrt(mpf(2))) - 2 * e * density(e)) + offset * erf(e / sqrt(mpf(2)))
    beta = 2 * slope2 / (((1 - a) / (2 * e)) ** 2 * erf(e / sqrt(mpf(2))))
    centred = square - 2 * offset * mean + offset**2
    row("edge", f"berlu:eps={text},center=1", 1 / slope2, 1 - centred / slope2, beta, beta)
    iterate(f"berlu:eps={text},center=1", lambda gap, q: (berlu_gap(a, e, gap), q))

    def raw(gap, q):  # the published function: no edge, the gain of leaky relu, q drifts
        gain, b = 2 / (1 + a * a), e / sqrt(q)
        slopes, squares = berlu_moments(a, b)
        following = gain * squares * q
        return gain * slopes * q * berlu_gap(a, b, gap) / following, following

    iterate(f"berlu:eps={text}", raw)


print("# made by tools/golden_analyze.py; see there")
lipschitz()
relu_family("relu", 0)
relu_family("leaky_relu", "0.01")
relu_family("prelu", "0.25")
gelu_depth()
mp.dps = 24
linearity()
for width in ("0.01", "0.1", "1"):
    berlu_depth(width)
