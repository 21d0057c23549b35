/* gpu.h - which NVIDIA GPUs the driver shows. SPDX-License-Identifier: MIT */
#ifndef CLI_GPU_H
#define CLI_GPU_H

#include <stddef.h>

typedef struct gpu {
    char name[128];
    int major, minor;     /* compute capability */
    unsigned long memory; /* bytes */
} gpu;

/* Fills up to `capacity` entries and returns how many GPUs there are. 0 without a driver; *why then says what was missing. */
int gpu_list(gpu *out, int capacity, const char **why);

#endif
