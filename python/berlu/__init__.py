"""berlu - smooth activation functions: exact, deterministic, at the speed of memory.
SPDX-License-Identifier: MIT

    berlu.act, berlu.smooth   an activation as an object, in double
    berlu.numpy               arrays
    berlu.torch               PyTorch: modules, functions, replace_activations
    berlu.timm berlu.hf       the names of berlu inside these libraries
    berlu.onnx berlu.jax      export, and the same functions in jnp

Importing berlu loads the C library and nothing else. docs/python.md is the manual."""

from ._act import Act, Parameter, act, names, smooth
from ._lib import VERSION as __version__, Error, library_path

__all__ = ["Act", "Error", "Parameter", "__version__", "act", "library_path", "names", "smooth"]
