/* smoothed.c - a smoothed function as an activation: reference, and numbers for the kernels.
 * SPDX-License-Identifier: MIT
 *
 * The reference is the berlu_smooth itself. For the kernels kinks and eps are rounded to f32 before
 * anything is derived from them, slopes and values once, when the kernel's numbers are computed
 * (smoothed_numbers.h). It has no name of its own: spec.c makes one from smooth(...), from a
 * registered name or from a handle. */
#include <math.h>
#include <stdlib.h>

#include "act/act_internal.h"
#include "act/formulas/smoothed_numbers.h"
#include "base/text.h"
#include "smooth/smooth.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    const berlu_smooth *f = shape->exact;
    (void)p;
    out->value = berlu_smooth_value(f, x);
    out->slope = berlu_smooth_slope(f, x);
    out->second = berlu_smooth_curvature(f, x);
}

static double lipschitz(const double *p, const act_shape *shape)
{
    (void)p;
    return berlu_smooth_lipschitz(shape->exact);
}

const act_definition act_smoothed = {
    .name = "smooth",
    .about = "a piecewise-linear function with its kinks smoothed",
    .inner = 1,
    .ulp = INFINITY, /* away from a kink a line may cross zero: the bounds are absolute, see smoothed.h */
    .slope_ulp = INFINITY,
    .point = point,
    .lipschitz = lipschitz,
};

/* Memory that is freed with the activation. */
typedef struct smoothed {
    berlu_smooth *exact;
    float numbers[SMOOTHED_NUMBERS];
} smoothed;

static void smoothed_free(void *owned)
{
    smoothed *s = owned;
    berlu_smooth_free(s->exact);
    free(s);
}

static berlu_status check_kernel(const berlu_smooth *f, const char *name)
{
    if (f->curved)
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: a function made of curves has no kernels, only lines have", name);
    if (f->count > SMOOTHED_KNOTS)
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: %zu kinks; an activation can have at most %d", name, f->count,
                          SMOOTHED_KNOTS);
    for (size_t i = 0; i < f->count; i++)
        if (!f->knots[i].centred)
            return berlu_fail(BERLU_ERR_UNSUPPORTED,
                              "%s: the kink %.9g is not at the centre of its transition; an activation needs that",
                              name, f->knots[i].x);
    return BERLU_OK;
}

/* Transitions that touch may overlap once their kinks and eps are f32 numbers (0.3 and 0.5 with eps
 * 0.1): shrinks both until they fit, by what their kinks have come nearer. */
static void eps_fit(double *eps, const double *kinks, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++) {
        double share = (kinks[i + 1] - kinks[i]) / (eps[i] + eps[i + 1]);
        for (size_t j = i; j <= i + 1 && share < 1; j++) {
            double most = eps[j] * share;
            float fits = (float)most;
            eps[j] = (double)((double)fits > most ? nextafterf(fits, 0) : fits);
        }
    }
}

/* The same function; `rounded`: with kinks and eps as f32 numbers, as the kernels have them. */
static berlu_status copy_make(berlu_smooth **out, const berlu_smooth *f, int rounded)
{
    double kinks[SMOOTHED_KNOTS], slopes[SMOOTHED_KNOTS + 1] = {f->first_slope}, eps[SMOOTHED_KNOTS];
    for (size_t i = 0; i < f->count; i++) {
        kinks[i] = rounded ? (double)(float)f->knots[i].x : f->knots[i].x;
        eps[i] = rounded ? (double)(float)f->knots[i].eps_left : f->knots[i].eps_left;
        slopes[i + 1] = f->knots[i].right;
    }
    if (rounded)
        eps_fit(eps, kinks, f->count);
    berlu_smooth_spec spec = {.kink_count = f->count,
                              .kinks = kinks,
                              .slopes = slopes,
                              .at_x = f->at_x,
                              .at_y = f->at_y,
                              .eps = eps,
                              .eps_count = f->count,
                              .degree = f->degree};
    return berlu_smooth_make(out, &spec);
}

