/* neon_ops.c - runs one kernel for tools/neon_ops.py. SPDX-License-Identifier: MIT
 *
 * neon_ops N forward|backward: N elements uniform in +-3 through the f32 loops. Compiled with
 * -DCOUNT_WORDS it runs the formula itself over scalar words instead, element by element, and
 * prints how many operations it takes: each word counts as the instructions that NEON needs. */
#include <berlu/act.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef COUNT_WORDS
#include "simd/vec.h"

static long operations;
#define WORD(count, call)         (operations += (count), call)
#define v_add(...)                WORD(1, (v_add)(__VA_ARGS__))
#define v_sub(...)                WORD(1, (v_sub)(__VA_ARGS__))
#define v_mul(...)                WORD(1, (v_mul)(__VA_ARGS__))
#define v_div(...)                WORD(1, (v_div)(__VA_ARGS__))
#define v_sqrt(...)               WORD(1, (v_sqrt)(__VA_ARGS__))
#define v_fma(...)                WORD(1, (v_fma)(__VA_ARGS__))
#define v_fnma(...)               WORD(1, (v_fnma)(__VA_ARGS__))
#define v_fms(...)                WORD(2, (v_fms)(__VA_ARGS__)) /* a negation and a product */
#define v_abs(...)                WORD(1, (v_abs)(__VA_ARGS__))
#define v_neg(...)                WORD(1, (v_neg)(__VA_ARGS__))
#define v_copysign(...)           WORD(1, (v_copysign)(__VA_ARGS__))
#define v_iadd(...)               WORD(1, (v_iadd)(__VA_ARGS__))
#define v_isub(...)               WORD(1, (v_isub)(__VA_ARGS__))
#define v_shift_left(...)         WORD(1, (v_shift_left)(__VA_ARGS__))
#define v_shift_right_signed(...) WORD(1, (v_shift_right_signed)(__VA_ARGS__))
#define v_truncate(...)           WORD(1, (v_truncate)(__VA_ARGS__))
#define v_from_int(...)           WORD(1, (v_from_int)(__VA_ARGS__))
#define v_less(...)               WORD(1, (v_less)(__VA_ARGS__))
#define v_less_equal(...)         WORD(1, (v_less_equal)(__VA_ARGS__))
#define v_equal(...)              WORD(1, (v_equal)(__VA_ARGS__))
#define v_is_nan(...)             WORD(2, (v_is_nan)(__VA_ARGS__))
#define v_either_nan(...)         WORD(4, (v_either_nan)(__VA_ARGS__))
#define v_is_negative(...)        WORD(1, (v_is_negative)(__VA_ARGS__))
#define v_and(...)                WORD(1, (v_and)(__VA_ARGS__))
#define v_or(...)                 WORD(1, (v_or)(__VA_ARGS__))
#define v_not(...)                WORD(1, (v_not)(__VA_ARGS__))
#define v_any(...)                WORD(1, (v_any)(__VA_ARGS__))
#define v_all(...)                WORD(1, (v_all)(__VA_ARGS__))
#define v_select(...)             WORD(1, (v_select)(__VA_ARGS__))
#define v_iselect(...)            WORD(1, (v_iselect)(__VA_ARGS__))
#define v_min(...)                WORD(2, (v_min)(__VA_ARGS__)) /* fmin treats NaN and zeros otherwise */
#define v_max(...)                WORD(2, (v_max)(__VA_ARGS__))
#define v_min0(...)               WORD(2, (v_min0)(__VA_ARGS__))
#define v_max0(...)               WORD(2, (v_max0)(__VA_ARGS__))
#define v_min_abs(...)            WORD(3, (v_min_abs)(__VA_ARGS__))
#define v_max_abs(...)            WORD(3, (v_max_abs)(__VA_ARGS__))
#define v_max_bits(...)           WORD(1, (v_max_bits)(__VA_ARGS__))
#define v_lookup8(...)            WORD(1, (v_lookup8)(__VA_ARGS__)) /* the index: 3 for each v_piecewise */
#define v_lookup16(...)           WORD(1, (v_lookup16)(__VA_ARGS__))
#define v_lookup32(...)           WORD(2, (v_lookup32)(__VA_ARGS__))
#include ACT_FORMULA

#include "act/formulas/full.h"
#else
#define ACT_TABLE the_kernels
#include "act/cpu/kernel.c"

size_t berlu_dtype_size(berlu_dtype dtype)
{
    return dtype == BERLU_F32 ? 4 : 2;
}
#endif

static float parameters[BERLU_ACT_PARAMS] = {DEFAULTS};

static __attribute__((noinline)) void fill(float *x, size_t n)
{
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) * 0x1p-23f - 1) * 3;
    }
}

#ifdef COUNT_WORDS
/* What does not change from element to element is not counted: constants are prepared before. */
static void run(const float *x, float *y, size_t n, int backward)
{
    act_shape shape = {.degree = 2};
    act_consts k = act_prepare(parameters, &shape);
    operations = 0;
    for (size_t i = 0; i < n; i++) {
        float d[ACT_PARAMS + 1];
        if (!backward) {
            y[i] = act_value(x[i], &k);
            continue;
        }
        y[i] = ACT_PRODUCT(act_slope(x[i], &k), x[i]);
        if (ACT_PARAMS && LEARNED) {
            act_param_slopes(x[i], &k, d);
            operations++; /* its sum */
        }
    }
    printf("%.2f\n", (double)operations / (double)n);
}
#else
static void run(const float *x, float *y, size_t n, int backward)
{
    static _Alignas(64) unsigned char space[ACT_CONSTS_BYTES];
    static double sums[64];
    act_shape shape = {.degree = 2};
    act_job job = {.op = backward ? BERLU_ACT_BACKWARD : BERLU_ACT_FORWARD, .plain = 1, .scale = 1, .threads = 1};
    job.rows = job.count = n;
    job.channels = 1;
    job.shape = &shape;
    job.x = job.dy = x;
    job.y = backward ? NULL : y;
    job.dx = y;
    job.consts = space;
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        job.param[p] = &parameters[p];
    if (backward && LEARNED)
        job.layer_sum[0] = sums;
    the_kernels.prepare(&job);
    the_kernels.units(&job, 0, n / ACT_UNIT + (n % ACT_UNIT != 0));
}
#endif

int main(int count, char **args)
{
    static _Alignas(64) float x[1 << 16], y[1 << 16];
    size_t n = count > 2 ? strtoul(args[1], NULL, 10) : 0;
    if (n == 0 || n > sizeof x / sizeof *x)
        return 2;
    fill(x, n);
    run(x, y, n, strcmp(args[2], "backward") == 0);
    return 0;
}
