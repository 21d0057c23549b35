/* cpu.c - the backends of the CPU: memory, and the two tables of kernels. SPDX-License-Identifier: MIT
 *
 * The f64 table is the plain kernels in double and nothing else. The f32 table is the plain kernels with everything that
 * matters replaced by a vectorised one. Read on: linear.c and attention.c, which are most of a step. */
#include "cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

extern const op_entry plain_f64_ops[OP_COUNT];
extern const op_entry plain_f32_ops[OP_COUNT];

static void *host_memory(size_t bytes, const char *what)
{
    void *memory = memory_aligned(bytes, what);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

static void host_release(void *memory)
{
    free(memory);
}

/* ---- f32 ---- */

static size_t f32_bytes(tensor_role role)
{
    (void)role;
    return sizeof(float);
}

static void f32_put(void *to, const float *from, size_t count)
{
    memcpy(to, from, count * sizeof(float));
}

static void f32_get(float *to, const void *from, size_t count)
{
    memcpy(to, from, count * sizeof(float));
}

static void f32_put_f64(void *to, const double *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((float *)to)[i] = (float)from[i];
}

static void f32_get_f64(double *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = ((const float *)from)[i];
}

/* ---- f64 ---- */

static size_t f64_bytes(tensor_role role)
{
    (void)role;
    return sizeof(double);
}

static void f64_put(void *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((double *)to)[i] = from[i];
}

static void f64_get(float *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)((const double *)from)[i];
}

static void f64_put_f64(void *to, const double *from, size_t count)
{
    memcpy(to, from, count * sizeof(double));
}

static void f64_get_f64(double *to, const void *from, size_t count)
{
    memcpy(to, from, count * sizeof(double));
}

const backend *cpu_f64_backend(void)
{
    static const backend machine = {"cpu-f64",    plain_f64_ops, f64_bytes, 0,           host_memory,
                                    host_release, f64_put,       f64_get,   f64_put_f64, f64_get_f64};
    return &machine;
}

const backend *cpu_plain_backend(void)
{
    static const backend machine = {"cpu-plain",  plain_f32_ops, f32_bytes, 1,           host_memory,
                                    host_release, f32_put,       f32_get,   f32_put_f64, f32_get_f64};
    return &machine;
}

const backend *cpu_backend(void)
{
    return cpu_plain_backend();
}

const char *cpu_blas_name(void)
{
    return "none";
}
