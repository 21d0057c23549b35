/* card.c - measures everything known about an activation, and draws it on one sheet.
 * SPDX-License-Identifier: MIT
 *
 * card_make() fills the card: Lipschitz constant, depth, linearity, and the errors of the kernels
 * beside the reference in double. card_plot() draws it. */
#include "analyze/card.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expect.h"
#include "io/svg.h"

const double linearity_scales[CARD_SCALES] = {0.1, 0.27712812921102037, 0.3, 1, 3};

berlu_status act_centred(berlu_act **out, const berlu_act *act)
{
    const char *spec = berlu_act_spec(act), *keys = strrchr(spec, ')');
    text words = {0};
    *out = NULL;
    if (strstr(spec, "center=1") || berlu_act_at(act, 0, NULL).value == 0)
        return BERLU_OK;
    text_add(&words, "%s%ccenter=1", spec, strchr(keys ? keys : spec, ':') ? ',' : ':');
    berlu_status status = text_status(&words);
    if (status == BERLU_OK)
        status = berlu_act_make(out, words.data);
    text_free(&words);
    return status;
}

/* For functions of one's own the bound is absolute and one in ULP says little; the measured error
 * can be compared with it. The reference uses the kernels' parameters, in f32. */
static berlu_status errors_measure(card *out, const berlu_act *act)
{
    float *x = malloc(4 * CARD_FLOATS * sizeof *x);
    if (!x)
        return berlu_fail_memory(4 * CARD_FLOATS * sizeof *x, "the errors of a card");
    float *y = x + CARD_FLOATS, *dy = y + CARD_FLOATS, *dx = dy + CARD_FLOATS;
    subject s = subject_of(act, PARAMS_OWN);
    for (size_t i = 0; i < BERLU_ACT_PARAMS; i++)
        s.params[i] = (float)s.params[i];
    for (int i = 0; i < CARD_FLOATS; i++) {
        x[i] = -8 + 16 * (float)i / (CARD_FLOATS - 1);
        dy[i] = 1;
    }
    berlu_status status;
    TRY_DONE(berlu_act_forward(act, BERLU_F32, y, x, CARD_FLOATS));
    TRY_DONE(berlu_act_backward(act, BERLU_F32, dx, dy, x, CARD_FLOATS));
    for (int i = 0; i < CARD_FLOATS; i++) {
        berlu_act_point at = subject_at(&s, x[i]);
        out->error = fmax(out->error, fabs(y[i] - at.value));
        out->slope_error = fmax(out->slope_error, fabs(dx[i] - at.slope));
    }
done:
    free(x);
    return status;
}

berlu_status card_make(card *out, const berlu_act *act, int threads)
{
    const depth_settings settings = {.q = 1, .c0 = 0.5, .layers = CARD_LAYERS, .threads = threads};
    berlu_act *centred = NULL;
    *out = (card){.ulp = berlu_act_ulp(act), .slope_ulp = berlu_act_slope_ulp(act), .least = INFINITY};
    lipschitz_find(&out->lipschitz, act);
    linearity_find(out->linearity, act, linearity_scales, CARD_SCALES);
    out->zero = berlu_act_at(act, 0, NULL).value;
    for (int i = -2048; i <= 2048; i++)
        out->least = fmin(out->least, berlu_act_at(act, i / 256.0, NULL).value);
    TRY(errors_measure(out, act));
    TRY(depth_find(&out->depth, act, &settings));
    if (out->depth.edge)
        return BERLU_OK;
    TRY(act_centred(&centred, act));
    if (!centred)
        return BERLU_OK;
    out->has_centred = 1;
    berlu_status status = depth_find(&out->centred, centred, &settings);
    berlu_act_free(centred);
    return status;
}

static void depth_curve(const depth *d, double *x, double *y)
{
    for (size_t i = 0; i < d->count; i++) {
        x[i] = d->curve[i].layer;
        y[i] = d->curve[i].gap;
    }
}

typedef struct sheet {
    double x[CARD_POINTS], value[CARD_POINTS], slope[CARD_POINTS];
    double layer[2][DEPTH_POINTS], gap[2][DEPTH_POINTS];
    double scale[CARD_CURVE], nonlinear[CARD_CURVE];
    linearity line[CARD_CURVE];
} sheet;

static void sheet_fill(sheet *s, const card *c, const berlu_act *act)
{
    for (int i = 0; i < CARD_POINTS; i++) {
        s->x[i] = -4 + 8.0 * i / (CARD_POINTS - 1);
        berlu_act_point at = berlu_act_at(act, s->x[i], NULL);
        s->value[i] = at.value;
        s->slope[i] = at.slope;
    }
    for (int i = 0; i < CARD_CURVE; i++)
        s->scale[i] = pow(10, -2 + 3.0 * i / (CARD_CURVE - 1));
    linearity_find(s->line, act, s->scale, CARD_CURVE);
    for (int i = 0; i < CARD_CURVE; i++)
        s->nonlinear[i] = s->line[i].nonlinear;
    depth_curve(&c->depth, s->layer[0], s->gap[0]);
    depth_curve(&c->centred, s->layer[1], s->gap[1]);
}

berlu_status card_plot(const card *c, const berlu_act *act, const char *title, const char *path)
{
    sheet *s = calloc(1, sizeof *s);
    if (!s)
        return berlu_fail_memory(sizeof *s, "the curves of a card");
    sheet_fill(s, c, act);
    const svg_series function = {.x = s->x, .y = s->value, .count = CARD_POINTS, .color = 0};
    const svg_series slope = {.x = s->x, .y = s->slope, .count = CARD_POINTS, .color = 1};
    const svg_series depths[] = {{.label = c->has_centred ? "f" : NULL,
                                  .x = s->layer[0],
                                  .y = s->gap[0],
                                  .count = c->depth.count,
                                  .mark = SVG_POLYGON,
                                  .color = 2},
                                 {.label = "f - f(0)",
                                  .x = s->layer[1],
                                  .y = s->gap[1],
                                  .count = c->centred.count,
                                  .mark = SVG_POLYGON,
                                  .color = 4}};
    const svg_series line = {.x = s->scale, .y = s->nonlinear, .count = CARD_CURVE, .color = 3};
    const svg_plot plots[] = {{.title = "function", .x = {.title = "x"}, .series = &function, .count = 1},
                              {.title = "slope", .x = {.title = "x"}, .series = &slope, .count = 1},
                              {.title = "1 - correlation of two inputs by depth",
                               .x = {.title = "layer", .log = 1},
                               .y = {.log = 1},
                               .series = depths,
                               .count = c->has_centred ? 2 : 1},
                              {.title = "nonlinearity 1 - R\u00b2 by scale of the input",
                               .x = {.title = "scale", .log = 1},
                               .series = &line,
                               .count = 1}};
    char subtitle[160];
    snprintf(subtitle, sizeof subtitle, "Lipschitz constant %.6g, largest curvature %.6g, %s", c->lipschitz.constant,
             c->lipschitz.curvature, c->depth.edge ? "edge of chaos exists" : "no edge of chaos");
    berlu_status status = svg_save(path, &(svg_figure){.title = title,
                                                       .subtitle = subtitle,
                                                       .plots = plots,
                                                       .count = 4,
                                                       .columns = 2,
                                                       .width = 480,
                                                       .height = 300});
    free(s);
    return status;
}
