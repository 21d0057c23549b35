"""The activations of berlu inside Hugging Face transformers. SPDX-License-Identifier: MIT

    import berlu.hf
    config = transformers.ViTConfig(hidden_act="berlu")

Importing this module gives every name of berlu that transformers does not have itself a place in
ACT2FN; a model then makes one module per layer, with a slope of its own, which has its first value where
from_pretrained() finds none in the checkpoint (one that was trained with GELU, say). Of the 540 model folders
some call a plain function inside forward(): berlu.torch.replace_activations(model, ...,
example=...) lists such calls. transformers' Trainer lets slopes decay; pass it an optimizer made
with berlu.torch.parameter_groups()."""

from __future__ import annotations

import functools
from typing import Any, Callable, Union

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.activations import ACT2FN

from ._act import Act as Activation, act as make_act, names
from .torch import Act


def register(name: str, spec: Union[str, Activation]) -> None:
    """Makes `hidden_act=name` mean an activation of berlu.

    >>> import berlu.hf
    >>> berlu.hf.register("my_berlu", "berlu:eps=0.1")
    """
    activation = make_act(spec)
    ACT2FN[name] = (Act, {"spec": activation.spec})


def _filling(initialize: Callable[..., None]) -> Callable[..., None]:
    """What gives values to the parameters that a checkpoint does not have, taught about activations: no
    model's own rule knows them, and from_pretrained() makes parameters of whatever the memory holds."""

    @functools.wraps(initialize)
    def fill(model: Any, module: nn.Module, *rest: Any) -> None:
        if isinstance(module, Act) and not getattr(module, "_is_hf_initialized", False):
            params = dict(module.named_parameters(recurse=False))
            loaded = {name: p.detach().clone() for name, p in params.items() if getattr(p, "_is_hf_initialized", False)}
            module.reset_parameters()
            with torch.no_grad():
                for name, value in loaded.items():
                    params[name].copy_(value)
        initialize(model, module, *rest)

    return fill


if not hasattr(PreTrainedModel._initialize_weights, "__wrapped__"):
    setattr(PreTrainedModel, "_initialize_weights", _filling(PreTrainedModel._initialize_weights))
for _name in names():
    if _name not in ACT2FN:
        register(_name, _name)
