"""The pure form for torch.jit.script. SPDX-License-Identifier: MIT

TorchScript compiles the source of a module's forward(); the forms are ordinary Python that it does not understand. So the
form of a spec is traced into a function when a module is scripted, and forward() calls that (_modules.py)."""

from __future__ import annotations

from typing import Any, List

import torch

from ._form import Number
from ._forms import site_of
from ._ops import WIDTHS

Tensor = torch.Tensor


def script_function(spec: str, channels: bool, dim: int) -> Any:
    """The pure form as a function of TorchScript: of x in f32 or f64 and of alpha, eps and beta, any
    tensor for those that the module does not have as parameters. Traced over one tensor and right for
    every shape, because a channel dimension is moved to the end and parameters broadcast there."""
    site = site_of(spec)
    learned = {name for name, p in site.act.parameters.items() if p.learned}

    def function(x: Tensor, alpha: Tensor, eps: Tensor, beta: Tensor) -> Tensor:
        given = {"alpha": alpha, "eps": eps, "beta": beta}
        params = [given[name] if name in learned else None for name in site.form.params] + [None, None]
        last = x.movedim(dim, -1) if channels else x
        shaped: List[Number] = []
        for name, own, p in zip(site.form.params, site.own, params):
            value: Number = own if p is None else p if channels else p.reshape(())
            shaped.append(value.clamp_min(2.0**-60) if isinstance(value, Tensor) and name in WIDTHS else value)
        y = site.form.exported(last, shaped)
        return y.movedim(-1, dim) if channels else y

    example = torch.zeros([2] * max(2, dim + 1, -dim)) if channels else torch.zeros(2)
    one = torch.ones(2) if channels else torch.ones(1)
    return torch.jit.trace(function, (example, one, one, one), check_trace=False)  # type: ignore[no-untyped-call]
