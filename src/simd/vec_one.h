/* vec_one.h - the words of vec.h that are the same for every target of one lane: plain C and CUDA.
 * SPDX-License-Identifier: MIT
 *
 * Included by vec_scalar.h and vec_cuda.h, which define V_FN, the types, arithmetic, conversions
 * and the access to memory. */
#ifndef SIMD_VEC_ONE_H
#define SIMD_VEC_ONE_H

/* Memory */
V_FN v_f32 v_load(const float *p)
{
    return *p;
}
V_FN void v_store(float *p, v_f32 a)
{
    *p = a;
}
V_FN void v_stream_end(void)
{
}
V_FN v_f32 v_load_n(const float *p, size_t n)
{
    return n ? *p : 0.0f;
}
V_FN void v_store_n(float *p, v_f32 a, size_t n)
{
    if (n)
        *p = a;
}
V_FN v_f32 v_load_n_bf16(const uint16_t *p, size_t n)
{
    return n ? v_load_bf16(p) : 0.0f;
}
V_FN void v_store_n_bf16(uint16_t *p, v_f32 a, size_t n)
{
    if (n)
        v_store_bf16(p, a);
}
V_FN v_f32 v_load_n_f16(const uint16_t *p, size_t n)
{
    return n ? v_load_f16(p) : 0.0f;
}
V_FN void v_store_n_f16(uint16_t *p, v_f32 a, size_t n)
{
    if (n)
        v_store_f16(p, a);
}
V_FN v_f32 v_lookup16(const float *table, v_i32 j)
{
    return table[j & 15];
}
V_FN v_f32 v_lookup8(const float *table, v_i32 j)
{
    return table[j & 7];
}
V_FN v_f32 v_lookup32(const float *table, v_i32 j)
{
    return table[j & 31];
}

/* Constants */
V_FN v_f32 v_set(float c)
{
    return c;
}
V_FN v_f32 v_zero(void)
{
    return 0.0f;
}
V_FN v_f32 v_one(void)
{
    return 1.0f;
}
V_FN v_i32 v_iset(int32_t i)
{
    return i;
}

/* Signs, integers */
V_FN v_f32 v_abs(v_f32 a)
{
    return v_float(v_bits(a) & 0x7fffffff);
}
V_FN v_f32 v_neg(v_f32 a)
{
    return v_float(v_bits(a) ^ INT32_MIN);
}
V_FN v_f32 v_copysign(v_f32 magnitude, v_f32 sign)
{
    return v_float((v_bits(magnitude) & 0x7fffffff) | (v_bits(sign) & INT32_MIN));
}
V_FN v_i32 v_iadd(v_i32 a, v_i32 b)
{
    return (v_i32)((uint32_t)a + (uint32_t)b);
}
V_FN v_i32 v_isub(v_i32 a, v_i32 b)
{
    return (v_i32)((uint32_t)a - (uint32_t)b);
}
V_FN v_i32 v_shift_left(v_i32 a, int count)
{
    return (v_i32)((uint32_t)a << count);
}
V_FN v_i32 v_shift_right_signed(v_i32 a, int count)
{
    return a >> count;
}

/* Choice */
V_FN v_mask v_less(v_f32 a, v_f32 b)
{
    return a < b;
}
V_FN v_mask v_less_equal(v_f32 a, v_f32 b)
{
    return a <= b;
}
V_FN v_mask v_equal(v_f32 a, v_f32 b)
{
    return a == b;
}
V_FN v_mask v_is_nan(v_f32 a)
{
    return a != a;
}
V_FN v_mask v_either_nan(v_f32 a, v_f32 b)
{
    return a != a || b != b;
}
V_FN v_mask v_is_negative(v_f32 a)
{
    return v_bits(a) < 0;
}
V_FN v_mask v_and(v_mask a, v_mask b)
{
    return a && b;
}
V_FN v_mask v_or(v_mask a, v_mask b)
{
    return a || b;
}
V_FN v_mask v_not(v_mask a)
{
    return !a;
}
V_FN v_f32 v_select(v_mask m, v_f32 yes, v_f32 no)
{
    return m ? yes : no;
}
V_FN v_i32 v_iselect(v_mask m, v_i32 yes, v_i32 no)
{
    return m ? yes : no;
}
V_FN v_f32 v_min(v_f32 x, v_f32 limit)
{
    return limit < x ? limit : x;
}
V_FN v_f32 v_max(v_f32 x, v_f32 limit)
{
    return x < limit ? limit : x;
}
V_FN v_f32 v_min_abs(v_f32 x, v_f32 limit)
{
    return v_abs(x) < limit ? v_abs(x) : limit;
}
V_FN v_f32 v_max_abs(v_f32 x, v_f32 y)
{
    return v_abs(x) < v_abs(y) ? v_abs(y) : v_abs(x);
}
V_FN v_f32 v_max_bits(v_f32 a, v_f32 b)
{
    return (uint32_t)v_bits(a) < (uint32_t)v_bits(b) ? b : a;
}
V_FN v_f32 v_min0(v_f32 x)
{
    return v_min(x, 0.0f);
}
V_FN v_f32 v_max0(v_f32 x)
{
    return v_max(x, 0.0f);
}

#endif
