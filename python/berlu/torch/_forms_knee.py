"""BerLU and SmeLU in torch operations: a leaky line with a polynomial knee.
SPDX-License-Identifier: MIT"""

from __future__ import annotations

import math
from typing import List

import torch

from .._bump import bump_polynomials
from ._form import Form, Number, Tensor, Values, horner, no_less


class Berlu(Form):
    """A leaky line plus a bump on |x| < eps; v = alpha, eps."""

    params = ("alpha", "eps")

    def __init__(self, degree: int) -> None:
        self.m = m = degree // 2
        self.bump, self.tilt = bump_polynomials(m)
        self.height = math.comb(2 * m, m) / 4**m  # p(0)
        self.sharpness = 4.0 ** (1 - m) * math.factorial(2 * m - 1) / math.factorial(m - 1) ** 2

    def _depth(self, x: Tensor, eps: Number) -> Tensor:
        return no_less(eps - torch.where(x < 0, -x, x), 0.0)

    def _outside(self, x: Tensor, eps: Number) -> Tensor:
        return torch.where(x < 0, -x, x) > eps

    def _w(self, x: Tensor, eps: Number) -> Tensor:
        """1 - (x / eps)^2 inside, 0 outside, without cancellation at the joins."""
        depth = self._depth(x, eps)
        return depth * (2 * eps - depth) / (eps * eps)

    def value(self, x: Tensor, v: Values) -> Tensor:
        alpha, eps = v
        depth, line = self._depth(x, eps), torch.where(x < 0, alpha * torch.where(x < 0, x, 0.0), x)
        if self.m == 1:
            return line + (1 - alpha) / (4 * eps) * depth * depth
        r = depth / (2 * eps)
        return line + (1 - alpha) * eps * r ** (self.m + 1) * horner(self.bump, 1 - 2 * r)

    def _tilt(self, x: Tensor, eps: Number) -> Tensor:
        r = self._depth(x, eps) / (2 * eps)
        return r if self.m == 1 else r**self.m * horner(self.tilt, 1 - 2 * r)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        alpha, eps = v
        tilt = (1 - alpha) * self._tilt(x, eps)
        return torch.where(x < 0, alpha + tilt, 1 - tilt)

    def second(self, x: Tensor, v: Values) -> Tensor:
        alpha, eps = v
        w = self._w(x, eps) ** (self.m - 1) if self.m > 1 else 1 + 0 * self._depth(x, eps)  # NaN stays
        return torch.where(self._outside(x, eps), 0.0, (1 - alpha) * self.sharpness / (2 * eps) * w)

    def by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        alpha, eps = v
        r = self._depth(x, eps) / (2 * eps)
        bump = eps * r ** (self.m + 1) * horner(self.bump, 1 - 2 * r)
        return [
            torch.where(x < 0, x, torch.zeros_like(x)) - bump,
            (1 - alpha) * self.height / 2 * self._w(x, eps) ** self.m,
        ]

    def slope_by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        tilt, near = self._tilt(x, v[1]), torch.where(self._outside(x, v[1]), 0.0, x)
        return [torch.where(x < 0, 1 - tilt, tilt), -self.second(near, v) * near / v[1]]

    def by_params(self, x: Tensor, v: Values) -> List[List[Tensor]]:
        alpha, eps = v
        cross = -self.height / 2 * self._w(x, eps) ** self.m
        near = torch.where(self._outside(x, eps), 0.0, x)
        w = self._w(x, eps) ** (self.m - 1) if self.m > 1 else 1.0
        eps_eps = (1 - alpha) * self.height * self.m * w * near * near / eps**3
        return [[torch.zeros_like(x), cross], [cross, eps_eps]]

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        alpha, eps = v
        slope = torch.sqrt(torch.clamp_min(alpha + (1 - alpha) * y / eps, 0))
        knee = 4 * (y - (1 - alpha) * eps / 4) / (1 + alpha + 2 * slope)
        return torch.where(y < -alpha * eps, y / alpha, torch.where(y > eps, y, knee))


class Smelu(Form):
    """BerLU with alpha = 0, save that -inf gives 0; v = beta."""

    params = ("beta",)

    def __init__(self) -> None:
        self.knee = Berlu(2)

    def value(self, x: Tensor, v: Values) -> Tensor:
        return self.knee.value(no_less(x, -1e30), [0.0, v[0]])

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
        knee = torch.where(y > v[0], y, 4 * (y - v[0] / 4) / (1 + 2 * slope))
        return torch.where(y > 0, knee, 0 * y - 2 * v[0])  # flat: outside of the transition
