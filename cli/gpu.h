/* gpu.h - NVIDIA GPUs visible to the driver. SPDX-License-Identifier: MIT */
#ifndef CLI_GPU_H
#define CLI_GPU_H

#include <stddef.h>

typedef struct gpu {
    char name[128];
    int major, minor;     /* compute capability */
    unsigned long memory; /* bytes */
} gpu;

/* Fills up to `capacity` entries and returns the number of GPUs; 0 without a driver, and *why names
 * what is missing. */
int gpu_list(gpu *out, int capacity, const char **why);

/* The first that the engine's kernels run on; 0 where there is none. */
int gpu_usable(gpu *out);

#endif
