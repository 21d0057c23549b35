/* prototypes.cpp - every function that the bridge declares has that type in torch's own headers.
 * SPDX-License-Identifier: MIT
 *
 * Compiled, never run, by test_prototypes.py with the headers of the torch that is installed. */
#define USE_CUDA 1
#include <torch/csrc/stable/c/shim.h>

#include <type_traits>

#define SHIM(result, name, arguments)                                                                                  \
    static_assert(std::is_same<decltype(&::name), result(*) arguments>::value, #name " has another type in this torch");
#define SHIM_CUDA SHIM
#include "shim.inc"
