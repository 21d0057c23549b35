/* inputs.c - see inputs.h. SPDX-License-Identifier: MIT */
#include "act/inputs.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/philox.h"

static const char *const variants[] = {
    "berlu:alpha=0",
    "berlu:alpha=0.02,eps=0.9",  /* slope_end is not eps, and */
    "berlu:alpha=0.1,eps=0.013", /* 2 eps alpha_rate is no half: the long form of d/dalpha */
    "berlu:alpha=1,eps=0.5",
    "berlu:alpha=-1,eps=2",
    "berlu:alpha=2,eps=0.1",
    "berlu:alpha=0.25,eps=1,degree=4",
    "berlu:alpha=0.01,eps=0.1,degree=6",
    "berlu:alpha=0.5,eps=3,degree=16",
    "berlu:degree=16",
    "berlu:alpha=-1,eps=1,degree=10",
    "berlu:degree=8",
    "berlu:alpha=0.1,eps=1,scale=3,center=1",
    "berlu:eps=0x1p-60",
    "berlu:eps=0x1p60",
    "prelu:alpha=-0.5",
    "smelu:beta=0.01",
    "elu:alpha=2",
    "celu:alpha=0.5",
    "celu:alpha=0x1p-100",
    "celu:alpha=0x1p100",
    "gelu:scale=5",
    "silu:center=1,scale=0.5",
    "softplus:scale=2",
    "tanh:scale=0.5",
    "smooth(kinks=0; slopes=0.25,1; eps=0.5)",                       /* one kink, two, more: three ways to find */
    "smooth(kinks=-3,3; slopes=0,0.5,0; eps=1; degree=4; at=0=0.5)", /* the nearest one; their joins and kinks */
    "smooth(kinks=-6,-3,3,6; slopes=0,1,-0.5,2,0.5; eps=2,1,1,2; degree=6)", /* are landmarks below */
    NULL,
};

berlu_act_point inputs_at(const berlu_act *act, double x)
{
    double params[BERLU_ACT_PARAMS] = {0};
    for (size_t i = 0; i < berlu_act_param_count(act); i++) {
        berlu_act_param_info info = {0};
        berlu_act_param(act, i, &info);
        params[i] = (double)(float)info.value;
    }
    return berlu_act_at(act, x, params);
}

int inputs_from_f32_output_only(const char *name)
{
    return strcmp(name, "hard_sigmoid") == 0 || strcmp(name, "sigmoid") == 0 || strcmp(name, "tanh") == 0;
}

int inputs_named(const char *spec, const char *name)
{
    size_t length = strcspn(spec, ":(");
    return strlen(name) == length && strncmp(spec, name, length) == 0;
}

static int is_known(const char *spec) /* smooth(...) always is */
{
    if (strncmp(spec, "smooth(", 7) == 0)
        return 1;
    for (size_t b = 0; berlu_act_builtin(b); b++)
        if (inputs_named(spec, berlu_act_builtin(b)))
            return 1;
    return 0;
}

const char *inputs_spec(size_t index)
{
    size_t builtins = 0;
    while (berlu_act_builtin(builtins))
        builtins++;
    if (index < builtins)
        return berlu_act_builtin(index);
    index -= builtins;
    for (size_t i = 0; variants[i]; i++) /* variants of what this build has */
        if (is_known(variants[i]) && index-- == 0)
            return variants[i];
    return NULL;
}

/* Points of interest: kinks, joins, zeros of derivatives, boundaries between paths of the
 * formulas. */
static float landmark(const berlu_act *act, uint32_t which)
{
    static const float points[] = {1,          3,        6,          4,       0.5f,   0.7517915f, 1.2784645f,
                                   1.1924312f, 11,       13.146f,    14.356f, 17.33f, 87.3365f,   88.7228f,
                                   91.8567f,   103.972f, 108.66f,    0.35f,   8,      2,          3.1f,
                                   9,          9.1853f,  10.102f,    10.235f, 13,     16,         9.4f,
                                   47,         51.986f,  0.7511542f, 64.6f,   43.668f};
    berlu_act_param_info info;
    size_t params = berlu_act_param_count(act);
    if (params && which % 3 == 0 && berlu_act_param(act, params - 1, &info) == BERLU_OK)
        return (float)info.value;
    return points[which / 3 % (sizeof points / sizeof *points)];
}

