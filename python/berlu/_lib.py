"""The C library through ctypes: its path, structs and functions.
SPDX-License-Identifier: MIT

Nothing here depends on numpy or torch. Structs mirror include/berlu/act.h member by member;
tests/python/test_structs.py compiles a C program that compares every offset. ctypes releases the
GIL during a call. Read library_path() first, then check().
"""

from __future__ import annotations

import ctypes as C
import os
import pathlib
from typing import Any, Iterator, List, Tuple

VERSION = "0.1.0"  # of the header that the structs below mirror

F32, BF16, F16 = 0, 1, 2
FORWARD, BACKWARD, BACKWARD_FROM_OUTPUT, SLOPE, SECOND, PARAM_SLOPE = range(6)
PARAMS = 4

ERR_ARG, ERR_MEMORY = 1, 3


class Error(RuntimeError):
    """The library could not do what was asked: an op that an activation lacks, a device, a build
    that does not fit.

    >>> import berlu
    >>> issubclass(berlu.Error, RuntimeError)
    True
    """


class ParamArg(C.Structure):
    _fields_ = [("value", C.c_void_p), ("stride", C.c_size_t), ("grad", C.c_void_p)]


class Call(C.Structure):
    _fields_ = [
        ("dtype", C.c_int),
        ("hint", C.c_int),
        ("rows", C.c_size_t),
        ("channels", C.c_size_t),
        ("x", C.c_void_p),
        ("y", C.c_void_p),
        ("dy", C.c_void_p),
        ("dx", C.c_void_p),
        ("bias", C.c_void_p),
        ("dbias", C.c_void_p),
        ("param", ParamArg * PARAMS),
        ("param_index", C.c_int),
        ("workspace", C.c_void_p),
        ("workspace_bytes", C.c_size_t),
        ("inner", C.c_size_t),
    ]


class Exec(C.Structure):
    _fields_ = [("isa", C.c_int), ("threads", C.c_int)]


class Point(C.Structure):
    _fields_ = [("value", C.c_double), ("slope", C.c_double), ("second", C.c_double), ("param", C.c_double * PARAMS)]


class ParamInfo(C.Structure):
    _fields_ = [
        ("name", C.c_char_p),
        ("value", C.c_double),
        ("initial", C.c_double),
        ("low", C.c_double),
        ("high", C.c_double),
        ("setting", C.c_int),
        ("learnable", C.c_int),
        ("learned", C.c_int),
    ]


# The C name of every struct above, for the test that compares them with the header.
STRUCTS = {
    "berlu_act_param_arg": ParamArg,
    "berlu_act_call": Call,
    "berlu_exec": Exec,
    "berlu_act_point": Point,
    "berlu_act_param_info": ParamInfo,
}

_act, _size, _call = C.c_void_p, C.c_size_t, C.POINTER(Call)
_FUNCTIONS: List[Tuple[str, Any, Tuple[Any, ...]]] = [
    ("berlu_last_error", C.c_char_p, ()),
    ("berlu_version", C.c_char_p, ()),
    ("berlu_act_make", C.c_int, (C.POINTER(_act), C.c_char_p)),
    ("berlu_act_free", None, (_act,)),
    ("berlu_act_run", C.c_int, (_act, C.c_int, _call, C.POINTER(Exec))),
    ("berlu_act_at", Point, (_act, C.c_double, C.POINTER(C.c_double))),
    ("berlu_act_eval_f64", C.c_int, (_act, C.c_int, C.c_int, C.c_void_p, C.c_void_p, _size, C.c_int)),
    ("berlu_act_param_count", _size, (_act,)),
    ("berlu_act_setting_count", _size, (_act,)),
    ("berlu_act_param", C.c_int, (_act, _size, C.POINTER(ParamInfo))),
    ("berlu_act_name", C.c_char_p, (_act,)),
    ("berlu_act_spec", C.c_char_p, (_act,)),
    ("berlu_act_about", C.c_char_p, (_act,)),
    ("berlu_act_has_from_output", C.c_int, (_act,)),
    ("berlu_act_lipschitz", C.c_double, (_act,)),
    ("berlu_act_ulp", C.c_double, (_act,)),
    ("berlu_act_slope_ulp", C.c_double, (_act,)),
    ("berlu_act_builtin", C.c_char_p, (_size,)),
]


def _candidates() -> Iterator[str]:
    """BERLU_LIBRARY alone where it is set; else the wheel's copy, a checkout's build, and what the
    system's loader finds."""
    named = os.environ.get("BERLU_LIBRARY")
    if named:
        yield named
        return
    here = pathlib.Path(__file__).resolve().parent
    for path in (here / "lib" / "libberlu.so.0", here.parent.parent / "build" / "libberlu.so.0"):
        if path.exists():
            yield str(path)
    yield "libberlu.so.0"


def _open(path: str) -> C.CDLL:
    """Opens a library. Where the machine has no OpenMP runtime, the wheel's copy is loaded first;
    never otherwise, because a second runtime beside torch's would ignore torch.set_num_threads()
    and cost a tenth of a training step."""
    try:
        return C.CDLL(path)
    except OSError as error:
        copy = pathlib.Path(__file__).resolve().parent / "lib" / "fallback" / "libgomp.so.1"
        if "libgomp" not in str(error) or not copy.exists():
            raise
        C.CDLL(str(copy), mode=C.RTLD_GLOBAL)
        return C.CDLL(path)


def _load() -> Tuple[C.CDLL, str]:
    faults = []
    for path in _candidates():
        try:
            return _open(path), path
        except OSError as error:
            faults.append(str(error))
    raise ImportError(
        "berlu: libberlu could not be opened (" + "; ".join(faults) + "). Install the package with `pip install .`, "
        "or run `make` in a checkout, or name the library in BERLU_LIBRARY"
    )


def _bind(library: C.CDLL, path: str) -> None:
    try:
        for name, result, arguments in _FUNCTIONS:
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise ImportError(f"berlu: {path} is not the library of version {VERSION}: {error}") from None
    found = library.berlu_version().decode()
    if found != VERSION:
        raise ImportError(f"berlu: {path} is version {found}, and this package is {VERSION}; both must be the same")


lib, library_path = _load()
_bind(lib, library_path)


def last_error() -> str:
    """The library's message about the last call of this thread that failed."""
    return str(lib.berlu_last_error().decode())


def check(status: int) -> None:
    """Turns a status into an exception that carries the library's own message."""
    if status == 0:
        return
    message = last_error()
    if status == ERR_ARG:
        raise ValueError(message)
    if status == ERR_MEMORY:
        raise MemoryError(message)
    raise Error(message)
