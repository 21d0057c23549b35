"""Every activation in torch operations: the form of a spec. SPDX-License-Identifier: MIT

This is the pure form: it runs wherever torch runs (export, functorch, f64, any device), fuses under
torch.compile, and gives the derivatives of the native operators. _form.py is the interface; the
formulas are in _forms_knee.py, _forms_piecewise.py and _forms_exponential.py. Here are smoothed
functions, scale and center, and site_of(), which finds the form of a spec."""

from __future__ import annotations

import ctypes as C
import math
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from .._act import Act, act as make_act
from .._lib import BF16, F16, F32, lib
from ._form import Form, Tensor, Values, horner
from ._forms_exponential import Celu, Elu, Gelu, GeluTanh, Limits, Mish, QuickGelu, Selu, Sigmoid, Silu, Softplus, Tanh
from ._forms_knee import Berlu, Smelu
from ._forms_piecewise import HardSwish, Leaky, Lines, Relu2

# ---- Smoothed functions, scale and center --------------------------------------------------------


class _Piece(C.Structure):
    _fields_ = [
        ("start", C.c_double),
        ("end", C.c_double),
        ("transition", C.c_int),
        ("polynomial", C.c_int),
        ("degree", C.c_int),
        ("bounded", C.c_int),
        ("bernstein", C.c_double * 17),
        ("monomial", C.c_double * 17),
        ("scale", C.c_double),
        ("rate", C.c_double),
    ]


class Smoothed(Form):
    """Any smoothed function: the pieces of the library, a polynomial each, selected from left to
    right. A polynomial is computed where it is selected, else at its centre, and one of degree 0 has
    no x, which may be infinite."""

    def __init__(self, spec: str) -> None:
        handle, piece = C.c_void_p(), _Piece()
        lib.berlu_smooth_piece_count.restype, lib.berlu_smooth_piece_count.argtypes = C.c_size_t, (C.c_void_p,)
        lib.berlu_smooth_piece.argtypes = (C.c_void_p, C.c_size_t, C.POINTER(_Piece))
        lib.berlu_smooth_free.argtypes = (C.c_void_p,)
        if lib.berlu_smooth_parse(C.byref(handle), spec.encode()):
            raise ValueError(lib.berlu_last_error().decode())
        self.pieces: List[Tuple[float, float, float, List[float]]] = []  # start, end, centre, coefficients
        for i in range(lib.berlu_smooth_piece_count(handle)):
            lib.berlu_smooth_piece(handle, i, C.byref(piece))
            centre = (piece.start + piece.end) / 2 if piece.bounded else 0.0
            self.pieces.append((piece.start, piece.end, centre, list(piece.monomial)[: piece.degree + 1]))
        lib.berlu_smooth_free(handle)

    def _choose(self, x: Tensor, order: int) -> Tensor:
        out = x  # NaN is in no piece
        for start, end, centre, coefficients in self.pieces:
            for _ in range(order):
                coefficients = [i * c for i, c in enumerate(coefficients)][1:] or [0.0]
            while len(coefficients) > 1 and coefficients[-1] == 0:
                coefficients = coefficients[:-1]
            here = torch.where((x >= start) & (x <= end), x - centre, 0.0)
            out = torch.where(x >= start, horner(coefficients, here), out)
        return out

    def value(self, x: Tensor, v: Values) -> Tensor:
        return self._choose(x, 0)

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return self._choose(x, 1)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return self._choose(x, 2)


class Scaled(Form):
    """(f(k x) - f(0)) / k; f(0) only where the spec says center=1."""

    def __init__(self, form: Form, scale: float, center: bool) -> None:
        self.form, self.scale, self.center, self.params = form, scale, center, form.params

    def exported(self, x: Tensor, v: Values) -> Tensor:
        return self._shifted(self.form.exported(self.scale * x, v), x, self.form.exported(torch.zeros_like(x), v))

    def _shifted(self, at: Tensor, x: Tensor, zero: Tensor) -> Tensor:
        return (at - zero) / self.scale if self.center else at / self.scale

    def value(self, x: Tensor, v: Values) -> Tensor:
        return self._shifted(self.form.value(self.scale * x, v), x, self.form.value(torch.zeros_like(x), v))

    def slope(self, x: Tensor, v: Values) -> Tensor:
        return self.form.slope(self.scale * x, v)

    def second(self, x: Tensor, v: Values) -> Tensor:
        return self.scale * self.form.second(self.scale * x, v)

    def by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        zeros = self.form.by_param(torch.zeros_like(x), v)
        return [self._shifted(a, x, z) for a, z in zip(self.form.by_param(self.scale * x, v), zeros)]

    def slope_by_param(self, x: Tensor, v: Values) -> List[Tensor]:
        return self.form.slope_by_param(self.scale * x, v)

    def by_params(self, x: Tensor, v: Values) -> List[List[Tensor]]:
        zeros = self.form.by_params(torch.zeros_like(x), v)
        return [
            [self._shifted(a, x, z) for a, z in zip(row, zero)]
            for row, zero in zip(self.form.by_params(self.scale * x, v), zeros)
        ]


