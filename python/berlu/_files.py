"""Files that appear whole or not at all, and a plain exception where one cannot be written.
SPDX-License-Identifier: MIT"""

from __future__ import annotations

import contextlib
import os
import pathlib
import threading
from typing import Iterator, Union


def writable(file: Union[str, "os.PathLike[str]"]) -> pathlib.Path:
    """The path, after a look at what can be known before hours of work: ValueError where it names a
    folder, or where there is none to write into."""
    target = pathlib.Path(file)
    if target.is_dir():
        raise ValueError(f"berlu: {target} cannot be written: it is a folder")
    if not target.parent.is_dir():
        raise ValueError(f"berlu: {target} cannot be written: {target.parent} is no folder")
    if not os.access(target.parent, os.W_OK):
        raise ValueError(f"berlu: {target} cannot be written: {target.parent} may not be written into")
    return target


@contextlib.contextmanager
def written(target: pathlib.Path) -> Iterator[pathlib.Path]:
    """A name of this thread alone to write under, because the ranks of a training may all save one file;
    the file takes its own name, on disk, when the block ends, and is gone when it fails."""
    part = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield part
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        raise ValueError(f"berlu: {target} cannot be written: {error}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
