"""BerLU, Act and the functions of their names. SPDX-License-Identifier: MIT

A module is a spec and the parameters it learns, under the names they have everywhere (`alpha`,
`eps`, `beta`), one number for the layer or one per channel of dimension `dim`. What it computes
with is decided call by call in _ops.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Union

import torch
import torch.fx
from torch import nn
from torch._jit_internal import is_scripting

from .._act import Act as Activation, act as make_act, listed, names, number
from ._forms import canonical, site_of
from ._ops import WIDTHS, apply, check_backend, check_keep
from ._script import script_function

torch.fx.wrap("apply")  # a leaf of torch.fx.symbolic_trace(), which cannot look at x

Tensor = torch.Tensor
Numbers = Union[float, Sequence[float], Tensor]


class Act(nn.Module):
    """Any activation by its spec; what `learn=` names (prelu and berlu: alpha) becomes a parameter
    of the module.

    channels   None: one value per layer; a number: one per channel of dimension `dim`
    keep       "input" saves x for the backward pass, "output" y, which the next layer often keeps anyway
    backend    "auto", "native" or "torch"
    inplace    accepted because others' layers pass it; nothing is ever overwritten

    >>> import torch, berlu.torch as bt
    >>> bt.Act("smooth(kinks=-1,1; slopes=0,1,0; eps=0.5)")(torch.tensor([0.25]))
    tensor([0.2500])
    """

    def __init__(
        self,
        spec: Union[str, Activation],
        channels: Optional[int] = None,
        dim: int = -1,
        keep: str = "input",
        inplace: bool = False,
        backend: str = "auto",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        act = make_act(spec)
        if channels is not None and (not isinstance(channels, int) or isinstance(channels, bool)):
            raise TypeError(f"berlu: channels is {channels!r}; it must be a whole number, or None")
        if channels is not None and channels < 1:
            raise ValueError(f"berlu: channels is {channels}; it must be 1 or more")
        if not isinstance(dim, int):
            raise TypeError(f"berlu: dim is {dim!r}; it must be a whole number")
        if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise TypeError(f"berlu: dtype is {dtype}; parameters are floating-point numbers")
        check_keep(act.spec, keep, dtype or torch.float32)
        self.spec, self.channels, self.dim, self.keep, self.backend = (
            act.spec,
            channels,
            dim,
            keep,
            check_backend(backend),
        )
        self._names = [name if act.parameters[name].learned else "" for name in site_of(act.spec).form.params]
        self._names += [""] * (2 - len(self._names))
        for name in filter(None, self._names):
            full = torch.full((channels or 1,), act.parameters[name].value, device=device, dtype=dtype)
            self.register_parameter(name, nn.Parameter(full))

    def reset_parameters(self) -> None:
        """The initial values again, also after to_empty() of a module that was made on meta."""
        for name in filter(None, self._names):
            nn.init.constant_(getattr(self, name), self.activation.parameters[name].value)

    def forward(self, x: Tensor) -> Tensor:
        if is_scripting():
            return self._scripted(x)
        else:  # TorchScript compiles nothing of this branch
            first, second = self._names
            p = getattr(self, first) if first else None
            q = getattr(self, second) if second else None
            return apply(x, p, q, self.spec, self.dim, self.keep, self.backend)

    # ---- torch.jit.script: the pure form, as a function that is made when a module is scripted ----

    __jit_unused_properties__ = ["activation"]
    if TYPE_CHECKING:  # TorchScript would ask every module for all of these
        alpha: Tensor
        eps: Tensor
        beta: Tensor

    def __prepare_scriptable__(self) -> "Act":
        self._script = script_function(self.spec, self.channels is not None, self.dim)
        return self

    def __getstate__(self) -> Dict[str, Any]:
        """Copies and pickles are made without the function, which can be neither copied nor pickled."""
        return {key: value for key, value in self.__dict__.items() if key != "_script"}

    def _scripted(self, x: Tensor) -> Tensor:
        if not x.is_floating_point():
            raise TypeError("berlu: x must be a floating-point tensor")
        alpha, eps, beta = x, x, x  # stand for what is no parameter of this module
        if hasattr(self, "alpha"):
            alpha = self.alpha
        if hasattr(self, "eps"):
            eps = self.eps
        if hasattr(self, "beta"):
            beta = self.beta
        wide = x if x.dtype == torch.float64 else x.to(torch.float32)
        y: Tensor = self._script(wide, alpha, eps, beta)
        return y.to(x.dtype)

    @property
    def activation(self) -> Activation:
        """The berlu.act() of this module, with its initial parameters."""
        return make_act(self.spec)

    def lipschitz(self) -> float:
        """The Lipschitz constant with the parameters as they are now; the largest over the
        channels. A width that is not positive is a kink, as in forward()."""
        act, learned = self.activation, [name for name in self._names if name]
        if not learned:
            return act.lipschitz
        rows = set(zip(*(self._used(name) for name in learned)))
        fixed = [
            f"{key}={int(p.value) if p.setting else repr(p.value)}"
            for key, p in act.parameters.items()
            if key not in learned
        ]
        return max(
            make_act(f"{act.name}:" + ",".join(fixed + [f"{key}={v!r}" for key, v in zip(learned, row)])).lipschitz
            for row in rows
        )

    def _used(self, name: str) -> List[float]:
        """The values of a parameter as forward() uses them, those of all ranks where they are shared out."""
        p, info = getattr(self, name).detach(), self.activation.parameters[name]
        p = p.full_tensor() if hasattr(p, "full_tensor") else p
        if p.numel() != (self.channels or 1):
            raise ValueError(
                f"berlu: this process has a part of {name} only; ask inside of "
                "FullyShardedDataParallel.summon_full_params()"
            )
        values = p.reshape(-1).tolist()
        return [min(max(v, info.low), info.high) for v in values] if name in WIDTHS else values

    def extra_repr(self) -> str:
        parts = [repr(self.spec)]
        if self.channels is not None:
            parts.append(f"channels={self.channels}, dim={self.dim}")
        if self.keep != "input":
            parts.append(f"keep={self.keep!r}")
        if self.backend != "auto":
            parts.append(f"backend={self.backend!r}")
        return ", ".join(parts)


class BerLU(Act):
    """BerLU: slope alpha left of -eps, slope 1 right of eps, a Bernstein polynomial between.

    alpha, eps   initial values; a sequence gives one per channel
    learn        "alpha" (default), "eps", "alpha+eps" or "none"
    degree       2 to 16: degree / 2 continuous derivatives
    For channels, dim, keep, backend see Act.

    >>> import torch, berlu.torch as bt
    >>> bt.BerLU(alpha=0.25)(torch.tensor([-4.0, 4.0])).tolist()
    [-1.0, 4.0]
    """

    def __init__(
        self,
        alpha: Numbers = 0.01,
        eps: Numbers = 0.01,
        degree: int = 2,
        learn: str = "alpha",
        channels: Optional[int] = None,
        dim: int = -1,
        keep: str = "input",
        inplace: bool = False,
        backend: str = "auto",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        values = {"alpha": _numbers("alpha", alpha), "eps": _numbers("eps", eps)}
        for name, given in values.items():
            if len(given) > 1 and len(given) != channels:
                raise ValueError(f"berlu: {name} has {len(given)} values, and channels is {channels}")
        # Each value passes the library's own check of its range.
        specs = [
            _berlu_spec(a, e, degree, learn) for a in sorted(set(values["alpha"])) for e in sorted(set(values["eps"]))
        ]
        acts = [make_act(spec) for spec in specs]
        super().__init__(acts[0], channels, dim, keep, inplace, backend, device, dtype)
        for name, given in values.items():
            if len(given) > 1 and name not in self._names:
                raise ValueError(f"berlu: {name} has one value per channel, so it must be learned (learn='{name}')")
        self._per_channel = {name: given for name, given in values.items() if len(given) > 1}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        with torch.no_grad():
            for name, given in self._per_channel.items():
                p = getattr(self, name)
                p.copy_(torch.tensor(given, dtype=p.dtype, device=p.device))


def _numbers(name: str, value: Numbers) -> List[float]:
    try:
        numbers = listed(value.detach().reshape(-1).tolist() if isinstance(value, Tensor) else value)
    except TypeError:
        raise TypeError(f"berlu: {name} is {value!r}; it must be a number, or one per channel") from None
    if not numbers:
        raise ValueError(f"berlu: {name} has no value")
    return numbers


def _berlu_spec(alpha: float, eps: float, degree: int, learn: str) -> str:
    return f"berlu:alpha={alpha!r},eps={eps!r},degree={degree},learn={learn}"


# ---- Functions -----------------------------------------------------------------------------------


def forward(
    act: Union[str, Activation],
    x: Tensor,
    *,
    dim: int = -1,
    keep: str = "input",
    backend: str = "auto",
    **parameters: Tensor,
) -> Tensor:
    """f(x) of any activation; tensors given by name replace its parameters, one number or one per
    channel of `dim`.

    >>> import torch, berlu.torch as bt
    >>> bt.forward("prelu", torch.tensor([-2.0]), alpha=torch.tensor([0.5])).tolist()
    [-1.0]
    """
    check_backend(backend)
    spec = act.spec if isinstance(act, Activation) else canonical(act)
    names_of = site_of(spec).form.params
    for name in parameters:
        if name not in names_of:
            raise TypeError(f"berlu: {spec.partition(':')[0]} has no parameter '{name}' that a tensor can replace")
    given: List[Optional[Tensor]] = [parameters.get(name) for name in names_of] + [None, None]
    return apply(x, given[0], given[1], spec, dim, keep, backend)


def _function(name: str) -> Callable[..., Tensor]:
    act = make_act(name)
    real = site_of(act.spec).form.params

    def function(
        x: Tensor, *args: Any, dim: int = -1, keep: str = "input", backend: str = "auto", **keys: Any
    ) -> Tensor:
        check_backend(backend)
        if not args and not keys:
            return apply(x, None, None, act.spec, dim, keep, backend)
        given = dict(zip(act.parameters, args))
        if len(args) > len(given) or given.keys() & keys.keys():
            raise TypeError(f"berlu: {name} takes x, {', '.join(act.parameters) or 'no parameter'}, each once")
        keys = {**given, **keys}
        tensors: List[Optional[Tensor]] = [None, None]
        for i, key in enumerate(real):
            if isinstance(keys.get(key), (Tensor, torch.fx.Proxy)):  # the latter in its place under torch.fx
                tensors[i] = keys.pop(key)
        spec = act.spec
        if keys:
            spec = canonical(f"{name}:" + ",".join([f"{key}={number(v)}" for key, v in keys.items()]))
        return apply(x, tensors[0], tensors[1], spec, dim, keep, backend)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "berlu.torch"  # where pickle and help() find it
    defaults = ", ".join(f"{key}={p.default:g}" for key, p in act.parameters.items())
    function.__doc__ = f"""{act.about}. {"Parameters and defaults: " + defaults + "." if defaults else ""}

    >>> import torch, berlu, berlu.torch as bt
    >>> x = torch.tensor([-0.5, 1.5], dtype=torch.float64)
    >>> torch.allclose(bt.{name}(x), torch.tensor([berlu.act("{name}").value(v) for v in x.tolist()]).double(), atol=1e-6)
    True
    """
    return function


functions: Dict[str, Callable[..., Tensor]] = {name: _function(name) for name in names()}
