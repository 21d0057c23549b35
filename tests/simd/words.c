/* words.c - the vocabulary as tables, compiled once per target with WORDS naming the table.
 * SPDX-License-Identifier: MIT */
#include "simd/words.h"

#include <string.h>

#include "simd/vec.h"
#include "simd/vmath.h"

V_FN void map1(void *out, const float *a, v_f32 (*f)(v_f32))
{
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, f(v_load(a + i)));
}
V_FN void map2(void *out, const float *a, const float *b, v_f32 (*f)(v_f32, v_f32))
{
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, f(v_load(a + i), v_load(b + i)));
}
V_FN void map3(void *out, const float *a, const float *b, const float *c, v_f32 (*f)(v_f32, v_f32, v_f32))
{
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, f(v_load(a + i), v_load(b + i), v_load(c + i)));
}
V_FN void map_mask(void *out, const float *a, const float *b, v_mask (*f)(v_f32, v_f32))
{
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, v_select(f(v_load(a + i), v_load(b + i)), v_one(), v_zero()));
}
V_FN void map_int(void *out, const float *a, const float *b, v_i32 (*f)(v_i32, v_i32))
{
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, v_float(f(v_bits(v_load(a + i)), v_bits(v_load(b + i)))));
}

V_FN v_f32 without_nan(v_f32 x)
{
    return v_select(v_is_nan(x), v_one(), x);
}

/* ARGS: the parameters of the table's functions; each body is one call. */
#define ARGS   void *out, const float *a, const float *b, const float *c, size_t n
#define UNUSED (void)a, (void)b, (void)c, (void)n

static void w_add(ARGS)
{
    UNUSED, map2(out, a, b, v_add);
}
static void w_sub(ARGS)
{
    UNUSED, map2(out, a, b, v_sub);
}
static void w_mul(ARGS)
{
    UNUSED, map2(out, a, b, v_mul);
}
static void w_div(ARGS)
{
    UNUSED, map2(out, a, b, v_div);
}
static void w_sqrt(ARGS)
{
    UNUSED, map1(out, a, v_sqrt);
}
static void w_fma(ARGS)
{
    UNUSED, map3(out, a, b, c, v_fma);
}
static void w_fms(ARGS)
{
    UNUSED, map3(out, a, b, c, v_fms);
}
static void w_fnma(ARGS)
{
    UNUSED, map3(out, a, b, c, v_fnma);
}
static void w_abs(ARGS)
{
    UNUSED, map1(out, a, v_abs);
}
static void w_neg(ARGS)
{
    UNUSED, map1(out, a, v_neg);
}
static void w_copysign(ARGS)
{
    UNUSED, map2(out, a, b, v_copysign);
}
static void w_min(ARGS)
{
    UNUSED, map2(out, a, b, v_min);
}
static void w_max(ARGS)
{
    UNUSED, map2(out, a, b, v_max);
}
static void w_min_abs(ARGS) /* positive limits; NaN may give either */
{
    UNUSED;
    for (int i = 0; i < WORDS_LANES; i += V_LANES) {
        v_f32 limit = v_abs(v_load(b + i));
        limit = v_select(v_less(v_zero(), limit), limit, v_one());
        v_store((float *)out + i, v_min_abs(without_nan(v_load(a + i)), limit));
    }
}
static void w_max_abs(ARGS) /* beside a NaN: 1 where it is NaN or the magnitude of the other */
{
    UNUSED;
    for (int i = 0; i < WORDS_LANES; i += V_LANES) {
        v_f32 x = v_load(a + i), y = v_load(b + i), most = v_max_abs(x, y);
        v_f32 other = v_select(v_is_nan(x), v_abs(y), v_abs(x));
        v_mask right = v_or(v_is_nan(most), v_equal(most, other));
        v_f32 told = v_select(right, v_one(), v_zero());
        v_store((float *)out + i, v_select(v_either_nan(x, y), told, most));
    }
}
static void w_max_bits(ARGS)
{
    UNUSED, map2(out, a, b, v_max_bits);
}
static void w_either_nan(ARGS)
{
    UNUSED, map_mask(out, a, b, v_either_nan);
}
static void w_min0(ARGS)
{
    UNUSED, map1(out, a, v_min0);
}
static void w_max0(ARGS)
{
    UNUSED, map1(out, a, v_max0);
}
static void w_less(ARGS)
{
    UNUSED, map_mask(out, a, b, v_less);
}
static void w_less_equal(ARGS)
{
    UNUSED, map_mask(out, a, b, v_less_equal);
}
static void w_equal(ARGS)
{
    UNUSED, map_mask(out, a, b, v_equal);
}
static void w_iadd(ARGS)
{
    UNUSED, map_int(out, a, b, v_iadd);
}
static void w_isub(ARGS)
{
    UNUSED, map_int(out, a, b, v_isub);
}