static float special(uint32_t which)
{
    static const float points[] = {0.0f,    -0.0f,    INFINITY,  -INFINITY,  NAN,       FLT_MIN,   -FLT_MIN,
                                   FLT_MAX, -FLT_MAX, 0x1p-149f, -0x1p-149f, 0x1p-130f, -0x1p-30f, 1e-20f};
    return points[which % (sizeof points / sizeof *points)];
}

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

float inputs_number(const berlu_act *act, uint32_t seed, uint32_t draw)
{
    philox_words r = philox_draw(seed, PURPOSE_TEST, 0, draw, 0);
    float u = philox_f32(r.w[0]) * 2 - 1, near;
    switch (r.w[1] % 8) {
    case 0:
        return special(r.w[2]);
    case 1: /* a few floats around a landmark, either sign */
        near = landmark(act, r.w[2]);
        near = r.w[3] % 2 ? near : -near;
        for (uint32_t step = r.w[3] / 2 % 4; step > 0; step--)
            near = nextafterf(near, r.w[3] & 32 ? INFINITY : -INFINITY);
        return near;
    case 2:
        return u * 1.2f * landmark(act, 0);
    case 3:
        return u * 20;
    case 4:
        return u * 110;
    case 5:
        return from_bits(r.w[2]);
    default:
        return u * 4;
    }
}

static void put(void *out, size_t i, berlu_dtype dtype, float x)
{
    uint16_t half = dtype == BERLU_BF16 ? bf16_from_f32(x) : f16_from_f32(x);
    if (dtype == BERLU_F32)
        memcpy((char *)out + 4 * i, &x, 4);
    else
        memcpy((char *)out + 2 * i, &half, 2);
}

/* Repeats the first `period` elements. Primes, so that every offset sees every element. */
enum { PERIOD = 8191, PERIOD_PLAIN = 65521 };
static void repeat(void *out, size_t n, size_t period, berlu_dtype dtype)
{
    size_t size = berlu_dtype_size(dtype);
    for (size_t i = period, more; i < n; i += more) {
        more = n - i < i ? n - i : i;
        memcpy((char *)out + i * size, out, more * size);
    }
}

/* Loops may take another path where all elements of a group are alike, so half of them come in runs
 * of one kind. */
static float of_stretch(const berlu_act *act, uint32_t kind, uint32_t seed, uint32_t draw)
{
    float u = philox_f32(philox_draw(seed, PURPOSE_TEST, 1, draw, 0).w[0]) * 2 - 1;
    switch (kind % 6) {
    case 0:
        return u * 3.1f;
    case 1:
        return u * 13;
    case 2:
        return u * 2 - 10;
    default:
        return inputs_number(act, seed, draw);
    }
}

void inputs_fill(void *out, size_t n, berlu_dtype dtype, const berlu_act *act, uint32_t seed)
{
    philox_words stretch = {{0}};
    for (size_t i = 0, end = 0; i < n && i < PERIOD; i++) {
        if (i == end) {
            stretch = philox_draw(seed, PURPOSE_TEST, 2, (uint32_t)i, 0);
            end = i + 1 + stretch.w[0] % 300;
        }
        put(out, i, dtype, of_stretch(act, stretch.w[1], seed, (uint32_t)i));
    }
    repeat(out, n, PERIOD, dtype);
}

void inputs_tame(void *out, size_t n, berlu_dtype dtype, const berlu_act *act, uint32_t seed)
{
    for (size_t i = 0; i < n && i < PERIOD; i++) {
        float x = inputs_number(act, seed, (uint32_t)i);
        put(out, i, dtype, fabsf(x) < 64 ? x : 1.5f);
    }
    repeat(out, n, PERIOD, dtype);
}

void inputs_finite(void *out, size_t n, const berlu_act *act, uint32_t seed)
{
    inputs_tame(out, n, BERLU_F32, act, seed);
}

void inputs_plain(void *out, size_t n, berlu_dtype dtype, uint32_t seed)
{
    for (size_t i = 0; i < n && i < PERIOD_PLAIN; i++)
        put(out, i, dtype, philox_f32(philox_draw(seed, PURPOSE_TEST, 1, i, 0).w[0]) * 6 - 3);
    repeat(out, n, PERIOD_PLAIN, dtype);
}
