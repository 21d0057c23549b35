"""Every activation in torch operations: value and derivatives up to second order.
SPDX-License-Identifier: MIT

This is the pure form: it runs wherever torch runs (export, functorch, f64, any device), fuses under
torch.compile, and gives the derivatives of the native operators. A form knows the function of x and
its real parameters v (tensors that broadcast, or floats); form() finds the one of a spec. All
derivatives are written out (docs/math.md), so differentiating them again is differentiating
ordinary torch operations. |x| is written as a choice by sign: torch's abs() has slope 0 at 0, the
choice 1, and only with the latter is the slope of line plus bump right there."""

from __future__ import annotations

import ctypes as C
import math
from typing import Any, Dict, List, Sequence, Tuple, Union

import torch
import torch.nn.functional as F

from .._act import Act, act as make_act
from .._bump import bump_polynomials
from .._lib import lib

Tensor = torch.Tensor
Number = Union[Tensor, float]
Values = Sequence[Number]


class Form:
    """A function f(x; v). What an activation does not define is zero (parameters) or unsupported
    (inverse)."""

    params: Tuple[str, ...] = ()

    def value(self, x: Tensor, v: Values) -> Tensor:
        raise NotImplementedError

    def slope(self, x: Tensor, v: Values) -> Tensor:
        raise NotImplementedError

    def second(self, x: Tensor, v: Values) -> Tensor:
        """f''(x); the form of a piecewise-linear function inherits this zero."""
        return torch.zeros_like(x)

    def by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        """df/dp for each parameter."""
        return []

    def slope_by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        """df'/dp for each parameter."""
        return []

    def by_params(self, x: Tensor, v: Values) -> List[List[Tensor]]:
        """d2f/dp dq."""
        return []

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        """An x with f(x) = y, for activations whose slope can be had from the output; any x where f
        is flat."""
        raise NotImplementedError


# ---- BerLU ---------------------------------------------------------------------------------------


def _horner(coefficients: Sequence[float], x: Tensor) -> Union[Tensor, float]:
    out: Union[Tensor, float] = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = out * x + c
    return out


class Berlu(Form):
    """A leaky line plus a bump on |x| < eps; v = alpha, eps."""

    params = ("alpha", "eps")

    def __init__(self, degree: int) -> None:
        self.m = m = degree // 2
        self.bump, self.tilt = bump_polynomials(m)
        self.height = math.comb(2 * m, m) / 4**m  # p(0)
        self.sharpness = 4.0 ** (1 - m) * math.factorial(2 * m - 1) / math.factorial(m - 1) ** 2

    def _depth(self, x: Tensor, eps: Number) -> Tensor:
        return torch.clamp_min(eps - torch.where(x < 0, -x, x), 0)

    def _w(self, x: Tensor, eps: Number) -> Tensor:
        """1 - (x / eps)^2 inside, 0 outside, without cancellation at the joins."""
        depth = self._depth(x, eps)
        return depth * (2 * eps - depth) / (eps * eps)

    def value(self, x: Tensor, v: Values) -> Tensor:
        alpha, eps = v
        depth, line = self._depth(x, eps), torch.where(x < 0, alpha * x, x)
        if self.m == 1:
            return line + (1 - alpha) / (4 * eps) * depth * depth
        r = depth / (2 * eps)
        return line + (1 - alpha) * eps * r ** (self.m + 1) * _horner(self.bump, 1 - 2 * r)

    def _tilt(self, x: Tensor, eps: Number) -> Tensor:
        r = self._depth(x, eps) / (2 * eps)
        return r if self.m == 1 else r**self.m * _horner(self.tilt, 1 - 2 * r)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        alpha, eps = v
        tilt = (1 - alpha) * self._tilt(x, eps)
        return torch.where(x < 0, alpha + tilt, 1 - tilt)

    def second(self, x: Tensor, v: Values) -> Tensor:
        alpha, eps = v
        inside = torch.where(x < 0, -x, x) <= eps
        w = self._w(x, eps) ** (self.m - 1) if self.m > 1 else torch.ones_like(x)
        return torch.where(inside, (1 - alpha) * self.sharpness / (2 * eps) * w, torch.zeros_like(x))

    def by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        alpha, eps = v
        r = self._depth(x, eps) / (2 * eps)
        bump = eps * r ** (self.m + 1) * _horner(self.bump, 1 - 2 * r)
        return [
            torch.where(x < 0, x, torch.zeros_like(x)) - bump,
            (1 - alpha) * self.height / 2 * self._w(x, eps) ** self.m,
        ]

    def slope_by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        tilt = self._tilt(x, v[1])
        return [torch.where(x < 0, 1 - tilt, tilt), -self.second(x, v) * x / v[1]]

    def by_params(self, x: Tensor, v: Values) -> List[List[Tensor]]:
        alpha, eps = v
        cross = -self.height / 2 * self._w(x, eps) ** self.m
        w = self._w(x, eps) ** (self.m - 1) if self.m > 1 else torch.ones_like(x)
        inside = torch.where(x < 0, -x, x) <= eps
        eps_eps = torch.where(inside, (1 - alpha) * self.height * self.m * w * x * x / eps**3, torch.zeros_like(x))
        return [[torch.zeros_like(x), cross], [cross, eps_eps]]

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        alpha, eps = v
        slope = torch.sqrt(torch.clamp_min(alpha + (1 - alpha) * y / eps, 0))
        knee = 4 * (y - (1 - alpha) * eps / 4) / (1 + alpha + 2 * slope)
        return torch.where(y < -alpha * eps, y / alpha, torch.where(y > eps, y, knee))


