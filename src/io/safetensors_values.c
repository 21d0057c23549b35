/* safetensors_values.c - the types of tensors and their values as numbers. SPDX-License-Identifier: MIT
 *
 * A tensor may begin at any byte of its file, so values are copied out one by one and never read in place. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/half.h"
#include "io/safetensors.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [ST_I64] = {"I64", 8},   [ST_F64] = {"F64", 8}, [ST_F32] = {"F32", 4}, [ST_I32] = {"I32", 4},
    [ST_BF16] = {"BF16", 2}, [ST_F16] = {"F16", 2}, [ST_U8] = {"U8", 1},
};
_Static_assert(COUNT(dtypes) == ST_DTYPE_COUNT, "a dtype without its row");

const char *st_dtype_name(st_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t st_dtype_size(st_dtype dtype)
{
    return dtypes[dtype].size;
}

const char *st_shape_text(char out[ST_SHAPE_TEXT], const uint64_t *shape, int rank)
{
    size_t used = (size_t)snprintf(out, ST_SHAPE_TEXT, "[");
    for (int i = 0; i < rank; i++)
        used +=
            (size_t)snprintf(out + used, ST_SHAPE_TEXT - used, "%s%llu", i ? ", " : "", (unsigned long long)shape[i]);
    snprintf(out + used, ST_SHAPE_TEXT - used, "]");
    return out;
}

static double value_at(const st_tensor *t, size_t i)
{
    const unsigned char *at = (const unsigned char *)t->data + i * dtypes[t->dtype].size;
    union {
        double f64;
        float f32;
        uint16_t half;
    } v;
    memcpy(&v, at, dtypes[t->dtype].size);
    switch (t->dtype) {
    case ST_F64:
        return v.f64;
    case ST_F32:
        return (double)v.f32;
    case ST_BF16:
        return (double)bf16_to_f32(v.half);
    default:
        return (double)f16_to_f32(v.half);
    }
}

static berlu_status floating_check(const st_tensor *t)
{
    if (t->dtype == ST_F32 || t->dtype == ST_F64 || t->dtype == ST_BF16 || t->dtype == ST_F16)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_INPUT, "tensor '%s': its dtype is %s, a floating type is needed", t->name,
                      dtypes[t->dtype].name);
}

berlu_status st_read_f32(const st_tensor *t, float *out)
{
    berlu_status status = floating_check(t);
    if (status != BERLU_OK)
        return status;
    if (t->dtype == ST_F32 && t->bytes)
        memcpy(out, t->data, t->bytes);
    else
        for (size_t i = 0; i < t->count; i++)
            out[i] = (float)value_at(t, i);
    return BERLU_OK;
}

berlu_status st_read_f64(const st_tensor *t, double *out)
{
    berlu_status status = floating_check(t);
    for (size_t i = 0; status == BERLU_OK && i < t->count; i++)
        out[i] = value_at(t, i);
    return status;
}

berlu_status st_read_i64(const st_tensor *t, int64_t *out)
{
    if (t->dtype != ST_I64 && t->dtype != ST_I32 && t->dtype != ST_U8)
        return berlu_fail(BERLU_ERR_INPUT, "tensor '%s': its dtype is %s, a whole-number type (I64, I32, U8) is needed",
                          t->name, dtypes[t->dtype].name);
    for (size_t i = 0; i < t->count; i++) {
        const unsigned char *at = (const unsigned char *)t->data + i * dtypes[t->dtype].size;
        int32_t narrow;
        if (t->dtype == ST_I64)
            memcpy(&out[i], at, 8);
        else if (t->dtype == ST_I32)
            memcpy(&narrow, at, 4), out[i] = narrow;
        else
            out[i] = *at;
    }
    return BERLU_OK;
}