V_FN v_mask is_nan(v_f32 a, v_f32 b)
{
    return (void)b, v_is_nan(a);
}
V_FN v_mask is_negative(v_f32 a, v_f32 b)
{
    return (void)b, v_is_negative(a);
}
V_FN v_mask both(v_f32 a, v_f32 b)
{
    return v_and(v_less(a, b), v_is_negative(a));
}
V_FN v_mask either(v_f32 a, v_f32 b)
{
    return v_or(v_less(a, b), v_is_negative(a));
}
V_FN v_mask neither(v_f32 a, v_f32 b)
{
    return v_not(v_or(v_less(a, b), v_is_nan(a)));
}
static void w_is_nan(ARGS)
{
    UNUSED, map_mask(out, a, b, is_nan);
}
static void w_is_negative(ARGS)
{
    UNUSED, map_mask(out, a, b, is_negative);
}
static void w_and(ARGS)
{
    UNUSED, map_mask(out, a, b, both);
}
static void w_or(ARGS)
{
    UNUSED, map_mask(out, a, b, either);
}
static void w_not(ARGS)
{
    UNUSED, map_mask(out, a, b, neither);
}

V_FN v_f32 choose(v_f32 a, v_f32 b, v_f32 c)
{
    return v_select(v_less(a, b), c, a);
}
static void w_select(ARGS)
{
    UNUSED, map3(out, a, b, c, choose);
}

V_FN v_i32 choose_integers(v_i32 a, v_i32 b)
{
    return v_iselect(v_less(v_float(a), v_float(b)), b, v_iadd(a, b));
}
static void w_iselect(ARGS)
{
    UNUSED, map_int(out, a, b, choose_integers);
}

V_FN v_i32 left5(v_i32 a, v_i32 b)
{
    return (void)b, v_shift_left(a, 5);
}
V_FN v_i32 left23(v_i32 a, v_i32 b)
{
    return (void)b, v_shift_left(a, 23);
}
V_FN v_i32 signed9(v_i32 a, v_i32 b)
{
    return (void)b, v_shift_right_signed(a, 9);
}
V_FN v_i32 constant(v_i32 a, v_i32 b)
{
    return (void)b, v_iadd(a, v_iset(-12345));
}
static void w_shift_left(ARGS)
{
    UNUSED, map_int(out, a, b, left5);
}
static void w_shift_left_23(ARGS)
{
    UNUSED, map_int(out, a, b, left23);
}
static void w_shift_right_signed(ARGS)
{
    UNUSED, map_int(out, a, b, signed9);
}
static void w_iset(ARGS)
{
    UNUSED, map_int(out, a, b, constant);
}

V_FN v_f32 truncated(v_f32 a)
{
    return v_float(v_truncate(a));
}
V_FN v_f32 from_int(v_f32 a)
{
    return v_from_int(v_bits(a));
}
static void w_truncate(ARGS)
{
    UNUSED, map1(out, a, truncated);
}
static void w_from_int(ARGS)
{
    UNUSED, map1(out, a, from_int);
}

static void w_lookup16(ARGS) /* the table is b, the index a's bits */
{
    UNUSED;
    _Alignas(64) float table[WORDS_LANES];
    for (int i = 0; i < WORDS_LANES; i++)
        table[i] = b[i];
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, v_lookup16(table, v_bits(v_load(a + i))));
}