class Smelu(Form):
    """BerLU with alpha = 0; v = beta."""

    params = ("beta",)

    def __init__(self) -> None:
        self.knee = Berlu(2)

    def value(self, x: Tensor, v: Values) -> Tensor:
        return self.knee.value(x, [0.0, v[0]])

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return self.knee.slope(x, [0.0, v[0]])

    def second(self, x: Tensor, v: Values) -> Tensor:
        return self.knee.second(x, [0.0, v[0]])

    def by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        return self.knee.by_param(x, [0.0, v[0]])[1:]

    def slope_by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        return self.knee.slope_by_param(x, [0.0, v[0]])[1:]

    def by_params(self, x: Tensor, v: Values) -> List[List[Tensor]]:
        return [self.knee.by_params(x, [0.0, v[0]])[1][1:]]

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        slope = torch.sqrt(torch.clamp_min(y / v[0], 0))
        return torch.where(y > v[0], y, 4 * (y - v[0] / 4) / (1 + 2 * slope))


# ---- Piecewise linear ----------------------------------------------------------------------------


class Lines(Form):
    """clamp(a x + b, low, high): identity, relu, relu6, hard_tanh, hard_sigmoid. At a kink the
    slope is 0."""

    def __init__(self, scale: float, shift: float, low: float, high: float) -> None:
        self.scale, self.shift, self.low, self.high = scale, shift, low, high

    def value(self, x: Tensor, v: Values) -> Tensor:
        line = x * 1 if self.scale == 1 and self.shift == 0 else (x + self.shift) * self.scale
        low, high = (None if math.isinf(end) else end for end in (self.low, self.high))
        return line if low is None and high is None else torch.clamp(line, low, high)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        first, last = self.low / self.scale - self.shift, self.high / self.scale - self.shift
        return torch.where(x.isnan(), x, ((x > first) & (x < last)).to(x.dtype) * self.scale)

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return y / self.scale - self.shift


class Leaky(Form):
    """leaky_relu and prelu; v = alpha."""

    params = ("alpha",)

    def value(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, x, v[0] * x)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, torch.ones_like(x), v[0] + x * 0)

    def by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        return [torch.where(x > 0, torch.zeros_like(x), x)]

    def slope_by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        return [torch.where(x > 0, torch.zeros_like(x), torch.ones_like(x))]

    def by_params(self, x: Tensor, v: Values) -> List[List[Tensor]]:
        return [[torch.zeros_like(x)]]

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return torch.where(y > 0, y, y / v[0])


class HardSwish(Form):
    def value(self, x: Tensor, v: Values) -> Tensor:
        return x * torch.clamp(x + 3, 0, 6) / 6

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x <= -3, torch.zeros_like(x), torch.where(x >= 3, torch.ones_like(x), x / 3 + 0.5))

    def second(self, x: Tensor, v: Values) -> Tensor:
        return ((x > -3) & (x < 3)).to(x.dtype) / 3


