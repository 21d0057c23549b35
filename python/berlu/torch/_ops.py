"""How an activation runs on a tensor: the native operator, eager or traced, or the pure form.
SPDX-License-Identifier: MIT

    eager, CPU or CUDA, f32 bf16 f16   an autograd.Function around the operator; custom_op's own
                                       autograd costs 50 us more
    torch.compile                      the operator where a parameter's gradient is wanted, else the
                                       pure form, which fuses
    export, jit, functorch, forward    the pure form as a composition of operators, which all of them
    AD, tensor subclasses              differentiate themselves
    f64, other devices                 the pure form with its own backward formula

Every backward is differentiable again: the derivatives of the operators `backward` and
`backward_from_output` are written out over the table in _forms.py. Operators whose name ends in _raw
have no derivative; all others end in one of them, so it is these that compiled programs call, and no
Python runs between torch's dispatcher and the kernel. Read apply() first."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

import torch

from .._lib import Error
from . import _bridge
from ._form import Number
from ._forms import Site, site_of

Tensor = torch.Tensor
Parameter = Optional[Tensor]

_NATIVE_DTYPES = frozenset((torch.float32, torch.bfloat16, torch.float16))
_DTYPES = _NATIVE_DTYPES | {torch.float64}
WIDTHS = ("eps", "beta")  # of a transition: the library treats a width that is not positive as a kink

# keep="output" computes the slope from y. Below these the rounding of y spoils it (docs/math.md).
LEAST_ALPHA, LEAST_ALPHA_16 = 0.001, 2.0**-7


# ---- Parameters and their sums -------------------------------------------------------------------


def _shaped(p: Tensor, x: Tensor, dim: int) -> Tensor:
    """A parameter so that it broadcasts against x."""
    count = p.shape.numel()  # a number to torch.jit.trace() too, to which p.numel() is a tensor
    if count == 1:
        return p.reshape(())
    shape = [1] * x.dim()
    shape[dim] = count
    return p.reshape(shape)


def _values(site: Site, x: Tensor, params: Sequence[Parameter], dim: int, dtype: torch.dtype) -> List[Number]:
    out: List[Number] = []
    for name, own, p in zip(site.form.params, site.own, params):
        value = own if p is None else _shaped(p, x, dim).to(dtype)
        out.append(value.clamp_min(2.0**-60) if isinstance(value, Tensor) and name in WIDTHS else value)
    return out


def _sum_as(terms: Tensor, p: Tensor, dim: int) -> Tensor:
    """The terms of a parameter's gradient, added up to its shape."""
    if p.numel() == 1:
        return terms.sum().reshape(p.shape).to(p.dtype)
    axes = [d for d in range(terms.dim()) if d != dim % terms.dim()]
    return (terms.sum(axes) if axes else terms).reshape(p.shape).to(p.dtype)


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """x.to(dtype) where that does something. torch.compile of torch 2.11 gives the result of an
    autograd.Function that passes through a conversion to its own dtype a gradient of 0."""
    return x if x.dtype == dtype else x.to(dtype)


# ---- The pure form -------------------------------------------------------------------------------


def composition(x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int, exported: bool = False) -> Tensor:
    """The value in torch operations, for transforms that differentiate it themselves."""
    site, dtype = site_of(spec), _wide(x)
    value = site.form.exported if exported else site.form.value
    return _cast(value(_cast(x, dtype), _values(site, x, (p, q), dim, dtype)), x.dtype)


def _gradients(
    dy: Tensor,
    known: Tensor,
    p: Parameter,
    q: Parameter,
    spec: str,
    dim: int,
    need_p: bool,
    need_q: bool,
    from_output: bool = False,
) -> Tuple[Tensor, Parameter, Parameter]:
    """What the backward operators compute, in torch operations."""
    site, dtype = site_of(spec), _wide(known)
    form, v = site.form, _values(site, known, (p, q), dim, dtype)
    x, dy = _cast(known, dtype), _cast(dy, dtype)
    if from_output:
        x = form.inverse(x, v)
    out: List[Parameter] = [None, None]
    if need_p or need_q:
        for i, (a, needed, terms) in enumerate(zip((p, q), (need_p, need_q), form.by_param(x, v))):
            if needed and a is not None:
                out[i] = _sum_as(dy * terms, a, dim)
    return _cast(dy * form.slope(x, v), known.dtype), out[0], out[1]


