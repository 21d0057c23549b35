/* cuda.h - the backend of NVIDIA GPUs. SPDX-License-Identifier: MIT
 *
 * cuda_backend() opens one GPU (device_options.index): f32, TF32 or bf16 products by cuBLASLt,
 * everything else by kernels of this folder. A run twice on the same GPU, library and algorithms
 * gives the same bytes: no kernel uses a float atomic, and every sum has a fixed order. Read on:
 * device.h, run.c, gemm.c. */
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

#include "base/text.h"
#include "engine/backend.h"

const backend *cuda_backend(void);

/* The product algorithms this device has used so far, in the format of an algorithms file
 * (algorithms.h): for run.json. A later run that is given this text as its file takes the same
 * ones. */
berlu_status cuda_algorithms_text(const device *d, text *out);

#endif