# ---- Exponentials --------------------------------------------------------------------------------


def _below(x: Tensor) -> Tensor:
    """min(x, 0), so that an exponential of the unused branch never overflows; torch keeps NaN."""
    return torch.clamp_max(x, 0)


class Elu(Form):
    """v = alpha."""

    params = ("alpha",)

    def value(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, x, v[0] * torch.expm1(_below(x)))

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, torch.ones_like(x), v[0] * torch.exp(_below(x)))

    def second(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, torch.zeros_like(x), v[0] * torch.exp(_below(x)))

    def by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        return [torch.expm1(_below(x))]

    def slope_by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        return [torch.where(x > 0, torch.zeros_like(x), torch.exp(_below(x)))]

    def by_params(self, x: Tensor, v: Values) -> List[List[Tensor]]:
        return [[torch.zeros_like(x)]]

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return torch.where(y > 0, y, torch.log1p(_below(y) / v[0]))


class Celu(Form):
    """v = alpha; z = x / alpha where x <= 0."""

    params = ("alpha",)

    def _z(self, x: Tensor, v: Values) -> Tensor:
        return _below(x) / v[0]

    def value(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, x, v[0] * torch.expm1(self._z(x, v)))

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, torch.ones_like(x), torch.exp(self._z(x, v)))

    def second(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, torch.zeros_like(x), torch.exp(self._z(x, v)) / v[0])

    def by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        z = self._z(x, v)
        return [torch.expm1(z) - z * torch.exp(z)]

    def slope_by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        z = self._z(x, v)
        return [-z / v[0] * torch.exp(z)]

    def by_params(self, x: Tensor, v: Values) -> List[List[Tensor]]:
        z = self._z(x, v)
        return [[z * z / v[0] * torch.exp(z)]]

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return torch.where(y > 0, y, v[0] * torch.log1p(_below(y) / v[0]))


class Selu(Form):
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717

    def value(self, x: Tensor, v: Values) -> Tensor:
        return self.scale * torch.where(x > 0, x, self.alpha * torch.expm1(_below(x)))

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, self.scale + x * 0, self.scale * self.alpha * torch.exp(_below(x)))

    def second(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, torch.zeros_like(x), self.scale * self.alpha * torch.exp(_below(x)))

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return torch.where(y > 0, y / self.scale, torch.log1p(_below(y) / (self.scale * self.alpha)))


class Gelu(Form):
    def value(self, x: Tensor, v: Values) -> Tensor:
        return F.gelu(x)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        below: Tensor = torch.special.ndtr(x)
        return below + x * self._density(x)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return (2 - x * x) * self._density(x)

    def _density(self, x: Tensor) -> Tensor:
        return torch.exp(-0.5 * x * x) * 0.3989422804014327  # 1 / sqrt(2 pi); torch 2.10 cannot trace math.pi here


