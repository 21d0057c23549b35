/* kernel_memory.h - loads and stores of any dtype: single vectors, parts of them, groups.
 * SPDX-License-Identifier: MIT
 *
 * `dtype` and the number of vectors are constants wherever speed matters, so that each function
 * becomes a few instructions. Groups exist because 16-bit elements are converted more cheaply two
 * vectors at a time, and because all loads of a group before its stores are worth a few percent of
 * memory bandwidth. */
#ifndef ACT_CPU_KERNEL_MEMORY_H
#define ACT_CPU_KERNEL_MEMORY_H

#include <berlu/act.h>

#include "simd/vec.h"

V_FN v_f32 load(const void *p, berlu_dtype dtype, size_t i)
{
    if (dtype == BERLU_F32)
        return v_load((const float *)p + i);
    if (dtype == BERLU_BF16)
        return v_load_bf16((const uint16_t *)p + i);
    return v_load_f16((const uint16_t *)p + i);
}

V_FN v_f32 load_n(const void *p, berlu_dtype dtype, size_t i, size_t n)
{
    if (n >= V_LANES)
        return load(p, dtype, i);
    if (dtype == BERLU_F32)
        return v_load_n((const float *)p + i, n);
    if (dtype == BERLU_BF16)
        return v_load_n_bf16((const uint16_t *)p + i, n);
    return v_load_n_f16((const uint16_t *)p + i, n);
}

V_FN void store(void *p, berlu_dtype dtype, size_t i, v_f32 a)
{
    if (dtype == BERLU_F32)
        v_store((float *)p + i, a);
    else if (dtype == BERLU_BF16)
        v_store_bf16((uint16_t *)p + i, a);
    else
        v_store_f16((uint16_t *)p + i, a);
}

V_FN void store_n(void *p, berlu_dtype dtype, size_t i, v_f32 a, size_t n)
{
    if (n >= V_LANES)
        store(p, dtype, i, a);
    else if (dtype == BERLU_F32)
        v_store_n((float *)p + i, a, n);
    else if (dtype == BERLU_BF16)
        v_store_n_bf16((uint16_t *)p + i, a, n);
    else
        v_store_n_f16((uint16_t *)p + i, a, n);
}

V_FN v_f32 load_f32(const float *p, size_t n)
{
    return n >= V_LANES ? v_load(p) : v_load_n(p, n);
}

V_FN void store_f32(float *p, v_f32 a, size_t n)
{
    if (n >= V_LANES)
        v_store(p, a);
    else
        v_store_n(p, a, n);
}

/* ---- Groups: an even number of consecutive vectors; bf16 in pairs, see v_load2_bf16() -------- */

V_FN void group_load(v_f32 *r, const void *p, berlu_dtype dtype, int vectors)
{
    if (dtype == BERLU_BF16)
        V_FOR(int v = 0; v < vectors; v += 2)
            v_load2_bf16((const uint16_t *)p + v * V_LANES, &r[v], &r[v + 1]);
    else
        V_FOR(int v = 0; v < vectors; v++)
            r[v] = load(p, dtype, (size_t)v * V_LANES);
}

/* bf16 needs no check for NaN: in a loop a NaN comes from 16-bit input, from an operation or from a
 * parameter (consts_at), so its lower half is 0, and rounding to nearest leaves it NaN. ACT_EXACT16
 * spares the rounding too. */
V_FN void group_store(void *p, berlu_dtype dtype, const v_f32 *r, int vectors)
{
    if (dtype == BERLU_BF16)
        V_FOR(int v = 0; v < vectors; v += 2)
            (ACT_EXACT16 ? v_store2_exact_bf16 : v_store2_bf16)((uint16_t *)p + v * V_LANES, r[v], r[v + 1]);
    else
        V_FOR(int v = 0; v < vectors; v++)
            store(p, dtype, (size_t)v * V_LANES, r[v]);
}

/* Non-temporal stores; p is aligned to 64. */
V_FN void group_stream(void *p, berlu_dtype dtype, const v_f32 *r, int vectors)
{
    uint16_t *words = p;
    if (dtype == BERLU_F32)
        V_FOR(int v = 0; v < vectors; v++)
            v_stream((float *)p + v * V_LANES, r[v]);
    else if (dtype == BERLU_F16)
        V_FOR(int v = 0; v < vectors; v++)
            v_stream_f16(words + v * V_LANES, r[v]);
    else
        V_FOR(int v = 0; v < vectors; v += 2)
            (ACT_EXACT16 ? v_stream2_exact_bf16 : v_stream2_bf16)(words + v * V_LANES, r[v], r[v + 1]);
}

/* Prefetches the lines that a later group will read or write, `ahead` bytes on; harmless past the
 * end of an array. */
V_FN void group_prefetch(const void *p, berlu_dtype dtype, int vectors, size_t ahead)
{
    int bytes = vectors * V_LANES * (dtype == BERLU_F32 ? 4 : 2);
    uintptr_t at = (uintptr_t)p + ahead; /* an integer: it may lie past the array */
    V_FOR(int b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)(at + (uintptr_t)b));
}

#endif
