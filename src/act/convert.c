/* convert.c - the public conversions between storage types. SPDX-License-Identifier: MIT
 *
 * One number at a time over base/half.h, the one definition of these formats; kernels convert on
 * the fly and are the fast path. */
#include <string.h>

#include <berlu/act.h>

#include "base/half.h"
#include "base/status.h"

uint16_t berlu_to_bf16(float value)
{
    return bf16_from_f32(value);
}

float berlu_from_bf16(uint16_t bits)
{
    return bf16_to_f32(bits);
}

uint16_t berlu_to_f16(float value)
{
    return f16_from_f32(value);
}

float berlu_from_f16(uint16_t bits)
{
    return f16_to_f32(bits);
}

static float load(berlu_dtype dtype, const void *in, size_t i)
{
    if (dtype == BERLU_F32)
        return ((const float *)in)[i];
    uint16_t bits = ((const uint16_t *)in)[i];
    return dtype == BERLU_BF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
}

static void store(berlu_dtype dtype, void *out, size_t i, float value)
{
    if (dtype == BERLU_F32)
        ((float *)out)[i] = value;
    else
        ((uint16_t *)out)[i] = dtype == BERLU_BF16 ? bf16_from_f32(value) : f16_from_f32(value);
}

berlu_status berlu_convert(berlu_dtype to, void *out, berlu_dtype from, const void *in, size_t count)
{
    if (!berlu_dtype_size(to) || !berlu_dtype_size(from))
        return berlu_fail(BERLU_ERR_ARG, "berlu_convert: there is no dtype number %d",
                          (int)(berlu_dtype_size(to) ? from : to));
    if (count && (!out || !in))
        return berlu_fail(BERLU_ERR_ARG, "berlu_convert: %s is NULL", out ? "in" : "out");
    if (to == from && count) /* every bit, NaN payloads too */
        memmove(out, in, count * berlu_dtype_size(to));
    for (size_t i = 0; to != from && i < count; i++)
        store(to, out, i, load(from, in, i));
    return BERLU_OK;
}
