"""An activation as an immutable Python object, and the two ways to make one.
SPDX-License-Identifier: MIT

The object owns a berlu_act and answers questions in double; arrays go through berlu.numpy, tensors
through berlu.torch. Its identity is its canonical spec, so it compares, hashes and pickles by that
text."""

from __future__ import annotations

import ctypes as C
import functools
from types import MappingProxyType
from typing import Any, Iterable, List, Mapping, NamedTuple, NoReturn, Tuple, Union

from ._lib import BACKWARD_FROM_OUTPUT, Call, ParamInfo, Point, check, last_error, lib


class Parameter(NamedTuple):
    """A parameter of an activation: its value, the default of the name, the range a spec may name,
    and whether it is a setting (such as degree), can be learned, and is learned.

    >>> import berlu
    >>> berlu.act("prelu").parameters["alpha"].default
    0.25
    """

    value: float
    default: float
    low: float
    high: float
    setting: bool
    learnable: bool
    learned: bool


class Act:
    """An activation function; made by berlu.act() and berlu.smooth().

    >>> import berlu
    >>> f = berlu.act("berlu:eps=0.1")
    >>> f.name, f.lipschitz, round(f.value(0), 6)
    ('berlu', 1.0, 0.02475)
    >>> f == berlu.act("berlu:eps=0.1,alpha=0.01")
    True
    """

    __slots__ = (
        "_handle",
        "spec",
        "name",
        "about",
        "parameters",
        "lipschitz",
        "ulp",
        "slope_ulp",
        "from_output",
        "__weakref__",
    )

    _handle: C.c_void_p
    spec: str
    name: str
    about: str
    parameters: Mapping[str, Parameter]
    lipschitz: float
    ulp: float
    slope_ulp: float
    from_output: bool

    def __init__(self, spec: str) -> None:
        if not isinstance(spec, str):
            raise TypeError(f"berlu: an activation is named by a text such as 'berlu:eps=0.1', not by {spec!r}")
        if "\0" in spec:
            raise ValueError("berlu: the text of an activation holds a NUL character")
        handle = C.c_void_p()
        check(lib.berlu_act_make(C.byref(handle), spec.encode()))
        keep = functools.partial(object.__setattr__, self)
        keep("_handle", handle)
        keep("spec", lib.berlu_act_spec(handle).decode())
        keep("name", lib.berlu_act_name(handle).decode())
        keep("about", lib.berlu_act_about(handle).decode())
        keep("parameters", MappingProxyType(dict(_parameters(handle))))
        keep("lipschitz", lib.berlu_act_lipschitz(handle))
        keep("ulp", lib.berlu_act_ulp(handle))
        keep("slope_ulp", lib.berlu_act_slope_ulp(handle))
        keep("from_output", bool(lib.berlu_act_has_from_output(handle)))

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle and lib is not None:  # the interpreter may be gone half-way
            lib.berlu_act_free(handle)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("an activation cannot be changed; make another with berlu.act()")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("an activation cannot be changed; make another with berlu.act()")

    def __reduce__(self) -> Tuple[Any, Tuple[str]]:
        return act, (self.spec,)

    def __copy__(self) -> Act:
        return self

    def __deepcopy__(self, memo: Any) -> Act:
        return self

    def __eq__(self, other: object) -> bool:
        return self.spec == other.spec if isinstance(other, Act) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.spec)

    def __repr__(self) -> str:
        return f"berlu.act({self.spec!r})"

    def _at(self, x: float) -> Point:
        point: Point = lib.berlu_act_at(self._handle, float(x), None)
        return point

    def value(self, x: float) -> float:
        """f(x) in double."""
        return float(self._at(x).value)

    def slope(self, x: float) -> float:
        """f'(x) in double."""
        return float(self._at(x).slope)

    def second(self, x: float) -> float:
        """f''(x) in double."""
        return float(self._at(x).second)

    def param_slope(self, x: float, name: str) -> float:
        """df/d(name) at x in double."""
        return float(self._at(x).param[self.param_index(name)])

    def output_fault(self, dtype: int) -> str:
        """Why the slope cannot be had from outputs of a dtype of the C library, in its words; "" where
        it can."""
        call = Call(dtype=dtype, channels=1)  # no row: only the check
        return "" if lib.berlu_act_run(self._handle, BACKWARD_FROM_OUTPUT, C.byref(call), None) == 0 else last_error()

    def param_index(self, name: str) -> int:
        """The number of a parameter in calls of the C library."""
        learnable = [key for key, p in self.parameters.items() if p.learnable]
        if name not in learnable:
            known = ", ".join(learnable) or "no parameter"
            raise ValueError(f"{self.name}: it has no parameter '{name}' with a slope; it has {known}")
        return learnable.index(name)


