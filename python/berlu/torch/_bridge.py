"""Opens libberlu_torch and registers the operators, or records why that failed.
SPDX-License-Identifier: MIT

The bridge needs no particular torch, only that the loaded one exports the stable C shim. Where it
does not, or where the operators fail a comparison with the pure form, `available` is False, one
warning says why, and the pure form does the work.
"""

from __future__ import annotations

import ctypes as C
import importlib
import importlib.metadata
import importlib.util
import os
import pathlib
import warnings
from typing import Iterator, Optional

import torch

from .. import _lib

tested = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")  # the versions of torch that the tests ran with


def _bridge_paths() -> Iterator[pathlib.Path]:
    named = os.environ.get("BERLU_TORCH_LIBRARY")
    if named:
        yield pathlib.Path(named)
        return
    here = pathlib.Path(__file__).resolve().parent.parent
    yield here / "lib" / "libberlu_torch.so"
    yield pathlib.Path(_lib.library_path).resolve().parent / "libberlu_torch.so"
    yield here.parent.parent / "build" / "libberlu_torch.so"


def _torch_library(name: str) -> bytes:
    return str(pathlib.Path(torch.__file__).resolve().parent / "lib" / name).encode()


def _open() -> C.CDLL:
    for path in _bridge_paths():
        if path.exists():
            library = C.CDLL(str(path))
            library.berlu_torch_register.restype = C.c_char_p
            library.berlu_torch_register.argtypes = (C.c_char_p,)
            library.berlu_torch_register_cuda.restype = C.c_char_p
            library.berlu_torch_register_cuda.argtypes = (C.c_char_p, C.c_char_p)
            return library
    raise OSError("libberlu_torch.so was not found beside libberlu")


def _register() -> Optional[str]:
    """None, or why the operators are not there."""
    try:
        fault = _open().berlu_torch_register(_torch_library("libtorch_cpu.so"))
    except OSError as error:
        return str(error)
    return fault.decode() if fault else None


fault = _register()
available = fault is None
cuda_available = False


def give_up(why: str) -> None:
    """Turns the operators off for this process."""
    global available, fault
    available, fault = False, why
    warnings.warn(
        f"berlu: the native operators are off, torch operations compute instead: {why}", RuntimeWarning, stacklevel=3
    )


def _cuda_path() -> pathlib.Path:
    """The CUDA library: BERLU_CUDA_LIBRARY, that of the package berlu-cuda, or the one beside
    libberlu. OSError explains why there is none."""
    named = os.environ.get("BERLU_CUDA_LIBRARY")
    if named:
        return pathlib.Path(named)
    beside = pathlib.Path(_lib.library_path).resolve().parent / "libberlu_cuda.so"
    if importlib.util.find_spec("berlu_cuda") is None:
        if beside.exists():
            return beside
        raise OSError(
            "libberlu_cuda.so was not found: `pip install ./python/cuda` in a clone builds it; "
            "BERLU_CUDA_LIBRARY names another"
        )
    try:
        package = importlib.import_module("berlu_cuda")
        version = importlib.metadata.version("berlu-cuda")
        path = pathlib.Path(package.library_path)
    except Exception as error:  # a broken package must not disable the CPU
        raise OSError(f"the package berlu_cuda cannot be used: {error}") from None
    if version != _lib.VERSION:
        raise OSError(f"berlu-cuda is version {version}, and berlu is {_lib.VERSION}; both must be the same")
    return path


def register_cuda() -> Optional[str]:
    """Registers the operators for CUDA where there is a libberlu_cuda; returns why not. The CPU
    works in any case."""
    global cuda_available
    if cuda_available:
        return None
    if not available:
        return fault
    try:
        path = _cuda_path()
    except OSError as error:
        return str(error)
    why = _open().berlu_torch_register_cuda(_torch_library("libtorch_cuda.so"), str(path).encode())
    if why:
        return str(why.decode())
    cuda_available = True
    return None
