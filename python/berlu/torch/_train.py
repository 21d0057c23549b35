"""Activation parameters in training: no weight decay, bounds, Lipschitz constants.
SPDX-License-Identifier: MIT"""

from __future__ import annotations

import math
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch import nn

from ._modules import Act
from ._ops import check_model


def _sites(model: nn.Module) -> Iterator[Tuple[str, Act]]:
    check_model(model)
    for name, module in model.named_modules():
        if isinstance(module, Act):
            yield name, module


def _named_by(module: nn.Module) -> List[nn.Parameter]:
    """What a module names in no_weight_decay(), in names of its own: so it is found wherever the module
    lies, and inside what torch.compile, DistributedDataParallel and others wrap around it."""
    named = getattr(module, "no_weight_decay", None)
    if not callable(named):
        return []
    params = dict(module.named_parameters(remove_duplicate=False))
    return [params[name] for name in named() if name in params]


def _check_shapes(model: nn.Module) -> None:
    """Refuses a model whose matrices look like biases."""
    flat = [p for p in model.parameters() if getattr(p, "_fsdp_flattened", False)]
    if flat and all(p.dim() < 2 for p in flat):
        raise ValueError(
            "berlu: FullyShardedDataParallel keeps its parameters flat, so matrices cannot be told from biases; "
            "call parameter_groups() before it wraps the model, with use_orig_params=True"
        )


def parameter_groups(
    model: nn.Module, weight_decay: float = 0.0, act_lr: float = 1.0, lr: Optional[float] = None
) -> List[Dict[str, Any]]:
    """Parameter groups for any torch optimizer: matrices decay; biases, norms and everything else
    of at most one dimension do not, nor what the model or a module in it names in no_weight_decay()
    (timm's tokens and positions); the parameters of activations (nn.PReLU's included) never do
    and may have a multiple `act_lr` of the learning rate, for which `lr` must be given.

    >>> import torch, berlu.torch as bt
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), bt.BerLU())
    >>> [(g["name"], g["weight_decay"], len(g["params"])) for g in bt.parameter_groups(model, weight_decay=0.05)]
    [('decay', 0.05, 1), ('no_decay', 0.0, 1), ('activation', 0.0, 1)]
    """
    check_model(model)
    _check_shapes(model)
    if act_lr != 1.0 and lr is None:
        raise ValueError("berlu: act_lr is a multiple of the learning rate, so lr must be given too")
    slopes = {id(p) for m in model.modules() if isinstance(m, (Act, nn.PReLU)) for p in m.parameters(recurse=False)}
    groups: Dict[str, List[nn.Parameter]] = {"decay": [], "no_decay": [], "activation": []}
    named = {id(p) for module in model.modules() for p in _named_by(module)}
    for p in model.parameters():
        decays = p.dim() > 1 and id(p) not in named
        if p.requires_grad:
            groups["activation" if id(p) in slopes else "decay" if decays else "no_decay"].append(p)
    out: List[Dict[str, Any]] = []
    for name, params in groups.items():
        if not params:
            continue
        group: Dict[str, Any] = {
            "name": name,
            "params": params,
            "weight_decay": weight_decay if name == "decay" else 0.0,
        }
        if lr is not None:
            group["lr"] = lr * act_lr if name == "activation" else lr
        out.append(group)
    return out


_RULE = re.compile(
    r"(?P<name>[a-z]+):(?P<low>[^:,]*):(?P<high>[^:,]*)$|\|(?P<mirror>[a-z]+)\|<=(?P<most>.+)$|"
    r"(?P<one>[a-z]+)(?P<sign>>=|<=)(?P<end>.+)$"
)


def _bounds(rules: str) -> Dict[str, Tuple[float, float]]:
    """Rules as --act-constraint has them: alpha:LOW:HIGH with either end left out, alpha>=LOW,
    alpha<=HIGH, |alpha|<=HIGH."""
    out: Dict[str, Tuple[float, float]] = {}
    for item in filter(None, (part.strip() for part in rules.split(","))):
        found = _RULE.match(item)
        try:
            if found is None:
                raise ValueError
            if found["name"]:
                name, low, high = found["name"], float(found["low"] or -math.inf), float(found["high"] or math.inf)
            elif found["mirror"]:
                name, low, high = found["mirror"], -float(found["most"]), float(found["most"])
            else:
                name, end = found["one"], float(found["end"])
                low, high = (end, math.inf) if found["sign"] == ">=" else (-math.inf, end)
            if not low <= high:
                raise ValueError
        except ValueError:
            raise ValueError(
                f"berlu: '{item}' is no rule; write alpha:LOW:HIGH, alpha>=LOW, alpha<=HIGH or |alpha|<=HIGH"
            ) from None
        out[name] = (low, high)
    return out


@torch.no_grad()
def project_(model: nn.Module, rules: str) -> int:
    """Moves every learned activation parameter onto its interval, in place; call it after each step
    of the optimizer. eps and beta always stay in the range that the library accepts. Returns how
    many modules have a rule.

    >>> import torch, berlu.torch as bt
    >>> act = bt.BerLU(alpha=-0.5)
    >>> bt.project_(act, "alpha:0.001:"), round(act.alpha.item(), 6)
    (1, 0.001)
    """
    bounds, touched = _bounds(rules), 0
    learned: List[str] = []
    for _, module in _sites(model):
        info = module.activation.parameters  # a class derived from ours may have parameters of its own
        params = {name: p for name, p in module.named_parameters(recurse=False) if name in info}
        for name, p in params.items():
            low, high = bounds.get(name, (-math.inf, math.inf))
            low, high = max(low, info[name].low), min(high, info[name].high)
            if (low, high) != (-math.inf, math.inf):
                p.clamp_(low, high)
        learned += params
        touched += not bounds.keys().isdisjoint(params)
    for name in bounds:
        if name not in learned:
            raise ValueError(f"berlu: no activation of this model learns '{name}'")
    return touched


class Lipschitz(NamedTuple):
    """The constants of a model's activation sites, by name, and the largest.

    >>> import torch, berlu.torch as bt
    >>> bt.lipschitz(torch.nn.Sequential(bt.BerLU(alpha=-3), bt.Act("relu")))
    Lipschitz(sites={'0': 3.0, '1': 1.0}, largest=3.0)
    """

    sites: Dict[str, float]
    largest: float


def lipschitz(model: nn.Module) -> Lipschitz:
    """The exact Lipschitz constant of each activation of berlu, with its parameters as they are
    now.

    >>> import torch, berlu.torch as bt
    >>> bt.lipschitz(torch.nn.Sequential(bt.BerLU(), bt.Act("gelu"))).sites["0"]
    1.0
    """
    sites = {name: module.lipschitz() for name, module in _sites(model)}
    return Lipschitz(sites, max(sites.values(), default=0.0))