# ---- The form of a spec --------------------------------------------------------------------------

_INF = math.inf
_FORMS: Dict[str, Form] = {
    "identity": Lines(1, 0, -_INF, _INF),
    "relu": Lines(1, 0, 0, _INF),
    "relu6": Lines(1, 0, 0, 6),
    "hard_tanh": Lines(1, 0, -1, 1),
    "hard_sigmoid": Lines(1 / 6, 3, 0, 1),
    "leaky_relu": Leaky(),
    "prelu": Leaky(),
    "hard_swish": HardSwish(),
    "elu": Elu(),
    "celu": Celu(),
    "selu": Selu(),
    "gelu": Limits(Gelu()),
    "gelu_tanh": Limits(GeluTanh()),
    "silu": Limits(Silu()),
    "mish": Limits(Mish()),
    "tanh": Tanh(),
    "sigmoid": Sigmoid(),
    "softplus": Softplus(),
    "quick_gelu": Limits(QuickGelu()),
    "relu2": Relu2(),
    "smelu": Smelu(),
}


def _options(act: Act) -> Dict[str, Any]:
    """The keys of a canonical spec that are not parameters."""
    tail = act.spec.rpartition(")")[2] if act.spec.startswith("smooth(") else act.spec.partition(":")[2]
    return dict(part.split("=", 1) for part in tail.lstrip(":").split(",") if "=" in part)


def form_of(act: Act) -> Form:
    """The form of an activation, scale and center included."""
    if act.name == "berlu":
        form: Form = Berlu(int(act.parameters["degree"].value))
    elif act.name in _FORMS:
        form = _FORMS[act.name]
    else:
        form = Smoothed(act.spec[: act.spec.rindex(")") + 1])
    options = _options(act)
    scale, center = float(options.get("scale", 1)), options.get("center", "0") == "1"
    return Scaled(form, scale, center) if scale != 1 or center else form


class Site:
    """A spec resolved for torch: the activation, its form, its parameter values in order, and why its
    slope cannot be had from outputs of a dtype ("" where it can)."""

    __slots__ = ("act", "form", "own", "output_faults")

    def __init__(self, spec: str) -> None:
        self.act = make_act(spec)
        self.form = form_of(self.act)
        self.own = [self.act.parameters[name].value for name in self.form.params]
        self.output_faults = {
            torch.float32: self.act.output_fault(F32),
            torch.bfloat16: self.act.output_fault(BF16),
            torch.float16: self.act.output_fault(F16),
        }


# torch.compile cannot trace the C library. What only asks it about a text is marked as a constant and
# runs while torch.compile traces; as torch.compiler.assume_constant_result() does, which would import
# the compiler, and that takes seconds.


def _constant(function: Callable[[str], str]) -> Callable[[str], str]:
    setattr(function, "_dynamo_marked_constant", True)
    return function


@_constant
def canonical(spec: str) -> str:
    """The canonical form of a spec."""
    return make_act(spec).spec


class _Sites:
    """A cache of sites, each an attribute: one that is added while torch.compile traces is seen by the
    rest of what it traces, an entry of a dictionary is not."""

    def __init__(self) -> None:
        self.names: Dict[str, str] = {}
        self.made = 0
        self.lock = threading.Lock()

    def name(self, spec: str) -> str:
        return self.names.get(spec) or self._add(spec)

    def _add(self, spec: str) -> str:
        site = Site(spec)
        with self.lock:
            if spec not in self.names:  # another thread may have been faster
                self.made += 1
                setattr(self, f"site{self.made}", site)
                self.names[spec] = f"site{self.made}"
            name = self.names[spec]
            if len(self.names) > 1024:
                delattr(self, self.names.pop(next(iter(self.names))))
        return name


_sites = _Sites()


@_constant
def _site_name(spec: str) -> str:
    return _sites.name(spec)


def site_of(spec: str) -> Site:
    """The site of a spec; made once, because every backward pass needs it. A name is of no use any more
    where another thread's new spec took its place meanwhile."""
    while True:
        site: Optional[Site] = getattr(_sites, _site_name(spec), None)
        if site is not None:
            return site
