/* onnx_act.c - every activation in standard operators of ONNX. SPDX-License-Identifier: MIT
 *
 * The same functions as act/formulas, written so that nothing cancels or overflows: smoothed ones
 * as line plus bump (docs/math.md), exponentials through Elu and Softplus, which runtimes compute
 * with expm1 and log1p. tests/python compares each with the library through onnxruntime. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <berlu/smooth.h>

#include "models/onnx.h"
#include "smooth/bump.h"

static const char *one(onnx_body *b, const char *op, const char *x)
{
    return onnx_op(b, op, ONNX_IN(x), NULL);
}

static const char *two(onnx_body *b, const char *op, const char *x, const char *y)
{
    return onnx_op(b, op, ONNX_IN(x, y), NULL);
}

static const char *number(onnx_body *b, const char *op, const char *x, double value)
{
    return two(b, op, x, onnx_scalar(b, value));
}

static const char *clip(onnx_body *b, const char *x, double low, double high)
{
    return onnx_op(b, "Clip", ONNX_IN(x, onnx_scalar(b, low), onnx_scalar(b, high)), NULL);
}

/* ---- smoothed kinks -------------------------------------------------------------------------- */

/* r^(m+1) Q(1 - 2r) with r = max(eps - |x|, 0) / (2 eps): the bump of one kink over its jump and
 * eps. */
static const char *bump_at(onnx_body *b, const char *x, const char *eps, int m)
{
    bump k;
    bump_make(&k, m);
    const char *depth = number(b, "Max", two(b, "Sub", eps, one(b, "Abs", x)), 0);
    const char *r = two(b, "Div", depth, number(b, "Mul", eps, 2));
    const char *v = two(b, "Sub", onnx_scalar(b, 1), number(b, "Mul", r, 2));
    const char *sum = onnx_scalar(b, k.q[m - 1]);
    for (int i = m - 2; i >= 0; i--)
        sum = number(b, "Add", two(b, "Mul", sum, v), k.q[i]);
    for (int i = 0; i <= m; i++)
        sum = two(b, "Mul", sum, r);
    return sum;
}

const char *onnx_berlu(onnx_body *b, const char *x, const char *alpha, const char *eps, int m)
{
    const char *left = number(b, "Less", x, 0);
    const char *line = onnx_op(b, "Where", ONNX_IN(left, two(b, "Mul", alpha, x), x), NULL);
    const char *jump = two(b, "Mul", two(b, "Sub", onnx_scalar(b, 1), alpha), eps);
    return two(b, "Add", line, two(b, "Mul", jump, bump_at(b, x, eps, m)));
}

int onnx_half_degree(const berlu_act *act)
{
    berlu_act_param_info info;
    size_t first = berlu_act_param_count(act); /* settings follow the parameters */
    for (size_t i = 0; i < berlu_act_setting_count(act); i++)
        if (berlu_act_param(act, first + i, &info) == BERLU_OK && strcmp(info.name, "degree") == 0)
            return (int)info.value / 2;
    return 1;
}

/* The first line and, for every kink, its ramp and its bump. */
static const char *smooth_sum(onnx_body *b, const berlu_smooth *f, const char *x)
{
    berlu_transition t;
    const char *sum = NULL;
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++) {
        if (berlu_smooth_transition(f, i, &t) != BERLU_OK || t.eps_left != t.eps_right)
            return NULL;
        const char *from = number(b, "Sub", x, t.x), *eps = onnx_scalar(b, t.eps_left);
        if (i == 0)
            sum = number(b, "Add", number(b, "Mul", from, t.left), t.y);
        const char *ramp = number(b, "Max", from, 0);
        const char *knee = two(b, "Mul", eps, bump_at(b, from, eps, t.degree / 2));
        sum = two(b, "Add", sum, number(b, "Mul", two(b, "Add", ramp, knee), t.right - t.left));
    }
    return sum;
}

static const char *smooth_form(onnx_body *b, const berlu_act *act, const char *x)
{
    const char *spec = berlu_act_spec(act), *end = strchr(spec, ')'), *y = NULL;
    char *words = end ? strndup(spec, (size_t)(end - spec) + 1) : NULL;
    berlu_smooth *f = NULL;
    if (words && berlu_smooth_parse(&f, words) == BERLU_OK)
        y = smooth_sum(b, f, x);
    berlu_smooth_free(f);
    free(words);
    return y;
}

/* ---- the others; p are the parameters -------------------------------------------------------- */

typedef const char *(*form)(onnx_body *b, const berlu_act *act, const char *x, const char *const *p);
#define FORM(name)                                                                                                     \
    static const char *name##_form(onnx_body *b, const berlu_act *act, const char *x, const char *const *p)
#define UNUSED (void)act, (void)p

FORM(identity)
{
    UNUSED;
    return one(b, "Identity", x);
}

FORM(relu)
{
    UNUSED;
    return one(b, "Relu", x);
}

FORM(relu2)
{
    UNUSED;
    const char *y = one(b, "Relu", x);
    return two(b, "Mul", y, y);
}

FORM(leaky)
{
    UNUSED;
    return onnx_op(b, "Where", ONNX_IN(number(b, "Greater", x, 0), x, two(b, "Mul", p[0], x)), NULL);
}