class GeluTanh(Form):
    """x s(2y), y = sqrt(2/pi) (x + 0.044715 x^3). Numbers are written out: torch 2.10 cannot trace
    what math computes here."""

    def value(self, x: Tensor, v: Values) -> Tensor:
        return F.gelu(x, approximate="tanh")

    def _parts(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        y = 0.7978845608028654 * x * (1 + 0.044715 * x * x)
        return torch.sigmoid(2 * y), 0.7978845608028654 * (1 + 0.134145 * x * x)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        s, d = self._parts(x)
        return s + 2 * x * d * s * (1 - s)

    def second(self, x: Tensor, v: Values) -> Tensor:
        s, d = self._parts(x)
        bend = 0.7978845608028654 * 0.26829 * x  # y''
        return s * (1 - s) * (4 * d + 2 * x * bend + 4 * x * d * d * (1 - 2 * s))


class Silu(Form):
    def value(self, x: Tensor, v: Values) -> Tensor:
        return F.silu(x)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        s = torch.sigmoid(x)
        return s * (1 + x * (1 - s))

    def second(self, x: Tensor, v: Values) -> Tensor:
        s = torch.sigmoid(x)
        return s * (1 - s) * (2 + x * (1 - 2 * s))


class Mish(Form):
    """x T with T = tanh(log(1 + e^x)) and s = sigmoid(x): T' = s (1 - T^2), T'' = T' (1 - s - 2 s
    T)."""

    def value(self, x: Tensor, v: Values) -> Tensor:
        return F.mish(x)

    def _parts(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        t, s = torch.tanh(F.softplus(x)), torch.sigmoid(x)
        first = s * (1 - t * t)
        return t, first, first * (1 - s - 2 * s * t)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        t, first, _ = self._parts(x)
        return t + x * first

    def second(self, x: Tensor, v: Values) -> Tensor:
        _, first, second = self._parts(x)
        return 2 * first + x * second


class Tanh(Form):
    def value(self, x: Tensor, v: Values) -> Tensor:
        return torch.tanh(x)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return 1 / torch.cosh(x) ** 2

    def second(self, x: Tensor, v: Values) -> Tensor:
        return -2 * torch.tanh(x) / torch.cosh(x) ** 2

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return torch.atanh(y)


class Sigmoid(Form):
    def value(self, x: Tensor, v: Values) -> Tensor:
        return torch.sigmoid(x)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return torch.sigmoid(x) * torch.sigmoid(-x)

    def second(self, x: Tensor, v: Values) -> Tensor:
        s, rest = torch.sigmoid(x), torch.sigmoid(-x)
        return s * rest * (rest - s)

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return torch.logit(y)


class Softplus(Form):
    def value(self, x: Tensor, v: Values) -> Tensor:
        return torch.clamp(x, min=0) + torch.log1p(torch.exp(-torch.abs(x)))

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return torch.sigmoid(x)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return torch.sigmoid(x) * torch.sigmoid(-x)

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return y + torch.log(-torch.expm1(-y))


class QuickGelu(Form):
    """x sigmoid(k x), k = 1.702."""

    def value(self, x: Tensor, v: Values) -> Tensor:
        return x * torch.sigmoid(1.702 * x)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        s, t = torch.sigmoid(1.702 * x), 1.702 * x
        return s * (1 + t * (1 - s))

    def second(self, x: Tensor, v: Values) -> Tensor:
        s, t = torch.sigmoid(1.702 * x), 1.702 * x
        return 1.702 * s * (1 - s) * (2 + t * (1 - 2 * s))


class Relu2(Form):
    def value(self, x: Tensor, v: Values) -> Tensor:
        return torch.clamp(x, min=0) ** 2

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return 2 * torch.clamp(x, min=0)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, 2.0, torch.where(torch.isnan(x), x, 0.0)).to(x.dtype)

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return torch.sqrt(torch.clamp(y, min=0))


# ---- Smoothed functions, scale and center --------------------------------------------------------


class _Piece(C.Structure):
    _fields_ = [
        ("start", C.c_double),
        ("end", C.c_double),
        ("transition", C.c_int),
        ("polynomial", C.c_int),
        ("degree", C.c_int),
        ("bounded", C.c_int),
        ("bernstein", C.c_double * 17),
        ("monomial", C.c_double * 17),
        ("scale", C.c_double),
        ("rate", C.c_double),
    ]


class Smoothed(Form):
    """Any smoothed function: its pieces as the library has them, a polynomial each, chosen from
    left to right."""

    def __init__(self, spec: str) -> None:
        handle, piece = C.c_void_p(), _Piece()
        lib.berlu_smooth_piece_count.restype, lib.berlu_smooth_piece_count.argtypes = C.c_size_t, (C.c_void_p,)
        lib.berlu_smooth_piece.argtypes = (C.c_void_p, C.c_size_t, C.POINTER(_Piece))
        lib.berlu_smooth_free.argtypes = (C.c_void_p,)
        if lib.berlu_smooth_parse(C.byref(handle), spec.encode()):
            raise ValueError(lib.berlu_last_error().decode())
        self.pieces: List[Tuple[float, float, List[float]]] = []  # start, centre, coefficients
        for i in range(lib.berlu_smooth_piece_count(handle)):
            lib.berlu_smooth_piece(handle, i, C.byref(piece))
            centre = (piece.start + piece.end) / 2 if piece.bounded else 0.0
            self.pieces.append((piece.start, centre, list(piece.monomial)[: piece.degree + 1]))
        lib.berlu_smooth_free(handle)

    def _choose(self, x: Tensor, order: int) -> Tensor:
        out = x
        for start, centre, coefficients in self.pieces:
            for _ in range(order):
                coefficients = [i * c for i, c in enumerate(coefficients)][1:] or [0.0]
            here = _horner(coefficients, x - centre) + x * 0
            out = here if start == -math.inf else torch.where(x >= start, here, out)
        return out

    def value(self, x: Tensor, v: Values) -> Tensor:
        return self._choose(x, 0)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return self._choose(x, 1)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return self._choose(x, 2)


class Scaled(Form):
    """(f(k x) - f(0)) / k; f(0) only where the spec says center=1."""

    def __init__(self, form: Form, scale: float, center: bool) -> None:
        self.form, self.scale, self.center, self.params = form, scale, center, form.params

    def _shifted(self, at: Tensor, x: Tensor, zero: Tensor) -> Tensor:
        return (at - zero) / self.scale if self.center else at / self.scale

    def value(self, x: Tensor, v: Values) -> Tensor:
        return self._shifted(self.form.value(self.scale * x, v), x, self.form.value(torch.zeros_like(x), v))

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return self.form.slope(self.scale * x, v)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return self.scale * self.form.second(self.scale * x, v)

    def by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        zeros = self.form.by_param(torch.zeros_like(x), v)
        return [self._shifted(a, x, z) for a, z in zip(self.form.by_param(self.scale * x, v), zeros)]

    def slope_by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        return self.form.slope_by_param(self.scale * x, v)

    def by_params(self, x: Tensor, v: Values) -> List[List[Tensor]]:
        zeros = self.form.by_params(torch.zeros_like(x), v)
        return [
            [self._shifted(a, x, z) for a, z in zip(row, zero)]
            for row, zero in zip(self.form.by_params(self.scale * x, v), zeros)
        ]


# ---- The form of a spec --------------------------------------------------------------------------

_INF = math.inf
_FORMS: Dict[str, Form] = {
    "identity": Lines(1, 0, -_INF, _INF),
    "relu": Lines(1, 0, 0, _INF),
    "relu6": Lines(1, 0, 0, 6),
    "hard_tanh": Lines(1, 0, -1, 1),
    "hard_sigmoid": Lines(1 / 6, 3, 0, 1),
    "leaky_relu": Leaky(),
    "prelu": Leaky(),
    "hard_swish": HardSwish(),
    "elu": Elu(),
    "celu": Celu(),
    "selu": Selu(),
    "gelu": Gelu(),
    "gelu_tanh": GeluTanh(),
    "silu": Silu(),
    "mish": Mish(),
    "tanh": Tanh(),
    "sigmoid": Sigmoid(),
    "softplus": Softplus(),
    "quick_gelu": QuickGelu(),
    "relu2": Relu2(),
    "smelu": Smelu(),
}


def _options(act: Act) -> Dict[str, Any]:
    """The keys of a canonical spec that are not parameters."""
    tail = act.spec.rpartition(")")[2] if act.spec.startswith("smooth(") else act.spec.partition(":")[2]
    return dict(part.split("=", 1) for part in tail.lstrip(":").split(",") if "=" in part)


def form_of(act: Act) -> Form:
    """The form of an activation, scale and center included."""
    if act.name == "berlu":
        form: Form = Berlu(int(act.parameters["degree"].value))
    elif act.name in _FORMS:
        form = _FORMS[act.name]
    else:
        form = Smoothed(act.spec[: act.spec.rindex(")") + 1])
    options = _options(act)
    scale, center = float(options.get("scale", 1)), options.get("center", "0") == "1"
    return Scaled(form, scale, center) if scale != 1 or center else form


class Site:
    """What a spec means to torch: the activation, its form, and its own parameter values in
    order."""

    __slots__ = ("act", "form", "own")

    def __init__(self, spec: str) -> None:
        self.act = make_act(spec)
        self.form = form_of(self.act)
        self.own = [self.act.parameters[name].value for name in self.form.params]


_sites: Dict[str, Site] = {}


def site_of(spec: str) -> Site:
    """The site of a spec; remembered, because derivatives ask in every backward pass."""
    site = _sites.get(spec)
    if site is None:
        if len(_sites) >= 1024:
            _sites.clear()
        site = _sites[spec] = Site(spec)
    return site
