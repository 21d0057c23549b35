"""Activations over numpy arrays: f32, f16, bf16 (ml_dtypes) and f64, any strides.
SPDX-License-Identifier: MIT

f32 and the 16-bit types go through the vector kernels, f64 through the reference in double. An
array that is dense in any order of its axes is computed as it lies in memory; others are copied
once. The GIL is free while the library computes. Besides forward() and its derivatives every
activation is a function of its own name: `berlu.numpy.gelu(x)`."""

from __future__ import annotations

import ctypes as C
from typing import Any, Callable, List, Optional, Union

import numpy as np

from . import _lib
from ._act import Act, act as _make, names, number as _number
from ._lib import check, lib

__all__ = ["backward", "forward", "param_slope", "second", "slope"]

Array = Any  # numpy's own types differ too much between the versions we support
_CODES = {"float32": _lib.F32, "bfloat16": _lib.BF16, "float16": _lib.F16}


def _no_mask(x: Any, what: str) -> None:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"berlu: {what} is a masked array, and its mask would be lost; give {what}.data or {what}.filled()")


def _input(x: Any, what: str) -> Array:
    """x as an array of a known dtype in native byte order."""
    _no_mask(x, what)
    a = np.asarray(x)
    if a.dtype.name not in _CODES and a.dtype.name != "float64":
        raise TypeError(f"berlu: {what} has dtype {a.dtype}; it must be float32, float16, bfloat16 or float64")
    return a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))


def _laid_as(a: Array, like: Array) -> Array:
    """a in the memory layout of `like`: itself where it fits, else a copy."""
    if a.strides == like.strides and a.flags.aligned:
        return a
    copy = np.empty_like(like, dtype=a.dtype)
    copy[...] = a
    return copy


def _output(x: Array, out: Optional[Array], inputs: List[Array]) -> Array:
    """The array that the library writes: `out` where its layout allows, else a new
    one."""
    fresh = np.empty_like(x, subok=False)
    if out is None:
        return fresh
    if not isinstance(out, np.ndarray):
        raise TypeError(f"berlu: out must be a numpy array, not {type(out).__name__}")
    _no_mask(out, "out")
    if out.dtype.name != x.dtype.name:  # in either byte order
        raise TypeError(f"berlu: out has dtype {out.dtype}, and x {x.dtype}")
    if out.shape != x.shape:
        raise ValueError(f"berlu: out has shape {out.shape}, and x {x.shape}")
    if not out.flags.writeable:
        raise ValueError("berlu: out cannot be written")
    same_place = [a for a in inputs if np.may_share_memory(a, out)]
    safe = all(a.ctypes.data == out.ctypes.data and a.strides == out.strides for a in same_place)
    direct = safe and out.strides == fresh.strides and out.flags.aligned and out.dtype.isnative
    return out if direct else fresh


def _finish(result: Array, out: Optional[Array]) -> Any:
    if out is None:
        return result if result.ndim else result[()]
    if out is not result:
        out[...] = result
    return out


def _threads(threads: int) -> int:
    if not isinstance(threads, (int, np.integer)):
        raise TypeError(f"berlu: threads is {threads!r}; it must be a whole number")
    if not 0 <= threads < 2**31:
        raise ValueError(f"berlu: threads is {threads}; it must be 0 (all cores) or more")
    return int(threads)


def _run(f: Act, op: int, call: _lib.Call, threads: int) -> None:
    check(lib.berlu_act_run(f._handle, op, C.byref(call), C.byref(_lib.Exec(0, threads))))


def _map(act: Union[str, Act], op: int, x: Any, out: Optional[Array], threads: int, index: int = 0) -> Any:
    f, a, threads = _make(act), _input(x, "x"), _threads(threads)
    result = _output(a, out, [a])
    a = _laid_as(a, result)
    if a.dtype == np.float64:
        check(lib.berlu_act_eval_f64(f._handle, op, index, result.ctypes.data, a.ctypes.data, a.size, threads))
    else:
        call = _lib.Call(
            dtype=_CODES[a.dtype.name],
            rows=a.size,
            channels=1,
            x=a.ctypes.data,
            y=result.ctypes.data,
            param_index=index,
        )
        _run(f, op, call, threads)
    return _finish(result, out)