def _parameters(handle: C.c_void_p) -> Iterable[Tuple[str, Parameter]]:
    info = ParamInfo()
    for index in range(lib.berlu_act_param_count(handle) + lib.berlu_act_setting_count(handle)):
        check(lib.berlu_act_param(handle, index, C.byref(info)))
        yield info.name.decode(), Parameter(
            info.value, info.initial, info.low, info.high, bool(info.setting), bool(info.learnable), bool(info.learned)
        )


@functools.lru_cache(maxsize=1024)
def _known(spec: str) -> Act:
    return Act(spec)


def act(spec: Union[str, Act]) -> Act:
    """The activation that a text names: `NAME[:key=value,...]` or `smooth(...)`, as everywhere in
    berlu.

    >>> import berlu
    >>> berlu.act("leaky_relu:alpha=0.5").value(-3)
    -1.5
    """
    if isinstance(spec, Act):
        return spec
    return _known(spec) if isinstance(spec, str) else Act(spec)


def number(value: Any) -> str:
    """A number as a spec has it: whole ones without a point, because settings such as degree take no
    other. A text stays: the library reads it. f-strings, not str() and repr(), which torch.compile cannot
    trace for a number that changed between calls."""
    if isinstance(value, str):
        return value
    try:
        value = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"berlu: {value!r} is no number") from None
    return f"{int(value)}" if value.is_integer() and abs(value) < 2**53 else f"{value!r}"


Numbers = Union[float, Iterable[float]]


def listed(numbers: Any) -> List[float]:
    """One number, of whatever type, or several; TypeError for anything else."""
    several = hasattr(numbers, "__iter__") and not isinstance(numbers, str) and getattr(numbers, "ndim", None) != 0
    try:
        return [float(number) for number in (numbers if several else [numbers])]
    except (TypeError, ValueError):
        raise TypeError(f"berlu: {numbers!r} is neither a number nor numbers") from None


def _text(numbers: Numbers) -> str:
    return ",".join(map(repr, listed(numbers)))


def smooth(
    kinks: Numbers,
    slopes: Numbers,
    eps: Numbers = 0.01,
    degree: int = 2,
    at: Tuple[float, float] = (0.0, 0.0),
    eps_right: Union[None, Numbers] = None,
    form: str = "bernstein",
) -> Act:
    """A piecewise-linear function made smooth: `kinks`, one more slope than kinks, the half-widths
    `eps` of the transitions (one, or one per kink) and the Bernstein degree; the value at[1] at
    at[0] fixes its height.

    >>> import berlu
    >>> f = berlu.smooth(kinks=[-3, 3], slopes=[0, 1, 0], eps=0.1, degree=4)
    >>> f.value(0.5), f.lipschitz
    (0.5, 1.0)
    """
    point = listed(at)
    if len(point) != 2:
        raise ValueError(f"berlu: at is {at!r}; it must be two numbers, a place and the value there")
    parts = [
        f"kinks={_text(kinks)}",
        f"slopes={_text(slopes)}",
        f"at={point[0]!r}={point[1]!r}",
        f"eps={_text(eps)}",
    ]
    if eps_right is not None:
        parts.append(f"eps_right={_text(eps_right)}")
    parts += [f"degree={number(degree)}", f"form={form}"]
    return act("smooth(" + "; ".join(parts) + ")")


def names() -> Tuple[str, ...]:
    """The names of the built-in activations.

    >>> import berlu
    >>> "mish" in berlu.names()
    True
    """
    found: List[str] = []
    while True:
        name = lib.berlu_act_builtin(len(found))
        if name is None:
            return tuple(found)
        found.append(name.decode())
