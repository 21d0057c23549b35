/* dtype.c - sizes, names and conversions of element types. SPDX-License-Identifier: MIT
 *
 * Tables indexed by the dtype, and loops that convert to and from f64 and f32. An element is
 * rounded once, to nearest even; bf16 has its arithmetic in base/half.h. */
#include "graph/dtype.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"

size_t dtype_bytes(tensor_dtype dtype)
{
    static const size_t bytes[DTYPE_COUNT] = {
        [DTYPE_F32] = 4, [DTYPE_F64] = 8, [DTYPE_BF16] = 2, [DTYPE_I32] = 4, [DTYPE_U8] = 1};
    assert(dtype < DTYPE_COUNT);
    return bytes[dtype];
}

const char *dtype_name(tensor_dtype dtype)
{
    static const char *const names[DTYPE_COUNT] = {
        [DTYPE_F32] = "f32", [DTYPE_F64] = "f64", [DTYPE_BF16] = "bf16", [DTYPE_I32] = "i32", [DTYPE_U8] = "u8"};
    assert(dtype < DTYPE_COUNT);
    return names[dtype];
}

void dtype_to_f64(double *to, const void *from, tensor_dtype dtype, size_t count)
{
    assert(dtype <= DTYPE_BF16);
    for (size_t i = 0; i < count; i++)
        to[i] = dtype == DTYPE_F64   ? ((const double *)from)[i]
                : dtype == DTYPE_F32 ? ((const float *)from)[i]
                                     : bf16_to_f32(((const uint16_t *)from)[i]);
}

/* To bf16 by way of f32: parameters that have a bf16 copy are f32 themselves, so nothing is rounded
 * twice. */
void dtype_from_f64(void *to, tensor_dtype dtype, const double *from, size_t count)
{
    assert(dtype <= DTYPE_BF16);
    for (size_t i = 0; i < count; i++)
        if (dtype == DTYPE_F64)
            ((double *)to)[i] = from[i];
        else if (dtype == DTYPE_F32)
            ((float *)to)[i] = (float)from[i];
        else
            ((uint16_t *)to)[i] = bf16_from_f32((float)from[i]);
}

void dtype_to_f32(float *to, const void *from, tensor_dtype dtype, size_t count)
{
    assert(dtype <= DTYPE_BF16);
    if (dtype == DTYPE_F32) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++)
        to[i] = dtype == DTYPE_F64 ? (float)((const double *)from)[i] : bf16_to_f32(((const uint16_t *)from)[i]);
}

void dtype_from_f32(void *to, tensor_dtype dtype, const float *from, size_t count)
{
    assert(dtype <= DTYPE_BF16);
    if (dtype == DTYPE_F32) {
        memcpy(to, from, count * sizeof *from);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (dtype == DTYPE_F64)
            ((double *)to)[i] = from[i];
        else
            ((uint16_t *)to)[i] = bf16_from_f32(from[i]);
}
