/* safetensors_values.c - dtypes of tensors and reading of their values.
 * SPDX-License-Identifier: MIT
 *
 * A tensor may begin at any byte of its file, so values are copied out and never read in place.
 * Conversions use a buffer on the stack; F32 as f32 and I64 as i64 are read straight into their
 * destination. */
#include <stdio.h>
#include <string.h>

#include "base/file_in.h"
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

enum { PIECE = 4096 }; /* values converted at a time */

/* Raw values first to first + count of a tensor. */
static berlu_status values_fetch(const st_tensor *t, size_t first, size_t count, void *out)
{
    size_t size = dtypes[t->dtype].size;
    if (!t->data && t->file)
        return file_in_read(t->file, t->offset + (uint64_t)first * size, out, count * size);
    if (count)
        memcpy(out, (const unsigned char *)t->data + first * size, count * size);
    return BERLU_OK;
}

static double value_at(const unsigned char *piece, st_dtype dtype, size_t i)
{
    union {
        double f64;
        float f32;
        uint16_t half;
    } v;
    memcpy(&v, piece + i * dtypes[dtype].size, dtypes[dtype].size);
    switch (dtype) {
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
    unsigned char piece[PIECE * 8];
    TRY(floating_check(t));
    if (t->dtype == ST_F32)
        return values_fetch(t, 0, t->count, out);
    for (size_t first = 0; first < t->count; first += PIECE) {
        size_t count = t->count - first < PIECE ? t->count - first : PIECE;
        TRY(values_fetch(t, first, count, piece));
        for (size_t i = 0; i < count; i++)
            out[first + i] = (float)value_at(piece, t->dtype, i);
    }
    return BERLU_OK;
}

berlu_status st_read_f64(const st_tensor *t, double *out)
{
    unsigned char piece[PIECE * 8];
    TRY(floating_check(t));
    for (size_t first = 0; first < t->count; first += PIECE) {
        size_t count = t->count - first < PIECE ? t->count - first : PIECE;
        TRY(values_fetch(t, first, count, piece));
        for (size_t i = 0; i < count; i++)
            out[first + i] = value_at(piece, t->dtype, i);
    }
    return BERLU_OK;
}

berlu_status st_read_i64(const st_tensor *t, int64_t *out)
{
    unsigned char piece[PIECE * 4];
    if (t->dtype == ST_I64)
        return values_fetch(t, 0, t->count, out);
    if (t->dtype != ST_I32 && t->dtype != ST_U8)
        return berlu_fail(BERLU_ERR_INPUT, "tensor '%s': its dtype is %s, a whole-number type (I64, I32, U8) is needed",
                          t->name, dtypes[t->dtype].name);
    for (size_t first = 0; first < t->count; first += PIECE) {
        size_t count = t->count - first < PIECE ? t->count - first : PIECE;
        TRY(values_fetch(t, first, count, piece));
        for (size_t i = 0; i < count; i++) {
            int32_t narrow;
            memcpy(&narrow, piece + (t->dtype == ST_I32 ? 4 * i : 0), sizeof narrow);
            out[first + i] = t->dtype == ST_I32 ? narrow : piece[i];
        }
    }
    return BERLU_OK;
}
