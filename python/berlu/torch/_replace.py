"""Replaces the activations of a given model, and reports those that it could not reach.
SPDX-License-Identifier: MIT

Models hold activations as modules of torch, timm or transformers; those are replaced wherever they
lie, and one that is used at several places stays one. Two classes of torch hold a function and,
beside it, a number that makes evaluation compute the old GELU whatever the function is
(nn.TransformerEncoderLayer); both are set, and nn.TransformerEncoder is told. What a model calls as a plain function inside forward()
cannot be replaced from outside: a run over an example lists these calls."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from .._act import Act as Activation
from ._modules import Act
from ._ops import check_model

# Class names of torch, timm and transformers, and the name of berlu (or the nearest word) for what
# they compute. Gates (Sigmoid, Tanh, GLU, Softmax, ...) are no activations of this kind and are not
# listed.
KINDS: Dict[str, str] = {
    "ReLU": "relu",
    "ReLU6": "relu6",
    "RReLU": "rrelu",
    "LeakyReLU": "leaky_relu",
    "PReLU": "prelu",
    "ELU": "elu",
    "CELU": "celu",
    "SELU": "selu",
    "GELU": "gelu",
    "SiLU": "silu",
    "Mish": "mish",
    "Hardswish": "hard_swish",
    "Hardtanh": "hard_tanh",
    "Hardshrink": "hard_shrink",
    "Softshrink": "soft_shrink",
    "Tanhshrink": "tanh_shrink",
    "Softsign": "soft_sign",
    "Threshold": "threshold",
    "Swish": "silu",
    "SwishMe": "silu",
    "MishMe": "mish",
    "HardSwish": "hard_swish",
    "HardSwishMe": "hard_swish",
    "HardMish": "hard_mish",
    "HardMishMe": "hard_mish",
    "GELUTanh": "gelu_tanh",
    "QuickGELU": "quick_gelu",
    "GELUActivation": "gelu",
    "NewGELUActivation": "gelu_tanh",
    "FastGELUActivation": "gelu_tanh",
    "AccurateGELUActivation": "gelu_tanh",
    "QuickGELUActivation": "quick_gelu",
    "ClippedGELUActivation": "gelu",
    "SiLUActivation": "silu",
    "MishActivation": "mish",
    "LaplaceActivation": "laplace",
    "ReLUSquaredActivation": "relu2",
    "XIELUActivation": "xielu",
    "StarReLU": "star_relu",
    "SquaredReLU": "relu2",
    "SquareReLU": "relu2",
    "PytorchGELUTanh": "gelu_tanh",
}
_HOMES = ("torch.nn", "timm", "transformers")
_GATES = (
    *("Sigmoid", "Hardsigmoid", "HardSigmoid", "HardSigmoidMe", "Tanh", "GLU", "LogSigmoid", "Softplus"),
    "SqrtSoftplusActivation",
)
_FUNCTIONS = {
    F.relu: "relu",
    F.relu6: "relu6",
    F.leaky_relu: "leaky_relu",
    F.prelu: "prelu",
    F.elu: "elu",
    F.celu: "celu",
    F.selu: "selu",
    F.gelu: "gelu",
    F.silu: "silu",
    F.mish: "mish",
    F.hardswish: "hard_swish",
    F.hardtanh: "hard_tanh",
    F.hardshrink: "hard_shrink",
    F.softshrink: "soft_shrink",
    F.tanhshrink: "tanh_shrink",
    F.softsign: "soft_sign",
    F.threshold: "threshold",
    F.rrelu: "rrelu",
    F.leaky_relu_: "leaky_relu",
    F.elu_: "elu",
    F.hardtanh_: "hard_tanh",
    torch.prelu: "prelu",
    torch.rrelu: "rrelu",
    torch.rrelu_: "rrelu",
    torch.celu: "celu",
    torch.celu_: "celu",
    torch.selu: "selu",
    torch.selu_: "selu",
    torch.threshold: "threshold",
    torch.threshold_: "threshold",
    torch.Tensor.hardshrink: "hard_shrink",
    torch.Tensor.prelu: "prelu",
    torch.relu: "relu",
    torch.relu_: "relu",
    torch.Tensor.relu: "relu",
    torch.Tensor.relu_: "relu",
}

Factory = Callable[..., nn.Module]
Inputs = Union[Tuple[Any, ...], Mapping[str, Any]]
New = Union[str, Activation, Factory, Mapping[str, Union[str, Activation, Factory]]]


@dataclasses.dataclass
class Report:
    """What replace_activations() did: `replaced` (place, old, new), `gates` left alone (place,
    class), `functional` calls that remain (place, function, how often; only with an example).
    Prints as a table.

    >>> import torch, berlu.torch as bt
    >>> report = bt.replace_activations(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sigmoid()), "berlu")
    >>> len(report), report.replaced[0][:2], report.gates
    (1, ('0', 'relu'), [('1', 'Sigmoid')])
    """

    replaced: List[Tuple[str, str, str]] = dataclasses.field(default_factory=list)
    gates: List[Tuple[str, str]] = dataclasses.field(default_factory=list)
    functional: List[Tuple[str, str, int]] = dataclasses.field(default_factory=list)
    looked: bool = False  # an example was run

    def __len__(self) -> int:
        return len(self.replaced)

    def __str__(self) -> str:
        rows = [("place", "was", "is now")] + self.replaced
        width = [max(len(row[i]) for row in rows) for i in range(2)]
        lines = [f"{a:<{width[0]}}  {b:<{width[1]}}  {c}" for a, b, c in rows]
        lines.append(f"{len(self.replaced)} replaced, {len(self.gates)} gates left alone")
        if self.functional:
            lines.append("plain functions remain, which only the model's own code can change:")
            lines += [
                f"  {place or '(the model itself)'}: {name}, {count} calls" for place, name, count in self.functional
            ]
        elif self.looked:
            lines.append("no plain function remains")
        return "\n".join(lines)


def kind_of(module: nn.Module) -> Optional[str]:
    """The word for an activation module, "berlu" and so on for our own; None for anything else."""
    if isinstance(module, Act):
        return module.activation.name
    for cls in type(module).__mro__[:2]:  # timm derives some of its own from torch's
        if cls.__name__ in KINDS and cls.__module__.startswith(_HOMES):
            return KINDS[cls.__name__]
    return None


def _function_kind(function: Any) -> Optional[str]:
    return _FUNCTIONS.get(function) if callable(function) and not isinstance(function, nn.Module) else None


def _holds_function(module: nn.Module) -> bool:
    return isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer))


def _chooser(new: New, kind: str) -> Optional[Factory]:
    chosen = new.get(kind) if isinstance(new, Mapping) else new
    if chosen is None:
        return None
    if isinstance(chosen, (str, Activation)):
        spec = chosen
        return lambda **keys: Act(spec, **keys)
    if not callable(chosen) or isinstance(chosen, nn.Module):
        raise TypeError(f"berlu: {chosen!r} is neither a spec nor a function that makes a module")
    return chosen


def _matches(where: Union[None, str, Callable[[str, nn.Module], bool]], name: str, module: nn.Module) -> bool:
    if where is None:
        return True
    return fnmatch.fnmatch(name, where) if isinstance(where, str) else bool(where(name, module))


# ---- Widths, and where parameters live -----------------------------------------------------------


def _layer_width(module: nn.Module) -> Optional[Tuple[int, int]]:
    """The width of what a layer puts out, and its channel dimension in a batch; None for anything
    that does not tell."""
    if isinstance(module, nn.Linear):
        return module.out_features, -1
    if isinstance(module, nn.modules.conv._ConvNd):
        return module.out_channels, 1
    if isinstance(module, nn.modules.batchnorm._NormBase):
        return module.num_features, 1
    return None


def _widths_before(model: nn.Module) -> Dict[str, Tuple[int, int]]:
    """For each place the width and the channel dimension of the layer that was registered before
    it."""
    out: Dict[str, Tuple[int, int]] = {}
    last: Optional[Tuple[int, int]] = None
    for name, module in model.named_modules(remove_duplicate=False):
        if last is not None:
            out[name] = last
        last = _layer_width(module) or last
    return out


def _widths_seen(model: nn.Module, example: Inputs, places: Iterable[str]) -> Dict[str, Tuple[int, int]]:
    """The same by looking at a forward pass, which is better than the order of registration: the layer
    that ran last says where its channels are. Where its width is not there, dimension 1 of four and
    more, else the last."""
    out: Dict[str, Tuple[int, int]] = {}
    modules, handles = dict(model.named_modules(remove_duplicate=False)), []
    last: Optional[Tuple[int, int]] = None

    def ran(module: nn.Module, inputs: Tuple[Any, ...], output: Any) -> None:
        nonlocal last
        last = _layer_width(module)

    def look(place: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: Tuple[Any, ...]) -> None:
            shape, dim = inputs[0].shape, -1 if inputs[0].dim() < 4 else 1
            if last is not None and last[1] < len(shape) and shape[last[1]] == last[0]:
                dim = last[1]
            seen = int(shape[dim]), dim
            if out.setdefault(place, seen) != seen:
                raise ValueError(
                    f"berlu: '{place}' runs with {out[place][0]} and with {seen[0]} channels (dimensions {out[place][1]} "
                    f"and {dim}), so it cannot have a parameter per channel; pass channels=False, or where="
                )

        return hook

    for module in model.modules():
        if _layer_width(module):
            handles.append(module.register_forward_hook(ran))
    for place in places:
        handles.append(modules[place].register_forward_pre_hook(look(place)))
    try:
        _run(model, example)
    finally:
        for handle in handles:
            handle.remove()
    return out


def _neighbour(model: nn.Module, place: str) -> Optional[nn.Parameter]:
    """The parameter whose device and dtype a new one at `place` takes: of the smallest module around the
    place that has floating-point parameters, the last one registered before the place, else the first."""
    while place:
        around, _, key = place.rpartition(".")
        parent = model.get_submodule(around)
        before, after, passed = list(parent.parameters(recurse=False)), [], False  # type: ignore[var-annotated]
        for name, child in parent.named_children():
            passed = passed or name == key
            (after if passed else before).extend(child.parameters())
        for p in before[::-1] + after:
            if p.dtype.is_floating_point and torch.finfo(p.dtype).bits >= 16:
                return p
        place = around
    return None


# ---- Functional calls ----------------------------------------------------------------------------


@contextlib.contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for a block of code; then each module, frozen ones included, has its own again."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:  # outer ones first, because train() descends
            if module.training != mode:
                module.train(mode)


@torch.no_grad()
def _run(model: nn.Module, example: Inputs) -> None:
    with evaluation(model):
        _ = model(**example) if isinstance(example, Mapping) else model(*example)


class _Watch(TorchFunctionMode):
    """Counts calls of activation functions by the innermost module that runs. Modules of torch that
    wrap one are no finding."""

    def __init__(self, stack: List[Tuple[str, nn.Module]]) -> None:
        super().__init__()
        self.stack, self.found = stack, {}  # type: ignore[var-annotated]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = _FUNCTIONS.get(func)
        if name and self.stack:
            place, module = self.stack[-1]
            if kind_of(module) is None:
                self.found[place, name] = self.found.get((place, name), 0) + 1
        return func(*args, **(kwargs or {}))


def _functional_calls(model: nn.Module, example: Inputs) -> List[Tuple[str, str, int]]:
    stack: List[Tuple[str, nn.Module]] = []
    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda m, i, n=name: stack.append((n, m))))
        handles.append(module.register_forward_hook(lambda m, i, o: stack.pop() and None))
    try:
        with _Watch(stack) as watch:
            _run(model, example)
    finally:
        for handle in handles:
            handle.remove()
    return [(place, name, count) for (place, name), count in watch.found.items()]


# ---- The call ------------------------------------------------------------------------------------


def _new_module(
    model: nn.Module, factory: Factory, place: str, mode: bool, widths: Optional[Dict[str, Tuple[int, int]]]
) -> nn.Module:
    keys: Dict[str, Any] = {}
    if widths is not None:
        if place not in widths:
            raise ValueError(f"berlu: the width before '{place}' is not known; pass an example or channels=False")
        keys["channels"], keys["dim"] = widths[place]
    module = factory(**keys)
    if not isinstance(module, nn.Module):
        raise TypeError(f"berlu: what shall make the new activation of '{place}' gave {module!r}, which is no module")
    neighbour = _neighbour(model, place)
    if neighbour is not None:
        module.to(device=neighbour.device, dtype=neighbour.dtype)
    return module.train(mode)


def _text(module: nn.Module) -> str:
    return module.spec if isinstance(module, Act) else type(module).__name__


def replace_activations(
    model: nn.Module,
    new: New,
    old: Union[None, str, Iterable[str]] = None,
    where: Union[None, str, Callable[[str, nn.Module], bool]] = None,
    example: Any = None,
    channels: bool = False,
) -> Report:
    """Replaces the activation modules of a model, in place.

    new       a spec ("berlu:eps=0.1"), a factory (bt.BerLU), or a map from old names to these ({"gelu": "berlu"})
    old       replace only these ("gelu" or ["gelu", "silu"]); default: every activation
    where     a pattern of names ("blocks.*") or a function of name and module
    example   an input, a tuple of inputs, or a mapping of names to them (what a tokenizer gives): one forward pass
              lists functional calls that remain
    channels  one parameter per channel; widths come from the example, or from the layer before

    New parameters have the device and the dtype of the nearest ones in the model, those of the layer
    before if there are any.

    Returns a Report. Finding nothing is an error. A model is not changed by a call that fails.

    >>> import torch, berlu.torch as bt
    >>> print(bt.replace_activations(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.GELU()), "berlu:eps=0.1"))
    place  was   is now
    1      gelu  berlu:alpha=0.01,eps=0.1,degree=2,learn=alpha
    1 replaced, 0 gates left alone
    """
    check_model(model)
    wanted = None if old is None else {old} if isinstance(old, str) else set(old)
    inputs: Inputs = () if example is None else example if isinstance(example, (tuple, Mapping)) else (example,)
    report, plan = Report(looked=example is not None), _plan(model, new, wanted, where)
    if not plan:
        raise ValueError(f"berlu: nothing to replace: {_what_there_is(model, inputs)}")
    places = [place for place, _, _, by_function in plan if not by_function]
    widths = None
    if channels:
        widths = _widths_seen(model, inputs, places) if inputs else _widths_before(model)
    changes = _changes(model, plan, widths, report)
    for name, module in model.named_modules():
        if type(module).__name__ in _GATES and type(module).__module__.startswith(_HOMES):
            report.gates.append((name, type(module).__name__))
    before = [(store, key, store.get(key)) for owner, key, _ in changes for store in (vars(owner), owner._modules)]
    for owner, key, value in changes:
        setattr(owner, key, value)
        if isinstance(owner, nn.TransformerDecoderLayer):  # whose __setstate__ gives relu to copies and pickles else
            vars(owner)[key] = value
    try:
        report.functional = _functional_calls(model, inputs) if inputs else []
    except BaseException:  # the example is of another shape, say
        for store, key, found in before:
            if found is None:
                store.pop(key, None)
            else:
                store[key] = found
        raise
    return report


def _what_there_is(model: nn.Module, example: Inputs) -> str:
    if kind_of(model):
        return "the model itself is an activation; put it into a Sequential, or take another"
    kinds = {kind_of(m) or (_holds_function(m) and _function_kind(m.activation)) for m in model.modules()}
    known = ", ".join(sorted(kind for kind in kinds if kind))
    if known:
        return f"the model has {known}, which old, where or the map leave out"
    called = ", ".join(sorted({name for _, name, _ in _functional_calls(model, example)} if example else ()))
    plain = f", but calls {called}, which only its own code can change" if called else ""
    return f"the model has no activation module{plain}"


Step = Tuple[str, str, Factory, bool]  # place, old kind, what makes the new one, whether the place holds a function


def _plan(model: nn.Module, new: New, wanted: Optional[set[str]], where: Any) -> List[Step]:
    plan: List[Step] = []
    functions: Dict[str, Optional[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        found = [(name, kind_of(module), False)]
        if _holds_function(module):
            place = f"{name}.activation" if name else "activation"
            functions[place] = _function_kind(getattr(module, "activation", None))
            found.append((place, functions[place], True))
        for place, kind, by_function in found:
            if kind is None or (wanted is not None and kind not in wanted) or not place:
                continue
            if not by_function and functions.get(place):
                continue  # what runs is a function: torch gives relu to decoder layers that it copies
            factory = _chooser(new, kind)
            if factory is not None and _matches(where, place, module):
                plan.append((place, kind, factory, by_function))
    return plan


Change = Tuple[nn.Module, str, Any]  # a module, an attribute, its new value


def _changes(
    model: nn.Module, plan: List[Step], widths: Optional[Dict[str, Tuple[int, int]]], report: Report
) -> List[Change]:
    made: Dict[int, nn.Module] = {}
    changes: List[Change] = []
    for place, kind, factory, by_function in plan:
        parent_name, _, key = place.rpartition(".")
        parent = model.get_submodule(parent_name)
        before = getattr(parent, key)
        if by_function:
            width = {place: (int(getattr(parent, "linear1").out_features), -1)}
            module = _new_module(model, factory, place, parent.training, width if widths is not None else None)
        else:
            module = made.get(id(before)) or _new_module(model, factory, place, before.training, widths)
            made[id(before)] = module
        changes.append((parent, key, module))
        if _holds_function(parent) and hasattr(parent, "activation_relu_or_gelu"):
            changes.append((parent, "activation_relu_or_gelu", 0))
        report.replaced.append((place, kind, _text(module)))
    slow = {id(owner) for owner, key, _ in changes if key == "activation_relu_or_gelu"}
    for encoder in model.modules():  # with a padding mask it would make nested tensors for what torch computes itself
        if isinstance(encoder, nn.TransformerEncoder) and hasattr(encoder, "use_nested_tensor"):
            if any(id(layer) in slow or not getattr(layer, "activation_relu_or_gelu", 1) for layer in encoder.layers):
                changes.append((encoder, "use_nested_tensor", False))
    return changes