/* A function without kinks is a knot of jump 0 at its anchor. */
static void numbers_fill(float *n, const berlu_smooth *f)
{
    n[SMOOTHED_COUNT] = f->count ? (float)f->count : 1;
    n[SMOOTHED_PEAK] = (float)f->bump.peak;
    n[SMOOTHED_SLOPE] = (float)f->first_slope;
    n[SMOOTHED_SLOPE + 1] = (float)f->first_slope;
    n[SMOOTHED_X] = (float)f->at_x;
    n[SMOOTHED_Y] = (float)(f->at_y + f->first_slope * ((double)(float)f->at_x - f->at_x));
    for (int i = 0; i < SMOOTHED_KNOTS; i++) {
        n[SMOOTHED_EPS + i] = 1;
        n[SMOOTHED_Q + i] = (float)f->bump.q[i];
        n[SMOOTHED_W + i] = (float)f->bump.w[i];
    }
    for (size_t i = 0; i < f->count; i++) {
        n[SMOOTHED_X + i] = (float)f->knots[i].x;
        n[SMOOTHED_Y + i] = (float)f->knots[i].y;
        n[SMOOTHED_EPS + i] = (float)f->knots[i].eps_left;
        n[SMOOTHED_SLOPE + i + 1] = (float)f->knots[i].right;
        if (i + 1 < f->count)
            n[SMOOTHED_UNTIL + i] = (float)f->knots[i].until;
    }
}

/* Products that a kernel forms must be finite, or a bump of 0 would become infinity times 0. */
static berlu_status check_f32(const float *n, const char *name)
{
    for (int i = 0; i < SMOOTHED_NUMBERS; i++)
        if (!isfinite(n[i]))
            return berlu_fail(BERLU_ERR_ARG, "%s: its numbers exceed the range of f32", name);
    for (int i = 0; i < (int)n[SMOOTHED_COUNT]; i++)
        if (!isfinite((n[SMOOTHED_SLOPE + i + 1] - n[SMOOTHED_SLOPE + i]) * n[SMOOTHED_EPS + i]))
            return berlu_fail(BERLU_ERR_ARG, "%s: slopes times eps exceed the range of f32 at the kink %.9g", name,
                              (double)n[SMOOTHED_X + i]);
    return BERLU_OK;
}

berlu_status smoothed_fill(berlu_act *act, const berlu_smooth *f)
{
    TRY(check_kernel(f, act->name));
    smoothed *s = calloc(1, sizeof *s);
    if (!s)
        return berlu_fail_memory(sizeof *s, act->name);
    berlu_smooth *rounded = NULL;
    berlu_status status = copy_make(&rounded, f, 1);
    if (status == BERLU_OK) {
        numbers_fill(s->numbers, rounded);
        status = check_f32(s->numbers, act->name);
    } else if (status == BERLU_ERR_ARG) {
        berlu_fail_in(status, "as f32 numbers");
    }
    berlu_smooth_free(rounded);
    if (status == BERLU_OK)
        status = copy_make(&s->exact, f, 0);
    if (status != BERLU_OK) {
        smoothed_free(s);
        return status;
    }
    act->shape = (act_shape){f->degree / 2 * 2, SMOOTHED_NUMBERS, s->numbers, s->exact};
    act->owned = s;
    act->owned_free = smoothed_free;
    return BERLU_OK;
}

static void numbers_write(text *t, const char *key, const berlu_smooth *f, size_t count, double (*get)(const knot *))
{
    char number[NUMBER_TEXT];
    for (size_t i = 0; i < count; i++)
        text_add(t, "%s%s", i ? "," : key, number_text(number, get(&f->knots[i])));
}

static double kink_of(const knot *k)
{
    return k->x;
}

static double slope_of(const knot *k)
{
    return k->right;
}

static double eps_of(const knot *k)
{
    return k->eps_left;
}

void smoothed_write(text *t, const berlu_act *act)
{
    const berlu_smooth *f = act->shape.exact;
    char x[NUMBER_TEXT], y[NUMBER_TEXT];
    text_string(t, "smooth(");
    if (f->count) {
        numbers_write(t, "kinks=", f, f->count, kink_of);
        text_string(t, "; ");
    }
    text_add(t, "slopes=%s", number_text(x, f->first_slope));
    numbers_write(t, ",", f, f->count, slope_of);
    if (f->count)
        numbers_write(t, "; eps=", f, f->count, eps_of);
    text_add(t, "; degree=%d; at=%s=%s)", act->shape.degree, number_text(x, f->at_x), number_text(y, f->at_y));
}
