# SPDX-License-Identifier: MIT
"""The functions that are tabulated, in double, right to about 1e-15 on the ranges where they are fitted."""
import numpy as np
from scipy.special import erfcx, ndtr

C = 1 / np.sqrt(2 * np.pi)
A, B = 2 * np.sqrt(2 / np.pi), 2 * np.sqrt(2 / np.pi) * 0.044715  # 2 y = A x + B x^3 in gelu_tanh


def density(t):
    return C * np.exp(-t * t / 2)


def gelu_part(t):
    """gelu(x) = max(x, 0) - t Phi(-t), t = |x|."""
    return t * ndtr(-t)


def gelu_slope_part(t):
    """The slope of gelu at -t; at t it is one minus this."""
    return ndtr(-t) - t * density(t)


GELU_RATE = float(np.float32(-0.5 / np.log(2)))  # the rounded factor of t^2 in gelu.h; the functions below make up for it


def gelu_far(t):
    """t Phi(-t) = gelu_far(t) 2^(GELU_RATE t^2)."""
    return t * 0.5 * erfcx(t / np.sqrt(2)) * np.exp2((-0.5 / np.log(2) - GELU_RATE) * t * t)


def gelu_slope_far(t):
    """The slope at -t, likewise."""
    return (0.5 * erfcx(t / np.sqrt(2)) - C * t) * np.exp2((-0.5 / np.log(2) - GELU_RATE) * t * t)


def tanh_part(t):
    """The sigmoid of -w(t)."""
    return 1 / (1 + np.exp(A * t + B * t**3))


def tanh_slope_part(t):
    s = tanh_part(t)
    return s - t * (A + 3 * B * t * t) * s * (1 - s)


def tanh_exponent(t):
    """log2(e^-w) and its first and half its second derivative."""
    rate = -1 / np.log(2)
    return rate * (A * t + B * t**3), rate * (A + 3 * B * t * t), rate * 3 * B * t


def silu_slope_part(t):
    s = 1 / (1 + np.exp(t))
    return s - t * s * (1 - s)


def silu_curve(t):
    s = 1 / (1 + np.exp(t))
    return s * (1 - s) * (2 - t * (1 - 2 * s))


def tanh_curve(t):
    s, w1, w2 = tanh_part(t), A + 3 * B * t * t, 6 * B * t
    return s * (1 - s) * (2 * w1 + t * w2 - t * w1**2 * (1 - 2 * s))


def mish_factor(x):
    """tanh(log(1 + e^x)): mish(x) = x mish_factor(x)."""
    e = np.exp(x)
    n = e * (e + 2)
    return n / (n + 2)


def mish_slope(x):
    e = np.exp(x)
    d = e * e + 2 * e + 2
    return mish_factor(x) + x * 4 * e * (e + 1) / d**2


def mish_curve(x):
    e = np.exp(x)
    d = e * e + 2 * e + 2
    return 8 * e * (e + 1) / d**2 + 4 * x * e * (2 + 2 * e - 3 * e**2 - 2 * e**3) / d**3


def celu_alpha_factor(z):
    """(e^z - 1 - z e^z) / z^2 by its series, -sum (k - 1) z^(k - 2) / k!: no cancellation."""
    term, total = 0.5 * np.ones_like(z), np.zeros_like(z)
    for k in range(2, 40):
        total -= (k - 1) * term
        term = term * z / (k + 1)
    return total
