/* catalogue.c - the functions that have a name. SPDX-License-Identifier: MIT
 *
 * A row holds the function without its parameter, where it has one; `apply` inserts it. The first
 * eight are piecewise linear; hard_swish and elu are made of curves. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "smooth/smooth.h"

typedef struct entry {
    const char *name, *parameter; /* NULL: it has none */
    double standard;              /* of the parameter */
    size_t count;
    double kinks[2], slopes[3];
    double at_y; /* at 0 */
    void (*apply)(struct entry *e, double parameter);
    int curved;
    berlu_curve curves[3];
} entry;

static void slope_apply(entry *e, double alpha)
{
    e->slopes[0] = alpha;
}

static void shrink_apply(entry *e, double lambda)
{
    e->kinks[0] = -lambda;
    e->kinks[1] = lambda;
}

static void elu_apply(entry *e, double alpha)
{
    e->curves[0].scale = alpha;
}

static const entry entries[] = {
    {.name = "relu", .count = 1, .kinks = {0}, .slopes = {0, 1}},
    {.name = "leaky_relu", "alpha", 0.01, .count = 1, .kinks = {0}, .slopes = {0, 1}, .apply = slope_apply},
    {.name = "prelu", "alpha", 0.25, .count = 1, .kinks = {0}, .slopes = {0, 1}, .apply = slope_apply},
    {.name = "relu6", .count = 2, .kinks = {0, 6}, .slopes = {0, 1, 0}},
    {.name = "hard_tanh", .count = 2, .kinks = {-1, 1}, .slopes = {0, 1, 0}},
    {.name = "hard_sigmoid", .count = 2, .kinks = {-3, 3}, .slopes = {0, 1.0 / 6, 0}, .at_y = 0.5},
    {.name = "abs", .count = 1, .kinks = {0}, .slopes = {-1, 1}},
    {.name = "soft_shrink", "lambda", 0.5, .count = 2, .slopes = {1, 0, 1}, .apply = shrink_apply},
    {.name = "hard_swish",
     .count = 2,
     .kinks = {-3, 3},
     .curved = 1,
     .curves = {{0}, {.linear = 0.5, .square = 1.0 / 6}, {.linear = 1}}},
    {.name = "elu",
     "alpha",
     1,
     .count = 1,
     .kinks = {0},
     .apply = elu_apply,
     .curved = 1,
     .curves = {{.rate = 1}, {.linear = 1}}},
};

const char *berlu_smooth_name(size_t index)
{
    return index < COUNT(entries) ? entries[index].name : NULL;
}

static berlu_status fail_unknown(const char *name)
{
    const char *names[COUNT(entries) + 1] = {0};
    for (size_t i = 0; i < COUNT(entries); i++)
        names[i] = entries[i].name;
    const char *near = nearest_name(name, names);
    if (strcmp(name, "berlu") == 0 || strcmp(name, "smelu") == 0)
        return berlu_fail(BERLU_ERR_ARG, "the catalogue has no function '%s': it is %s smoothed; smooth that one", name,
                          *name == 'b' ? "leaky_relu" : "relu");
    if (near)
        return berlu_fail(BERLU_ERR_ARG, "the catalogue has no function '%s'; did you mean '%s'?", name, near);
    return berlu_fail(BERLU_ERR_ARG,
                      "the catalogue has no function '%s'; it has relu, leaky_relu, prelu, relu6, hard_tanh, "
                      "hard_sigmoid, abs, soft_shrink, hard_swish, elu",
                      name);
}

static berlu_status parameter_apply(entry *e, const double *parameter)
{
    if (parameter && !e->parameter)
        return berlu_fail(BERLU_ERR_ARG, "%s has no parameter, but %.15g was given", e->name, *parameter);
    if (parameter && !isfinite(*parameter))
        return berlu_fail(BERLU_ERR_ARG, "%s: %s is %.15g; it must be a finite number", e->name, e->parameter,
                          *parameter);
    if (e->apply == shrink_apply && parameter && *parameter <= 0)
        return berlu_fail(BERLU_ERR_ARG, "%s: %s is %.15g; it must be above 0", e->name, e->parameter, *parameter);
    if (e->apply)
        e->apply(e, parameter ? *parameter : e->standard);
    return BERLU_OK;
}

berlu_status berlu_smooth_named(berlu_smooth **out, const char *name, const double *parameter, double eps, int degree)
{
    if (out)
        *out = NULL;
    if (!out || !name)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_named() was given NULL");
    size_t i = 0;
    while (i < COUNT(entries) && strcmp(entries[i].name, name) != 0)
        i++;
    if (i == COUNT(entries))
        return fail_unknown(name);
    entry e = entries[i];
    TRY(parameter_apply(&e, parameter));
    berlu_status status;
    if (e.curved) {
        berlu_smooth_curves spec = {e.count, e.kinks, e.curves, &eps, 1, degree};
        status = berlu_smooth_make_curves(out, &spec);
    } else {
        berlu_smooth_spec spec = {.kink_count = e.count,
                                  .kinks = e.kinks,
                                  .slopes = e.slopes,
                                  .at_y = e.at_y,
                                  .eps = &eps,
                                  .eps_count = 1,
                                  .degree = degree};
        status = berlu_smooth_make(out, &spec);
    }
    return status == BERLU_OK ? status : berlu_fail_in(status, name);
}