class _Pure(torch.autograd.Function):
    """The pure form with its own backward formula: faster compiled than what autograd makes of the
    composition."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int) -> Tensor:
        ctx.save_for_backward(x, p, q)
        ctx.spec, ctx.dim = spec, dim
        return composition(x, p, q, spec, dim)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
        x, p, q = ctx.saved_tensors
        need_p, need_q = ctx.needs_input_grad[1], ctx.needs_input_grad[2]
        return *_gradients(dy, x, p, q, ctx.spec, ctx.dim, need_p, need_q), None, None


_pure_apply: Callable[..., Any] = _Pure.apply  # untyped in some versions of torch


# ---- The operators: what torch.compile and autograd must know ------------------------------------


def _second_order(
    dy: Tensor,
    known: Tensor,
    p: Parameter,
    q: Parameter,
    spec: str,
    dim: int,
    from_output: bool,
    cotangents: Sequence[Parameter],
) -> Tuple[Tensor, Tensor, List[Parameter]]:
    """The derivative of (dx, dp, dq) = dy (f', sums of f_p, f_q) by dy, by what is known, and by
    the parameters.

    With g, gp, gq the cotangents and t = g f' + gp f_p + gq f_q the result is (t, dy t_x, sums of
    dy t_p). Where y is known in place of x, x is a function of (y, p) with x_y = 1 / f' and x_p =
    -f_p / f', which the chain rule adds."""
    site, dtype = site_of(spec), _wide(known)
    v = _values(site, known, (p, q), dim, dtype)
    form, params = site.form, (p, q)[: len(site.form.params)]
    x = form.inverse(known.to(dtype), v) if from_output else known.to(dtype)
    g, *others = cotangents
    slope, by_param, mixed = form.slope(x, v), form.by_param(x, v), form.slope_by_param(x, v)
    g = torch.zeros_like(x) if g is None else g.to(dtype)
    weights = [None if o is None else _shaped(o, x, dim).to(dtype) for o in others[: len(params)]]
    by_dy, by_x = g * slope, g * form.second(x, v)
    by_p = [g * m for m in mixed]
    for i, w in enumerate(weights):
        if w is not None:
            by_dy, by_x = by_dy + w * by_param[i], by_x + w * mixed[i]
            by_p = [t + w * s for t, s in zip(by_p, form.by_params(x, v)[i])]
    if from_output:
        by_x = torch.where(slope == 0, torch.zeros_like(x), by_x / slope)
        by_p = [t - by_x * f for t, f in zip(by_p, by_param)]
    dy = dy.to(dtype)
    sums = [None if a is None else _sum_as(dy * t, a, dim) for a, t in zip(params, by_p)]
    return by_dy.to(known.dtype), (dy * by_x).to(known.dtype), sums + [None] * (2 - len(sums))


def _forward_fake(x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int) -> Tensor:
    return torch.empty_like(x)


def _backward_fake(
    dy: Tensor, known: Tensor, p: Parameter, q: Parameter, spec: str, dim: int, need_p: bool, need_q: bool
) -> Tuple[Tensor, Parameter, Parameter]:
    def grad(wanted: bool, of: Parameter) -> Parameter:
        return torch.empty_like(of) if wanted and of is not None else None

    return torch.empty_like(known), grad(need_p, p), grad(need_q, q)


if _bridge.available:
    _forward, _raw_forward = torch.ops.berlu.forward.default, torch.ops.berlu.forward_raw.default
    _raw_backward, _raw_from_output = (
        torch.ops.berlu.backward_raw.default,
        torch.ops.berlu.backward_from_output_raw.default,
    )


def _own(error: RuntimeError, like: Tensor) -> RuntimeError:
    """An operator's exception as berlu.Error where the text is the library's; torch's own stay. torch's
    shim does not say why it failed, so torch is asked for such memory once more: out of memory shall be
    the exception that programs wait for."""
    text = str(error)
    if text.startswith("berlu: torch's ") and text.endswith(" failed"):
        try:
            torch.empty_like(like)
        except RuntimeError as reason:
            return reason
    return Error(text) if text.startswith("berlu: ") else error