static void w_lookup8(ARGS) /* likewise, with the fourth bit of each index cleared */
{
    UNUSED;
    _Alignas(64) float table[WORDS_LANES];
    for (int i = 0; i < WORDS_LANES; i++)
        table[i] = b[i];
    for (int i = 0; i < WORDS_LANES; i += V_LANES) {
        float low[V_LANES];
        for (int v = 0; v < V_LANES; v++) {
            uint32_t bits;
            memcpy(&bits, a + i + v, sizeof bits);
            bits &= ~(uint32_t)8;
            memcpy(low + v, &bits, sizeof bits);
        }
        v_store((float *)out + i, v_lookup8(table, v_bits(v_load(low))));
    }
}

static void w_lookup32(ARGS) /* likewise, b and then c */
{
    UNUSED;
    _Alignas(64) float table[32];
    for (int i = 0; i < 32; i++)
        table[i] = i < 16 ? b[i] : c[i - 16];
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, v_lookup32(table, v_bits(v_load(a + i))));
}

/* Four vectors at once, the first two of them and once more in reverse order: out has either
 * pair. */
static void lookups(uint32_t *out, const float *a, const float *table, int last, int all)
{
    v_f32 x[2 * WORDS_LANES / V_LANES], r[2 * WORDS_LANES / V_LANES];
    v_i32 j[2 * WORDS_LANES / V_LANES];
    enum { VECTORS = WORDS_LANES / V_LANES, BOTH = 2 * VECTORS };
    for (int v = 0; v < VECTORS; v++) {
        x[v] = x[BOTH - 1 - v] = v_zero();
        j[v] = j[BOTH - 1 - v] = v_bits(v_load(a + v * V_LANES));
    }
    v_piecewises(r, table, 32, 0, j, x, BOTH, all); /* of degree 0: the second row */
    for (int v = 0; v < VECTORS; v++)
        v_store((float *)out + v * V_LANES, r[last ? BOTH - 1 - v : v]);
}

static void lookups_of(uint32_t *out, const float *a, const float *b, const float *c, int all)
{
    _Alignas(64) float table[64];
    for (int i = 0; i < 32; i++) {
        table[i] = 0;
        table[32 + i] = i < 16 ? b[i] : c[i - 16];
    }
    uint32_t first[WORDS_LANES];
    lookups(first, a, table, 0, all);
    lookups(out, a, table, 1, all);
    for (int i = 0; i < WORDS_LANES; i++)
        if (first[i] != out[i])
            out[i] = first[i] ^ 1;
}

static void w_lookups16(ARGS)
{
    UNUSED, lookups_of(out, a, b, c, 0);
}

static void w_lookups32(ARGS)
{
    UNUSED, lookups_of(out, a, b, c, 1);
}

/* Whether any and all lanes are true, per group of sixteen whatever the width. */
static void w_any_all(ARGS)
{
    UNUSED;
    int any = 0, all = 1;
    for (int i = 0; i < WORDS_LANES; i += V_LANES) {
        v_mask m = v_less(v_load(a + i), v_load(b + i));
        any |= v_any(m);
        all &= v_all(m);
    }
    ((int32_t *)out)[0] = any != 0;
    ((int32_t *)out)[1] = all != 0;
}

/* The first n of 16 elements, as a kernel does its tail. */
V_FN size_t part(size_t n, size_t i)
{
    return n < i ? 0 : n - i < V_LANES ? n - i : V_LANES;
}
static void w_load_store_n(ARGS)
{
    UNUSED;
    for (size_t i = 0; i < WORDS_LANES; i += V_LANES)
        v_store_n((float *)out + i, v_add(v_load_n(a + i, part(n, i)), v_one()), part(n, i));
}
static void w_load_n_zeros(ARGS)
{
    UNUSED;
    for (size_t i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, v_load_n(a + i, part(n, i)));
}
static void w_stream(ARGS)
{
    UNUSED;
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_stream((float *)out + i, v_load(a + i));
    v_stream_end();
}

