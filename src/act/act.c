/* act.c - the table of activations, and their properties. SPDX-License-Identifier: MIT
 *
 * The table is made from list.h, which the build reads too; the tables of kernels come from
 * kernel.c, one per activation and instruction set. Making an activation from a text is in spec.c,
 * running it in call.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/act_internal.h"

#if defined(__x86_64__)
#define ACT(name)                                                                                                      \
    extern const act_definition act_##name;                                                                            \
    extern const act_kernels act_kernels_##name##_scalar, act_kernels_##name##_avx2, act_kernels_##name##_avx512;
#include "act/list.h"
#undef ACT
#define ACT(name)                                                                                                      \
    {&act_##name,                                                                                                      \
     {[BERLU_ISA_SCALAR] = &act_kernels_##name##_scalar,                                                               \
      [BERLU_ISA_AVX2] = &act_kernels_##name##_avx2,                                                                   \
      [BERLU_ISA_AVX512] = &act_kernels_##name##_avx512}},
#elif defined(__aarch64__)
#define ACT(name)                                                                                                      \
    extern const act_definition act_##name;                                                                            \
    extern const act_kernels act_kernels_##name##_scalar, act_kernels_##name##_neon;
#include "act/list.h"
#undef ACT
#define ACT(name)                                                                                                      \
    {&act_##name, {[BERLU_ISA_SCALAR] = &act_kernels_##name##_scalar, [BERLU_ISA_NEON] = &act_kernels_##name##_neon}},
#else
#define ACT(name)                                                                                                      \
    extern const act_definition act_##name;                                                                            \
    extern const act_kernels act_kernels_##name##_scalar;
#include "act/list.h"
#undef ACT
#define ACT(name) {&act_##name, {[BERLU_ISA_SCALAR] = &act_kernels_##name##_scalar}},
#endif

static const act_row rows[] = {
#include "act/list.h"
};

double act_lipschitz_one(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return 1;
}

int act_from_output_always(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return 1;
}

const act_row *act_row_at(size_t index)
{
    return index < COUNT(rows) ? &rows[index] : NULL;
}

const act_row *act_row_find(const char *name)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].definition->name, name) == 0)
            return &rows[i];
    return NULL;
}

const char *berlu_act_builtin(size_t index)
{
    const act_row *row = act_row_at(index);
    return row && !row->definition->inner ? row->definition->name : NULL;
}

void berlu_act_free(berlu_act *act)
{
    if (!act)
        return;
    if (act->owned_free)
        act->owned_free(act->owned);
    free(act->consts_space);
    free(act->spec);
    free(act);
}

/* ---- Properties ------------------------------------------------------------------------------ */

size_t berlu_act_param_count(const berlu_act *act)
{
    return act ? act->definition->param_count : 0;
}

size_t berlu_act_setting_count(const berlu_act *act)
{
    return act && act->definition->degree ? 1 : 0;
}

berlu_status berlu_act_param(const berlu_act *act, size_t index, berlu_act_param_info *out)
{
    if (!act || !out)
        return berlu_fail(BERLU_ERR_ARG, "berlu_act_param: the activation or the answer is NULL");
    const act_definition *d = act->definition;
    if (index < d->param_count) {
        const act_param_definition *p = &d->params[index];
        *out = (berlu_act_param_info){.name = p->name,
                                      .value = act->exact[index],
                                      .initial = p->initial,
                                      .low = p->low,
                                      .high = p->high,
                                      .learnable = 1,
                                      .learned = act->learned[index]};
        return BERLU_OK;
    }
    if (index == d->param_count && d->degree) {
        *out = (berlu_act_param_info){.name = "degree",
                                      .value = act->shape.degree,
                                      .initial = d->degree,
                                      .low = BERLU_SMOOTH_MIN_DEGREE,
                                      .high = BERLU_SMOOTH_MAX_DEGREE,
                                      .setting = 1};
        return BERLU_OK;
    }
    return berlu_fail(BERLU_ERR_ARG, "%s has no parameter number %zu", act->name, index);
}

int berlu_act_param_find(const berlu_act *act, const char *name)
{
    for (size_t i = 0; act && name && i < act->definition->param_count; i++)
        if (strcmp(act->definition->params[i].name, name) == 0)
            return (int)i;
    return -1;
}

const char *berlu_act_name(const berlu_act *act)
{
    return act ? act->name : "";
}

const char *berlu_act_spec(const berlu_act *act)
{
    return act ? act->spec : "";
}

const char *berlu_act_about(const berlu_act *act)
{
    return act ? act->definition->about : "";
}

static int has_no_modifiers(const berlu_act *act)
{
    return act->scale == 1.0f && !act->center;
}

/* With the parameters that kernels have: an alpha of 1e-50 is 0 there. */
int berlu_act_has_from_output(const berlu_act *act)
{
    double p[BERLU_ACT_PARAMS];
    if (!act || !act->definition->from_output || !has_no_modifiers(act))
        return 0;
    for (size_t i = 0; i < BERLU_ACT_PARAMS; i++)
        p[i] = (double)act->params[i];
    return act->definition->from_output(p, &act->shape);
}

/* f(k x) / k has the derivatives of f, and centering changes none. */
double berlu_act_lipschitz(const berlu_act *act)
{
    if (!act)
        return NAN;
    return act->definition->lipschitz(act->exact, &act->shape);
}

/* The kernels of higher degrees need more products; the table states the bound of the default
 * degree, 2. */
static double more_for_degree(const berlu_act *act, double ulp)
{
    if (!act->definition->degree || act->shape.degree == act->definition->degree)
        return ulp;
    return fmax(ulp, act->shape.degree <= 6 ? 12 : 20);
}

double berlu_act_ulp(const berlu_act *act)
{
    return act ? more_for_degree(act, act->definition->ulp) : NAN;
}

double berlu_act_slope_ulp(const berlu_act *act)
{
    return act ? more_for_degree(act, act->definition->slope_ulp) : NAN;
}

/* ---- In double ------------------------------------------------------------------------------- */

static berlu_act_point exact_point(const berlu_act *act, double x, const double *p)
{
    berlu_act_point at = {0};
    act->definition->point(&at, x, p, &act->shape);
    return at;
}

berlu_act_point berlu_act_at(const berlu_act *act, double x, const double *params)
{
    if (!act)
        return (berlu_act_point){NAN, NAN, NAN, {NAN, NAN, NAN, NAN}};
    double p[BERLU_ACT_PARAMS];
    for (size_t i = 0; i < BERLU_ACT_PARAMS; i++)
        p[i] = params && i < act->definition->param_count ? params[i] : act->exact[i];
    if (act->exact_scale == 1 && !act->center)
        return exact_point(act, x, p);

    double k = act->exact_scale;
    berlu_act_point zero = {0}, at = exact_point(act, k * x, p);
    if (act->center)
        zero = exact_point(act, 0, p);
    at.value = (at.value - zero.value) / k;
    at.second *= k;
    for (size_t i = 0; i < BERLU_ACT_PARAMS; i++)
        at.param[i] = (at.param[i] - zero.param[i]) / k;
    return at;
}

/* ---- Names of numbers ------------------------------------------------------------------------ */

const char *berlu_dtype_name(berlu_dtype dtype)
{
    static const char *const names[] = {"f32", "bf16", "f16"};
    return (unsigned)dtype < COUNT(names) ? names[dtype] : NULL;
}

size_t berlu_dtype_size(berlu_dtype dtype)
{
    return dtype == BERLU_F32 ? 4 : dtype == BERLU_BF16 || dtype == BERLU_F16 ? 2 : 0;
}
