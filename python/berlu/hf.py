"""The activations of berlu inside Hugging Face transformers. SPDX-License-Identifier: MIT

    import berlu.hf
    config = transformers.ViTConfig(hidden_act="berlu")

Importing this module gives every name of berlu that transformers does not have itself a place in
ACT2FN; a model then makes one module per layer, with a slope of its own. Of the 540 model folders
some call a plain function inside forward(): berlu.torch.replace_activations(model, ...,
example=...) lists such calls. transformers' Trainer lets slopes decay; pass it an optimizer made
with berlu.torch.parameter_groups()."""

from __future__ import annotations

from typing import Union

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


for _name in names():
    if _name not in ACT2FN:
        register(_name, _name)