static void w_store_bf16(ARGS)
{
    UNUSED;
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store_bf16((uint16_t *)out + i, v_load(a + i));
}
static void w_stream_bf16(ARGS)
{
    UNUSED;
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_stream_bf16((uint16_t *)out + i, v_load(a + i));
    v_stream_end();
}
/* Two vectors at a time, over the thirty-two elements of a and b; not for NaN. */
V_FN void twos_bf16(void *out, const float *a, const float *b, void (*put)(uint16_t *, v_f32, v_f32))
{
    float both[2 * WORDS_LANES];
    memcpy(both, a, WORDS_LANES * sizeof *a);
    memcpy(both + WORDS_LANES, b, WORDS_LANES * sizeof *b);
    for (int i = 0; i < 2 * WORDS_LANES; i += 2 * V_LANES) {
        v_f32 first = without_nan(v_load(both + i)), second = without_nan(v_load(both + i + V_LANES));
        v_deal2(&first, &second);
        put((uint16_t *)out + i, first, second);
    }
    v_stream_end();
}
static void w_store2_bf16(ARGS)
{
    UNUSED, twos_bf16(out, a, b, v_store2_bf16);
}
static void w_stream2_bf16(ARGS)
{
    UNUSED, twos_bf16(out, a, b, v_stream2_bf16);
}
/* The same for numbers whose lower half is 0. */
V_FN void exact_twos_bf16(void *out, const float *a, const float *b, void (*put)(uint16_t *, v_f32, v_f32))
{
    float upper[2][WORDS_LANES];
    for (int i = 0; i < WORDS_LANES; i++) {
        uint32_t bits[2];
        memcpy(&bits[0], &a[i], sizeof *bits);
        memcpy(&bits[1], &b[i], sizeof *bits);
        bits[0] &= 0xffff0000u, bits[1] &= 0xffff0000u;
        memcpy(&upper[0][i], &bits[0], sizeof *bits);
        memcpy(&upper[1][i], &bits[1], sizeof *bits);
    }
    twos_bf16(out, upper[0], upper[1], put);
}
static void w_store2_exact_bf16(ARGS)
{
    UNUSED, exact_twos_bf16(out, a, b, v_store2_exact_bf16);
}
static void w_stream2_exact_bf16(ARGS)
{
    UNUSED, exact_twos_bf16(out, a, b, v_stream2_exact_bf16);
}
static void w_load2_bf16(ARGS) /* and back, one by one */
{
    UNUSED;
    for (int i = 0; i < 2 * WORDS_LANES; i += 2 * V_LANES) {
        v_f32 first, second;
        v_load2_bf16((const uint16_t *)(const void *)a + i, &first, &second);
        v_order2(&first, &second);
        v_store_bf16((uint16_t *)out + i, without_nan(first));
        v_store_bf16((uint16_t *)out + i + V_LANES, without_nan(second));
    }
}
static void w_store_n_bf16(ARGS)
{
    UNUSED;
    for (size_t i = 0; i < WORDS_LANES; i += V_LANES)
        v_store_n_bf16((uint16_t *)out + i, v_load(a + i), part(n, i));
}
static void w_load_bf16(ARGS)
{
    UNUSED;
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, v_load_bf16((const uint16_t *)(const void *)a + i));
}
static void w_load_n_bf16(ARGS)
{
    UNUSED;
    for (size_t i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, v_load_n_bf16((const uint16_t *)(const void *)a + i, part(n, i)));
}
static void w_store_f16(ARGS)
{
    UNUSED;
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store_f16((uint16_t *)out + i, v_load(a + i));
}
static void w_stream_f16(ARGS)
{
    UNUSED;
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_stream_f16((uint16_t *)out + i, v_load(a + i));
    v_stream_end();
}
static void w_store_n_f16(ARGS)
{
    UNUSED;
    for (size_t i = 0; i < WORDS_LANES; i += V_LANES)
        v_store_n_f16((uint16_t *)out + i, v_load(a + i), part(n, i));
}
static void w_load_f16(ARGS)
{
    UNUSED;
    for (int i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, v_load_f16((const uint16_t *)(const void *)a + i));
}
static void w_load_n_f16(ARGS)
{
    UNUSED;
    for (size_t i = 0; i < WORDS_LANES; i += V_LANES)
        v_store((float *)out + i, v_load_n_f16((const uint16_t *)(const void *)a + i, part(n, i)));
}