class _Backward(torch.autograd.Function):
    """A backward operator, or the same in torch operations, that can be differentiated."""

    @staticmethod
    def forward(
        ctx: Any,
        dy: Tensor,
        known: Tensor,
        p: Parameter,
        q: Parameter,
        spec: str,
        dim: int,
        need_p: bool,
        need_q: bool,
        from_output: bool,
        native: bool,
    ) -> Any:
        ctx.save_for_backward(dy, known, p, q)
        ctx.set_materialize_grads(False)
        ctx.spec, ctx.dim, ctx.from_output = spec, dim, from_output
        if not native:
            return _gradients(dy, known, p, q, spec, dim, need_p, need_q, from_output)
        op = _raw_from_output if from_output else _raw_backward
        return op(dy, known, p, q, spec, dim, need_p, need_q)

    @staticmethod
    def backward(ctx: Any, *cotangents: Parameter) -> Tuple[Any, ...]:
        dy, known, p, q = ctx.saved_tensors
        by_dy, by_known, (dp, dq) = _second_order(dy, known, p, q, ctx.spec, ctx.dim, ctx.from_output, cotangents)
        return by_dy, by_known, dp, dq, None, None, None, None, None, None


_backward_apply: Callable[..., Any] = _Backward.apply


def _check_invertible(spec: str, p: Parameter) -> None:
    """What the operators check on the CPU, in their words: with a slope that learning drove to 0 or below, y
    does not tell x. A GPU would wait for the answer."""
    if p is None or not p.is_cpu or site_of(spec).form.params[0] != "alpha":
        return
    least = p.detach().min().item()
    if not least > 0:
        raise Error(f"berlu: {spec}: with alpha = {least:g} its slope cannot be had from the output; keep the input")


