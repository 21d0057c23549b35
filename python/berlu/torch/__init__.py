"""Activations for PyTorch: exact, deterministic, at native speed, one line to swap.
SPDX-License-Identifier: MIT

    import torch, berlu.torch as bt
    print(bt.replace_activations(model, "berlu:eps=0.1"))
    optimizer = torch.optim.AdamW(bt.parameter_groups(model, weight_decay=0.05), lr=1e-3)

    BerLU, Act              modules; forward() and every name (bt.gelu, bt.berlu, ...) functions
    replace_activations     swaps the activations of any model and reports
    parameter_groups, project_, lipschitz
    backend                 chooses what computes; native, cuda say what there is; tested: torch versions

docs/python.md is the manual; _ops.py explains which implementation runs when."""

from typing import Any, List, Optional

from . import _bridge
from ._bridge import tested
from ._modules import Act, BerLU, forward, functions as _functions
from ._ops import backend
from ._replace import Report, replace_activations
from ._train import Lipschitz, lipschitz, parameter_groups, project_

__all__ = [
    "Act",
    "BerLU",
    "Lipschitz",
    "Report",
    "backend",
    "forward",
    "lipschitz",
    "native",
    "cuda",
    "parameter_groups",
    "project_",
    "replace_activations",
    "tested",
]


def native() -> Optional[str]:
    """None where the native operators run on the CPU; else the reason why torch operations compute
    instead.

    >>> import berlu.torch as bt
    >>> bt.native() is None or isinstance(bt.native(), str)
    True
    """
    return _bridge.fault


def cuda() -> Optional[str]:
    """None where the native operators run on CUDA; else the reason why not. Called once when
    berlu.torch is imported.

    >>> import berlu.torch as bt
    >>> bt.cuda() is None or isinstance(bt.cuda(), str)
    True
    """
    return _bridge.register_cuda()


def __getattr__(name: str) -> Any:
    if name in _functions:
        return _functions[name]
    raise AttributeError(f"module 'berlu.torch' has no attribute '{name}'")


def __dir__() -> List[str]:
    return sorted(set(__all__) | set(_functions))


cuda()