const word WORDS[] = {
    {"add", WORD_FLOAT, w_add, 0},
    {"sub", WORD_FLOAT, w_sub, 0},
    {"mul", WORD_FLOAT, w_mul, 0},
    {"div", WORD_FLOAT, w_div, 0},
    {"sqrt", WORD_FLOAT, w_sqrt, 0},
    {"fma", WORD_FLOAT, w_fma, 0},
    {"fms", WORD_FLOAT, w_fms, 0},
    {"fnma", WORD_FLOAT, w_fnma, 0},
    {"abs", WORD_BITS, w_abs, 0},
    {"neg", WORD_BITS, w_neg, 0},
    {"copysign", WORD_BITS, w_copysign, 0},
    {"min", WORD_FLOAT, w_min, 0},
    {"max", WORD_FLOAT, w_max, 0},
    {"min_abs", WORD_FLOAT, w_min_abs, 0},
    {"max_abs", WORD_FLOAT, w_max_abs, 0},
    {"max_bits", WORD_BITS, w_max_bits, 0},
    {"either_nan", WORD_BITS, w_either_nan, 0},
    {"min0", WORD_FLOAT, w_min0, 0},
    {"max0", WORD_FLOAT, w_max0, 0},
    {"less", WORD_BITS, w_less, 0},
    {"less_equal", WORD_BITS, w_less_equal, 0},
    {"equal", WORD_BITS, w_equal, 0},
    {"is_nan", WORD_BITS, w_is_nan, 0},
    {"is_negative", WORD_BITS, w_is_negative, 0},
    {"and", WORD_BITS, w_and, 0},
    {"or", WORD_BITS, w_or, 0},
    {"not", WORD_BITS, w_not, 0},
    {"select", WORD_BITS, w_select, 0},
    {"iselect", WORD_BITS, w_iselect, 0},
    {"any_all", WORD_BITS, w_any_all, 0},
    {"iadd", WORD_BITS, w_iadd, 0},
    {"isub", WORD_BITS, w_isub, 0},
    {"iset", WORD_BITS, w_iset, 0},
    {"shift_left", WORD_BITS, w_shift_left, 0},
    {"shift_left_23", WORD_BITS, w_shift_left_23, 0},
    {"shift_right_signed", WORD_BITS, w_shift_right_signed, 0},
    {"truncate", WORD_BITS, w_truncate, 1},
    {"from_int", WORD_FLOAT, w_from_int, 0},
    {"lookup16", WORD_BITS, w_lookup16, 0},
    {"lookup8", WORD_BITS, w_lookup8, 0},
    {"lookup32", WORD_BITS, w_lookup32, 0},
    {"lookups16", WORD_BITS, w_lookups16, 0},
    {"lookups32", WORD_BITS, w_lookups32, 0},
    {"load_store_n", WORD_FLOAT, w_load_store_n, 0},
    {"load_n", WORD_BITS, w_load_n_zeros, 0},
    {"stream", WORD_BITS, w_stream, 0},
    {"store_bf16", WORD_BF16, w_store_bf16, 0},
    {"stream_bf16", WORD_BF16, w_stream_bf16, 0},
    {"store_n_bf16", WORD_BF16, w_store_n_bf16, 0},
    {"store2_bf16", WORD_BITS, w_store2_bf16, 0},
    {"stream2_bf16", WORD_BITS, w_stream2_bf16, 0},
    {"store2_exact_bf16", WORD_BITS, w_store2_exact_bf16, 0},
    {"stream2_exact_bf16", WORD_BITS, w_stream2_exact_bf16, 0},
    {"load2_bf16", WORD_BITS, w_load2_bf16, 0},
    {"load_bf16", WORD_FLOAT, w_load_bf16, 0},
    {"load_n_bf16", WORD_FLOAT, w_load_n_bf16, 0},
    {"store_f16", WORD_F16, w_store_f16, 0},
    {"stream_f16", WORD_F16, w_stream_f16, 0},
    {"store_n_f16", WORD_F16, w_store_n_f16, 0},
    {"load_f16", WORD_FLOAT, w_load_f16, 0},
    {"load_n_f16", WORD_FLOAT, w_load_n_f16, 0},
    {NULL, WORD_BITS, NULL, 0},
};
