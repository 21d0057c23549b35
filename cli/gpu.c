/* gpu.c - queries the CUDA driver through dlopen, so that one build works with a GPU, without one,
 * and without CUDA. SPDX-License-Identifier: MIT */
#include "gpu.h"

#include <dlfcn.h>

#include "base/status.h"

enum { MAJOR = 75, MINOR = 76 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* of cuda.h */

typedef struct driver {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*name)(char *name, int capacity, int device);
    int (*memory)(size_t *bytes, int device);
    int (*attribute)(int *value, int attribute, int device);
} driver;

/* POSIX guarantees that a function pointer fits into the result of dlsym(); ISO C does not, hence
 * the memcpy. */
static int find(void *library, void *function, const char *name)
{
    *(void **)function = dlsym(library, name);
    return *(void **)function != 0;
}

static int driver_load(driver *d, void *library)
{
    return find(library, &d->init, "cuInit") && find(library, &d->count, "cuDeviceGetCount") &&
           find(library, &d->name, "cuDeviceGetName") && find(library, &d->memory, "cuDeviceTotalMem_v2") &&
           find(library, &d->attribute, "cuDeviceGetAttribute");
}

static void gpu_describe(const driver *d, gpu *out, int device)
{
    size_t bytes = 0;
    *out = (gpu){.name = "unknown"};
    (void)d->name(out->name, sizeof out->name, device); /* a failed query leaves its default */
    (void)d->memory(&bytes, device);
    (void)d->attribute(&out->major, MAJOR, device);
    (void)d->attribute(&out->minor, MINOR, device);
    out->memory = bytes;
}

int gpu_list(gpu *out, int capacity, const char **why)
{
    driver d = {0};
    int count = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    *why = "";
    if (!library) {
        *why = "no NVIDIA driver";
        return 0;
    }
    if (!driver_load(&d, library))
        *why = "the NVIDIA driver is too old";
    else if (d.init(0) != 0 || d.count(&count) != 0 || count == 0)
        *why = "the NVIDIA driver shows no GPU";
    else
        for (int i = 0; i < count && i < capacity; i++)
            gpu_describe(&d, &out[i], i);
    dlclose(library);
    return count;
}

int gpu_usable(gpu *out)
{
    gpu found[16];
    const char *why;
    int count = gpu_list(found, COUNT(found), &why);
    for (int i = 0; i < count && i < (int)COUNT(found); i++)
        if (found[i].major >= 8) {
            *out = found[i];
            return 1;
        }
    return 0;
}
