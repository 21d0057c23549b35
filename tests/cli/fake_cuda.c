/* fake_cuda.c - a libcuda.so.1 with one GPU whose compute capability FAKE_CUDA gives, for
 * test_gpu_note.c. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDeviceGetName(char *name, int capacity, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}

int cuDeviceGetName(char *name, int capacity, int device)
{
    (void)device;
    snprintf(name, (size_t)capacity, "Paper GPU");
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)24 << 30;
    return 0;
}

/* The two halves of the capability: attributes 75 and 76. */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *text = getenv("FAKE_CUDA");
    (void)device;
    *value = !text ? 0 : attribute == 75 ? text[0] - '0' : text[2] - '0';
    return 0;
}
