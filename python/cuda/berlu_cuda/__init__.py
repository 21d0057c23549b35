"""The path of berlu's CUDA library; `berlu` looks here when this package is installed.
SPDX-License-Identifier: MIT

Nothing is loaded on import: berlu.torch opens the library, and bt.cuda() says why where that
fails."""

import pathlib

library_path = str(pathlib.Path(__file__).resolve().parent / "libberlu_cuda.so")
