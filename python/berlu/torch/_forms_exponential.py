"""Activations made of exponentials in torch operations: elu, gelu, silu, mish, tanh and their kin.
SPDX-License-Identifier: MIT

Those that are x times a step from 0 to 1 (gelu, silu, mish, ...) are written down as the formula
has them, right where nothing overflows; Limits adds the rest of the line."""

from __future__ import annotations

from typing import Callable, List, Tuple

import torch
import torch.nn.functional as F

from ._form import Form, Number, Tensor, Values, no_less


def _below(x: Tensor) -> Tensor:
    """x where it is negative, so that an exponential of the unused branch never overflows, and finite,
    so that no product with 0 is NaN; else 0. NaN stays."""
    return torch.where(x > 0, 0.0, no_less(x, -1e30))


class Limits(Form):
    """x times a step from 0 to 1: `form` where it is computed without overflow, and beyond, where the
    step is 0 or 1 in double too, 0 and x."""

    far = 800.0  # e^-800 is 0 in double

    def __init__(self, form: Form) -> None:
        self.form = form

    def _choose(self, x: Tensor, left: float, inside: Callable[[Tensor, Values], Tensor], right: Number) -> Tensor:
        near = torch.where((x < -self.far) | (x > self.far), 0.0, x)
        return torch.where(x < -self.far, left, torch.where(x > self.far, right, inside(near, [])))

    def value(self, x: Tensor, v: Values) -> Tensor:
        return self._choose(x, -0.0, self.form.value, x)

    def exported(self, x: Tensor, v: Values) -> Tensor:
        return self.form.exported(x, v)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return self._choose(x, -0.0, self.form.slope, 1.0)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return self._choose(x, -0.0, self.form.second, -0.0)


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
        return no_less(_below(x) / v[0], -800)  # e^-800 is 0 in double

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
        return torch.where(x > 0, self.scale, self.scale * self.alpha * torch.exp(_below(x)))

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
    T). The second derivative of torch's own mish is NaN from 89 on."""

    def value(self, x: Tensor, v: Values) -> Tensor:
        e = torch.exp(torch.where(x > 0, -x, x))
        above, below = 1 + 2 * e, e * (e + 2)
        return x * torch.where(x > 0, above / (above + 2 * e * e), below / (below + 2))

    def exported(self, x: Tensor, v: Values) -> Tensor:
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
        return 4 * torch.sigmoid(2 * x) * torch.sigmoid(-2 * x)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return -2 * torch.tanh(x) * self.slope(x, v)

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
        return torch.where(x > 0, x, torch.zeros_like(x)) + torch.log1p(torch.exp(torch.where(x > 0, -x, x)))

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
