"""Torch models with activations of berlu as ONNX files. SPDX-License-Identifier: MIT

    berlu.onnx.export(model, example, "model.onnx")                  standard operators, for the widest support
    berlu.onnx.export(model, example, "model.onnx", functions=True)  each BerLU one node of a function in domain `berlu`

The function form keeps a BerLU visible as one node with inputs x, alpha and eps; the file carries
its definition in standard operators, so that every runtime that knows model-local functions
(onnxruntime inlines them) runs it."""

from __future__ import annotations

import os
import warnings
from typing import Any, List, Set, Tuple, Union

import onnx
import torch
from onnx import helper
from torch import nn

from ._bump import bump_polynomials
from ._files import writable, written
from .torch import Act, _ops
from .torch._replace import evaluation

DOMAIN = "berlu"


def function_name(degree: int) -> str:
    """BerLU for degree 2, BerLU4, BerLU6, ... above.

    >>> import berlu.onnx
    >>> berlu.onnx.function_name(4)
    'BerLU4'
    """
    return "BerLU" if degree == 2 else f"BerLU{degree}"


class _Nodes:
    """Builds the body of a function: constants in x's type, and one output per node."""

    def __init__(self) -> None:
        self.nodes: List[Any] = []

    def add(self, op: str, *inputs: str, name: str = "") -> str:
        out = name or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out]))
        return out

    def constant(self, value: float) -> str:
        out = f"c{len(self.nodes)}"
        self.nodes.append(helper.make_node("Constant", [], [out], value_float=float(value)))
        return self.add("CastLike", out, "x")


def _function(degree: int, opset: int) -> Any:
    """Line plus bump in standard operators; inputs x, alpha, eps."""
    n, m = _Nodes(), degree // 2
    zero, one, two = n.constant(0), n.constant(1), n.constant(2)
    depth = n.add("Max", n.add("Sub", "eps", n.add("Abs", "x")), zero)
    half = n.add("Div", depth, n.add("Mul", two, "eps"))  # r
    line = n.add("Where", n.add("Less", "x", zero), n.add("Mul", "alpha", "x"), "x")
    v, coefficients = n.add("Sub", one, n.add("Mul", two, half)), bump_polynomials(m)[0]
    polynomial = n.constant(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        polynomial = n.add("Add", n.add("Mul", polynomial, v), n.constant(c))
    for _ in range(m + 1):
        polynomial = n.add("Mul", polynomial, half)
    jump = n.add("Mul", n.add("Sub", one, "alpha"), "eps")
    n.add("Add", line, n.add("Mul", jump, polynomial), name="y")
    return helper.make_function(
        DOMAIN, function_name(degree), ["x", "alpha", "eps"], ["y"], n.nodes, [helper.make_opsetid("", opset)]
    )


def _degrees(model: nn.Module) -> Set[int]:
    return {
        int(m.activation.parameters["degree"].value)
        for m in model.modules()
        if isinstance(m, Act) and _ops.is_plain_berlu(m.spec)
    }


def _add_functions(proto: Any, degrees: Set[int]) -> None:
    opset = next(o.version for o in proto.opset_import if o.domain == "")
    for degree in sorted(degrees):
        proto.functions.append(_function(degree, opset))
    if not any(o.domain == DOMAIN for o in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))


def export(
    model: nn.Module,
    example: Any,
    file: Union[str, "os.PathLike[str]"],
    functions: bool = False,
    dynamic_batch: bool = True,
) -> None:
    """Writes `model` as an ONNX file that takes inputs like `example` (a tensor or a tuple), with
    any batch size unless dynamic_batch is False. The file is checked before it takes its name.

    >>> import berlu.onnx, berlu.torch as bt, torch, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     berlu.onnx.export(bt.BerLU(), torch.randn(2, 4), folder + "/m.onnx")
    ...     sorted(os.listdir(folder))
    ['m.onnx']
    """
    inputs: Tuple[Any, ...] = example if isinstance(example, tuple) else (example,)
    _ops.check_model(model)
    target = writable(file)
    degrees = _degrees(model) if functions else set()
    shapes = tuple({0: torch.export.Dim.DYNAMIC} if isinstance(x, torch.Tensor) else None for x in inputs)
    with evaluation(model), warnings.catch_warnings(), _ops.symbolic(bool(degrees)), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            model,
            inputs,
            dynamo=True,
            verbose=False,
            optimize=True,
            dynamic_shapes=shapes if dynamic_batch else None,
        )
    assert program is not None
    proto = program.model_proto
    if degrees:
        _add_functions(proto, degrees)
    onnx.checker.check_model(proto, full_check=True)
    with written(target) as part:
        onnx.save(proto, str(part))