def forward(act: Union[str, Act], x: Any, *, out: Optional[Array] = None, threads: int = 0) -> Any:
    """f(x), element by element.

    >>> import numpy, berlu.numpy
    >>> berlu.numpy.forward("relu6", numpy.array([-1.0, 2.0, 9.0]))
    array([0., 2., 6.])
    """
    return _map(act, _lib.FORWARD, x, out, threads)


def slope(act: Union[str, Act], x: Any, *, out: Optional[Array] = None, threads: int = 0) -> Any:
    """f'(x), element by element.

    >>> import numpy, berlu.numpy
    >>> berlu.numpy.slope("leaky_relu:alpha=0.5", numpy.array([-1.0, 2.0]))
    array([0.5, 1. ])
    """
    return _map(act, _lib.SLOPE, x, out, threads)


def second(act: Union[str, Act], x: Any, *, out: Optional[Array] = None, threads: int = 0) -> Any:
    """f''(x), element by element.

    >>> import numpy, berlu.numpy
    >>> berlu.numpy.second("smelu:beta=1", numpy.array([0.0, 2.0]))
    array([0.5, 0. ])
    """
    return _map(act, _lib.SECOND, x, out, threads)


def param_slope(act: Union[str, Act], x: Any, name: str, *, out: Optional[Array] = None, threads: int = 0) -> Any:
    """df/d(name) at x, element by element.

    >>> import numpy, berlu.numpy
    >>> berlu.numpy.param_slope("prelu", numpy.array([-3.0, 2.0]), "alpha")
    array([-3.,  0.])
    """
    f = _make(act)
    return _map(f, _lib.PARAM_SLOPE, x, out, threads, f.param_index(name))


def backward(act: Union[str, Act], dy: Any, x: Any, *, out: Optional[Array] = None, threads: int = 0) -> Any:
    """dy f'(x), element by element; dy has the shape and dtype of x.

    >>> import numpy, berlu.numpy
    >>> berlu.numpy.backward("relu", numpy.array([3.0, 4.0]), numpy.array([-1.0, 2.0]))
    array([0., 4.])
    """
    f, a, g, threads = _make(act), _input(x, "x"), _input(dy, "dy"), _threads(threads)
    if g.dtype != a.dtype:
        raise TypeError(f"berlu: dy has dtype {g.dtype}, and x {a.dtype}")
    if g.shape != a.shape:
        raise ValueError(f"berlu: dy has shape {g.shape}, and x {a.shape}")
    result = _output(a, out, [a, g])
    if a.dtype == np.float64:
        result[...] = g * slope(f, a, threads=threads)
        return _finish(result, out)
    a, g = _laid_as(a, result), _laid_as(g, result)
    call = _lib.Call(
        dtype=_CODES[a.dtype.name], rows=a.size, channels=1, x=a.ctypes.data, dy=g.ctypes.data, dx=result.ctypes.data
    )
    _run(f, _lib.BACKWARD, call, threads)
    return _finish(result, out)


def _function(name: str) -> Callable[..., Any]:
    plain = _make(name)

    def function(x: Any, *, out: Optional[Array] = None, threads: int = 0, **parameters: float) -> Any:
        keys = ",".join(f"{key}={_number(value)}" for key, value in parameters.items())
        return forward(_make(f"{name}:{keys}") if keys else plain, x, out=out, threads=threads)

    function.__name__ = function.__qualname__ = name
    defaults = ", ".join(f"{key}={p.default:g}" for key, p in plain.parameters.items())
    function.__doc__ = f"""{plain.about}. {"Parameters and defaults: " + defaults + "." if defaults else ""}

    >>> import berlu, berlu.numpy
    >>> bool(berlu.numpy.{name}(1.5) == berlu.act("{name}").value(1.5))
    True
    """
    return function


def __getattr__(name: str) -> Callable[..., Any]:
    """Creates the function of an activation on first use."""
    if name.startswith("_") or name not in names():
        raise AttributeError(f"module 'berlu.numpy' has no attribute '{name}'")
    function = globals()[name] = _function(name)
    return function


def __dir__() -> List[str]:
    return sorted(set(__all__) | set(names()))