def _call_backward(from_output: bool, native: bool, ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    known, p, q = ctx.saved_tensors
    need_p, need_q = ctx.needs_input_grad[1], ctx.needs_input_grad[2]
    if dy.dtype != known.dtype:
        dy = dy.to(known.dtype)
    op = _raw_from_output if from_output else _raw_backward
    if torch.compiler.is_compiling():
        if native:
            dx, dp, dq = op(dy, known, p, q, ctx.spec, ctx.dim, need_p, need_q)
        else:
            dx, dp, dq = _gradients(dy, known, p, q, ctx.spec, ctx.dim, need_p, need_q, from_output)
        return dx, dp, dq, None, None
    transformed = _transformed()  # then dy may carry a tangent, which the operators would drop
    if from_output and not native and not transformed:
        _check_invertible(ctx.spec, p)
    try:
        if torch.is_grad_enabled() and not transformed:  # create_graph
            dx, dp, dq = _backward_apply(dy, known, p, q, ctx.spec, ctx.dim, need_p, need_q, from_output, native)
        elif native and not transformed:
            dx, dp, dq = op(dy, known, p, q, ctx.spec, ctx.dim, need_p, need_q)
        else:
            dx, dp, dq = _gradients(dy, known, p, q, ctx.spec, ctx.dim, need_p, need_q, from_output)
    except RuntimeError as error:
        raise _own(error, known) from None
    return dx, dp, dq, None, None


class _Native(torch.autograd.Function):
    """The operator; keeps x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int) -> Tensor:
        ctx.save_for_backward(x, p, q)
        ctx.spec, ctx.dim = spec, dim
        y: Tensor = _raw_forward(x, p, q, spec, dim)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
        return _call_backward(False, True, ctx, dy)


_native_apply: Callable[..., Any] = _Native.apply


class _KeepsOutput(torch.autograd.Function):
    """The operator, or the pure form; keeps y, which the next layer keeps anyway, so that x is freed.
    Traced too: then y is a graph output. What is kept must not depend on what computes: checkpointing
    runs a forward pass again, maybe outside of the block or the thread of backend(), for the backward
    pass of the first."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int, native: bool) -> Tensor:
        y: Tensor = (_raw_forward if native else composition)(x, p, q, spec, dim)
        ctx.save_for_backward(y, p, q)
        ctx.spec, ctx.dim, ctx.native = spec, dim, native
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
        return *_call_backward(True, ctx.native, ctx, dy), None


_keeping_apply: Callable[..., Any] = _KeepsOutput.apply


def _tracked(*tensors: Parameter) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _forward_autograd(x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int) -> Tensor:
    """The autograd of `forward`: runs while torch.compile traces, and where a user calls the operator."""
    y: Tensor = _native_apply(x, p, q, spec, dim) if _tracked(x, p, q) else _raw_forward(x, p, q, spec, dim)
    return y


def _backward_autograd(from_output: bool) -> Any:
    def autograd(dy: Tensor, known: Tensor, p: Parameter, q: Parameter, *rest: Any) -> Any:
        if _tracked(dy, known, p, q):
            return _backward_apply(dy, known, p, q, *rest, from_output, True)
        return (_raw_from_output if from_output else _raw_backward)(dy, known, p, q, *rest)

    return autograd


_library: Any = None  # what is registered lives as long as this


def _register() -> None:
    global _library
    fragment: Any = torch.library.Library  # untyped in some versions of torch
    _library = fragment("berlu", "FRAGMENT")
    for name, fake, autograd in (
        ("forward", _forward_fake, _forward_autograd),
        ("backward", _backward_fake, _backward_autograd(False)),
        ("backward_from_output", _backward_fake, _backward_autograd(True)),
    ):
        for ending, kernel in (("", autograd), ("_raw", torch.library.fallthrough_kernel)):
            torch.library.register_fake(f"berlu::{name}{ending}", fake, lib=_library)
            _library.impl(name + ending, kernel, "Autograd")


def _self_test() -> Optional[str]:
    """Compares the operators with the pure form once, on the CPU in f32 whatever torch's defaults are;
    None, or what is wrong."""
    x = torch.tensor([-2.0, -0.005, 0.0, 0.003, 1.5], dtype=torch.float32, device="cpu")
    p, spec = torch.full_like(x[:1], 0.25), "berlu:eps=0.01"
    try:
        with torch.no_grad():
            y = _raw_forward(x, p, None, spec, -1)
            dx, dp, _ = _raw_backward(torch.ones_like(x), x, p, None, spec, -1, True, False)
    except Exception as error:
        return str(error)
    site = site_of(spec)
    v: List[Number] = [p, site.own[1]]
    right = torch.allclose(y, site.form.value(x, v), atol=1e-7) and torch.allclose(dx, site.form.slope(x, v), atol=1e-6)
    right = right and torch.allclose(dp, site.form.by_param(x, v)[0].sum().reshape(1), atol=1e-6)
    return None if right else "they differ from the pure form"


if _bridge.available:
    _register()
    _wrong = _self_test()
    if _wrong:
        _bridge.give_up(_wrong)
else:
    _bridge.give_up(_bridge.fault or "")


# ---- The choice ----------------------------------------------------------------------------------


class _Chosen(threading.local):
    """What blocks of code chose, for their own thread. Set here and not in the class, because
    torch.compile guards on what the object holds."""

    def __init__(self) -> None:
        self.backend: Optional[str] = None
        self.symbolic = False  # set while berlu.onnx exports functions


_chosen = _Chosen()
BACKENDS = ("auto", "native", "torch")


def check_backend(name: str) -> str:
    if name not in BACKENDS:
        raise ValueError(f"berlu: backend is '{name}'; it must be auto, native or torch")
    return name


@contextlib.contextmanager
def backend(name: str) -> Iterator[None]:
    """Chooses for a block of code, in the thread that runs it, what computes: "native", the operators
    (torch.compile included), "torch", the pure form, or "auto", the default.

    >>> import torch, berlu.torch as bt
    >>> with bt.backend("torch"):
    ...     y = bt.relu6(torch.tensor([7.0]))
    >>> y
    tensor([6.])
    """
    before, _chosen.backend = _chosen.backend, check_backend(name)
    try:
        yield
    finally:
        _chosen.backend = before


def _transformed() -> bool:
    """Whether functorch or forward AD is at work, which operators do not take."""
    return torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0


def _device_is_native(x: Tensor) -> bool:
    return x.is_cpu or (x.is_cuda and _bridge.cuda_available)


def check_model(model: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"berlu: the model is a {type(model).__name__}; it must be a module of torch")


def _check_input(x: Tensor) -> None:
    """Refuses what would end in NaN, in numbers cut to integers, or in an error deep inside torch."""
    if not isinstance(x, Tensor):
        raise TypeError(f"berlu: x is a {type(x).__name__}; it must be a tensor")
    if x.dtype not in _DTYPES:
        raise TypeError(f"berlu: x is {x.dtype}; it must be a floating-point tensor of 16, 32 or 64 bits")
    if x.layout is not torch.strided and type(x) is Tensor:
        raise TypeError(f"berlu: the layout of x is {x.layout}; it must be torch.strided")
    if x.is_nested and type(x) is Tensor:
        raise TypeError("berlu: x is a nested tensor of the strided layout; use layout=torch.jagged")


def _check_params(x: Tensor, p: Parameter, q: Parameter, dim: int) -> None:
    """Refuses what would end in an unintended broadcast, or in an error deep inside torch."""
    for a in (p, q):
        if a is None:
            continue
        if not isinstance(a, Tensor):
            raise TypeError(f"berlu: a parameter is a {type(a).__name__}; it must be a tensor")
        if not a.is_floating_point():
            raise TypeError(f"berlu: a parameter is {a.dtype}; it must be a floating-point tensor")
        if a.device != x.device:
            raise ValueError(f"berlu: a parameter lies on {a.device}, and x on {x.device}")
        channels = a.numel()
        if channels == 1:
            continue
        if channels == 0:
            raise ValueError("berlu: a parameter has no value")
        if a.dim() > 1:
            raise ValueError(
                f"berlu: a parameter has the shape {tuple(a.shape)}; it must be one number, or one per channel in one "
                "dimension, which belong to dimension dim of x"
            )
        if not isinstance(dim, int):
            raise TypeError(f"berlu: dim is {dim!r}; it must be a whole number")
        if x.dim() == 0 or not -x.dim() <= dim < x.dim() or x.shape[dim] != channels:
            raise ValueError(
                f"berlu: there are {channels} channels, and dimension {dim} of x has another size: {tuple(x.shape)}"
            )


def check_keep(spec: str, keep: str, dtype: torch.dtype) -> None:
    """Refuses a `keep` that is unknown, or that the activation's slope cannot be had from. The
    value of a learned alpha is not looked at, which on a GPU would wait for it: its first one is."""
    if keep == "input":
        return
    if keep != "output":
        raise ValueError(f"berlu: keep is '{keep}'; it must be input or output")
    site = site_of(spec)
    fault = site.output_faults.get(dtype, site.output_faults[torch.float32])
    if fault:
        raise ValueError(f"berlu: {fault}")
    act = site.act
    least = LEAST_ALPHA_16 if dtype in (torch.bfloat16, torch.float16) else LEAST_ALPHA
    if "alpha" in act.parameters and act.parameters["alpha"].value < least:
        what = "keep='output' in 16 bits" if least == LEAST_ALPHA_16 else "keep='output'"
        raise ValueError(f"berlu: {spec}: {what} needs alpha >= {least:g}; use keep='input'")


def _pure(x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int) -> Tensor:
    """The pure form outside of transformations."""
    if not torch.is_grad_enabled():
        return composition(x, p, q, spec, dim)
    y: Tensor = _pure_apply(x, p, q, spec, dim)
    return y


def _apply_traced(
    x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int, keep: str, choice: str, learns: bool
) -> Tensor:
    """Inside torch.compile. keep="output" is asked for its memory, so auto is native there."""
    native = choice == "native" or (choice == "auto" and (learns or keep == "output"))
    native = native and _bridge.available and x.dtype in _NATIVE_DTYPES and _device_is_native(x)
    if native:
        p, q = _single(p), _single(q)
    y: Tensor
    if keep == "output" and torch.is_grad_enabled():
        y = _keeping_apply(x, p, q, spec, dim, native)
    else:
        y = _forward(x, p, q, spec, dim) if native else _pure(x, p, q, spec, dim)
    return y


@contextlib.contextmanager
def _shapes_as_numbers() -> Iterator[None]:
    """Pauses torch.jit.trace(), to which shapes are tensors that no condition shall depend on."""
    change: Any = getattr(torch._C, "_set_tracing_state")  # some versions of torch do not declare it
    state = torch._C._get_tracing_state()
    change(None)
    try:
        yield
    finally:
        change(state)


def _exporting() -> bool:
    """Whether torch.export is at work. torch 2.10 answers is_exporting() with True inside
    torch.compile, its flag does not."""
    return bool(torch.compiler._is_exporting_flag)


def apply(
    x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int = -1, keep: str = "input", choice: str = "auto"
) -> Tensor:
    """f(x) with the activation of a spec; p and q replace its parameters number 0 and 1."""
    _check_input(x)
    if torch._C._get_tracing_state() is not None:
        with _shapes_as_numbers():
            _check_params(x, p, q, dim)
        return _exported(x, p, q, spec, dim)
    _check_params(x, p, q, dim)
    if _exporting():
        return _exported(x, p, q, spec, dim)
    if keep != "input":
        check_keep(spec, keep, x.dtype)
    choice = _chosen.backend or choice
    y: Tensor
    grad = torch.is_grad_enabled()
    learns = grad and ((p is not None and p.requires_grad) or (q is not None and q.requires_grad))
    if torch.compiler.is_compiling():
        if _transformed():
            return composition(x, p, q, spec, dim)
        return _apply_traced(x, p, q, spec, dim, keep, choice, learns)
    if type(x) is not Tensor and type(x) is not torch.nn.Parameter or _transformed():
        return composition(x, p, q, spec, dim)
    if choice == "torch" or x.dtype not in _NATIVE_DTYPES or not _bridge.available or not _device_is_native(x):
        if keep == "output" and grad:
            y = _keeping_apply(x, p, q, spec, dim, False)
            return y
        return _pure(x, p, q, spec, dim)
    p, q = _single(p), _single(q)
    try:
        if not grad or not (learns or x.requires_grad):
            y = _raw_forward(x, p, q, spec, dim)
        elif keep == "output":
            y = _keeping_apply(x, p, q, spec, dim, True)
        else:
            y = _native_apply(x, p, q, spec, dim)
    except RuntimeError as error:
        raise _own(error, x) from None
    return y


@contextlib.contextmanager
def symbolic(on: bool) -> Iterator[None]:
    """While on, a BerLU that is exported becomes one node of domain `berlu`."""
    before, _chosen.symbolic = _chosen.symbolic, on
    try:
        yield
    finally:
        _chosen.symbolic = before


def is_plain_berlu(spec: str) -> bool:
    return site_of(spec).act.name == "berlu" and "scale=" not in spec and "center=" not in spec


def _exported(x: Tensor, p: Parameter, q: Parameter, spec: str, dim: int) -> Tensor:
    """The nodes of an exported program: standard operators, or the node of the function form."""
    if not _chosen.symbolic or not is_plain_berlu(spec):
        return composition(x, p, q, spec, dim, exported=True)
    site = site_of(spec)
    degree = int(site.act.parameters["degree"].value)
    v = [
        t if isinstance(t, Tensor) else torch.full((), t, dtype=x.dtype) for t in _values(site, x, (p, q), dim, x.dtype)
    ]
    name = "berlu::BerLU" if degree == 2 else f"berlu::BerLU{degree}"
    y: Tensor = torch.onnx.ops.symbolic(name, (x, *v), dtype=x.dtype, shape=x.shape, version=1)
    return y


def _single(p: Parameter) -> Parameter:
    """A parameter as the operators take it; a cast or a copy outside of them keeps its gradient in
    its own dtype and layout."""
    if p is None or (p.dtype is torch.float32 and p.is_contiguous()):
        return p
    return p.float().contiguous()
