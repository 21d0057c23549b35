/* backends.c - see backends.h. SPDX-License-Identifier: MIT */
#include "backends.h"

#include <string.h>

#include "cpu/cpu.h"
#ifdef BERLU_HAS_CUDA
#include "cuda/cuda.h"
#endif

berlu_status backend_find(const backend **out, const char *name)
{
    if (strcmp(name, "cpu") == 0)
        *out = cpu_backend();
    else if (strcmp(name, "cuda") != 0)
        return berlu_fail(BERLU_ERR_ARG, "no device '%s'; there are cpu and cuda", name);
    else {
#ifdef BERLU_HAS_CUDA
        *out = cuda_backend();
#else
        return berlu_fail(BERLU_ERR_DEVICE, "device cuda: this build has no CUDA; build it where nvcc is installed");
#endif
    }
    return BERLU_OK;
}
