/* device.h - the CPU as a device: a table of SIMD kernels and the results of steps.
 * SPDX-License-Identifier: MIT */
#ifndef CPU_DEVICE_H
#define CPU_DEVICE_H

#include "cpu/simd_kernels.h"
#include "engine/backend.h"

enum { CPU_RESULTS = 4 }; /* run() is synchronous, so a caller that polls after each step needs one */

struct device {
    struct device_base base;
    const simd_kernels *simd; /* NULL for the reference backends */
    tensor_dtype dtype;       /* of every role */
    step_result results[CPU_RESULTS];
    int first, count;
};

#endif
