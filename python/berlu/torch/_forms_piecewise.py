"""Piecewise polynomial activations in torch operations: identity to hard_swish and relu2.
SPDX-License-Identifier: MIT"""

from __future__ import annotations

import math
from typing import List

import torch

from ._form import Form, Tensor, Values


class Lines(Form):
    """clamp(a x + b, low, high): identity, relu, relu6, hard_tanh, hard_sigmoid. At a kink the
    slope is 0."""

    def __init__(self, scale: float, shift: float, low: float, high: float) -> None:
        self.scale, self.shift, self.low, self.high = scale, shift, low, high

    def value(self, x: Tensor, v: Values) -> Tensor:
        line = x * 1 if self.scale == 1 and self.shift == 0 else (x + self.shift) * self.scale
        if not math.isinf(self.low):
            line = torch.where(line <= self.low, torch.full_like(line, self.low), line)
        if not math.isinf(self.high):
            line = torch.where(line >= self.high, torch.full_like(line, self.high), line)
        return line

    def slope(self, x: Tensor, v: Values) -> Tensor:
        first, last = self.low / self.scale - self.shift, self.high / self.scale - self.shift
        flat = (x <= first) & math.isfinite(first) | (x >= last) & math.isfinite(last)
        return torch.where(x.isnan(), x, torch.where(flat, 0.0, torch.full_like(x, self.scale)))

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return y / self.scale - self.shift


class Leaky(Form):
    """leaky_relu and prelu; v = alpha."""

    params = ("alpha",)

    def value(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, x, v[0] * torch.where(x > 0, 0.0, x))

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, 1.0, torch.where(x <= 0, v[0], x))

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
        near = torch.where(x >= 3, 3.0, torch.where(x <= -3, -3.0, x))
        return torch.where(x >= 3, x, near * (near + 3) / 6)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x <= -3, 0.0, torch.where(x >= 3, 1.0, x / 3 + 0.5))

    def second(self, x: Tensor, v: Values) -> Tensor:
        inside = torch.full_like(x, 1 / 3)
        return torch.where(x.isnan(), x, torch.where((x > -3) & (x < 3), inside, 0.0))


class Relu2(Form):
    def _above(self, x: Tensor) -> Tensor:
        return torch.where(x <= 0, torch.zeros_like(x), x)

    def value(self, x: Tensor, v: Values) -> Tensor:
        return self._above(x) ** 2

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return 2 * self._above(x)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return torch.where(x > 0, 2.0, torch.where(torch.isnan(x), x, 0.0)).to(x.dtype)

    def inverse(self, y: Tensor, v: Values) -> Tensor:
        return torch.sqrt(torch.clamp(y, min=0))