FORM(relu6)
{
    UNUSED;
    return clip(b, x, 0, 6);
}

FORM(hard_tanh)
{
    UNUSED;
    return clip(b, x, -1, 1);
}

FORM(hard_sigmoid)
{
    UNUSED;
    return number(b, "Div", clip(b, number(b, "Add", x, 3), 0, 6), 6);
}

FORM(hard_swish)
{
    return two(b, "Mul", x, hard_sigmoid_form(b, act, x, p));
}

/* max(x, 0) + a min(Elu(z), 0), z = x below zero up to a factor. */
static const char *elu_of(onnx_body *b, const char *x, const char *z, const char *a)
{
    return two(b, "Add", one(b, "Relu", x), two(b, "Mul", a, number(b, "Min", one(b, "Elu", z), 0)));
}

FORM(elu)
{
    UNUSED;
    return elu_of(b, x, x, p[0]);
}

FORM(celu)
{
    UNUSED;
    return elu_of(b, x, two(b, "Div", x, p[0]), p[0]);
}

FORM(selu)
{
    UNUSED;
    return number(b, "Mul", elu_of(b, x, x, onnx_scalar(b, 1.6732632423543772848)), 1.0507009873554804934);
}

FORM(gelu)
{
    UNUSED;
    const char *erf = one(b, "Erf", number(b, "Mul", x, M_SQRT1_2));
    return two(b, "Mul", number(b, "Mul", x, 0.5), number(b, "Add", erf, 1));
}

static const char *gated(onnx_body *b, const char *x, const char *z)
{
    return two(b, "Mul", x, one(b, "Sigmoid", z));
}

FORM(gelu_tanh)
{
    UNUSED;
    const char *cube = two(b, "Mul", x, two(b, "Mul", x, x));
    const char *inner = two(b, "Add", x, number(b, "Mul", cube, 0.044715));
    return gated(b, x, number(b, "Mul", inner, 2 * sqrt(M_2_PI)));
}

FORM(silu)
{
    UNUSED;
    return gated(b, x, x);
}

FORM(quick_gelu)
{
    UNUSED;
    return gated(b, x, number(b, "Mul", x, 1.702));
}

FORM(mish)
{
    UNUSED;
    return two(b, "Mul", x, one(b, "Tanh", one(b, "Softplus", x)));
}

FORM(softplus)
{
    UNUSED;
    return one(b, "Softplus", x);
}

FORM(sigmoid)
{
    UNUSED;
    return one(b, "Sigmoid", x);
}

FORM(tanh)
{
    UNUSED;
    return one(b, "Tanh", x);
}

FORM(smelu)
{
    UNUSED;
    return onnx_berlu(b, x, onnx_scalar(b, 0), p[0], 1);
}

FORM(berlu)
{
    return onnx_berlu(b, x, p[0], p[1], onnx_half_degree(act));
}

static const struct {
    const char *name;
    form make;
} forms[] = {
    {"identity", identity_form},
    {"relu", relu_form},
    {"leaky_relu", leaky_form},
    {"prelu", leaky_form},
    {"relu2", relu2_form},
    {"relu6", relu6_form},
    {"hard_tanh", hard_tanh_form},
    {"hard_sigmoid", hard_sigmoid_form},
    {"hard_swish", hard_swish_form},
    {"elu", elu_form},
    {"celu", celu_form},
    {"selu", selu_form},
    {"gelu", gelu_form},
    {"gelu_tanh", gelu_tanh_form},
    {"silu", silu_form},
    {"quick_gelu", quick_gelu_form},
    {"mish", mish_form},
    {"softplus", softplus_form},
    {"sigmoid", sigmoid_form},
    {"tanh", tanh_form},
    {"smelu", smelu_form},
    {"berlu", berlu_form},
};

static const char *plain_form(onnx_body *b, const berlu_act *act, const char *x, const char *const *p)
{
    for (size_t i = 0; i < COUNT(forms); i++)
        if (strcmp(forms[i].name, berlu_act_name(act)) == 0)
            return forms[i].make(b, act, x, p);
    const char *y = strncmp(berlu_act_spec(act), "smooth(", 7) == 0 ? smooth_form(b, act, x) : NULL;
    if (!y)
        berlu_fail(BERLU_ERR_UNSUPPORTED, "%s has no form in ONNX", berlu_act_spec(act));
    return y;
}

/* The number after a key of the spec; every activation may have scale and center. */
static double spec_number(const berlu_act *act, const char *key, double missing)
{
    const char *at = strstr(berlu_act_spec(act), key);
    return at ? strtod(at + strlen(key), NULL) : missing;
}

const char *onnx_act(onnx_body *b, const berlu_act *act, const char *x, const char *const *params)
{
    double scale = spec_number(act, "scale=", 1);
    const char *y = plain_form(b, act, scale != 1 ? number(b, "Mul", x, scale) : x, params);
    if (y && spec_number(act, "center=", 0) != 0) /* f(0) from the same formula: parameters may be learned */
        y = two(b, "Sub", y, plain_form(b, act, onnx_scalar(b, 0), params));
    return y && scale != 1 ? number(b, "Div", y, scale) : y;
}
