"""The interface of an activation in torch operations. SPDX-License-Identifier: MIT

A form is the function of x and its real parameters v (tensors that broadcast, or floats), with its
derivatives up to second order. All derivatives are written out (docs/math.md), so differentiating
them again is differentiating ordinary torch operations. |x| is written as a choice by sign: torch's
abs() has slope 0 at 0, the choice 1, and only with the latter is the slope of line plus bump right
there. _forms.py finds the form of a spec.

Transforms differentiate value() and slope() themselves. A branch that is not selected then gets a
gradient of 0, which times an infinite derivative is NaN: so every branch computes from an x for
which it, and its derivatives, are finite."""

from __future__ import annotations

from typing import List, Sequence, Tuple, Union

import torch

Tensor = torch.Tensor
Number = Union[Tensor, float]
Values = Sequence[Number]


class Form:
    """A function f(x; v). Methods that an activation does not define give no derivatives
    (parameters) or are unsupported (inverse)."""

    params: Tuple[str, ...] = ()

    def value(self, x: Tensor, v: Values) -> Tensor:
        raise NotImplementedError

    def exported(self, x: Tensor, v: Values) -> Tensor:
        """value() as a program that is exported shall hold it: one operator where torch has it."""
        return self.value(x, v)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        raise NotImplementedError

    def second(self, x: Tensor, v: Values) -> Tensor:
        """f''(x); the form of a piecewise-linear function inherits this zero."""
        return torch.where(x.isnan(), x, 0.0)

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
        """An x with f(x) = y, for activations whose derivative is a function of the output; any x
        where f is flat."""
        raise NotImplementedError


def no_less(x: Tensor, least: float) -> Tensor:
    """max(x, least); NaN stays. A choice: the slope of torch's clamp at its bound is 0 or 1, by the version."""
    return torch.where(x < least, least, x)


def horner(coefficients: Sequence[float], x: Tensor) -> Union[Tensor, float]:
    out: Union[Tensor, float] = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = out * x + c
    return out
