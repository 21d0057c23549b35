/* smooth_args.c - see smooth_args.h. SPDX-License-Identifier: MIT */
#include "smooth_args.h"

#include <berlu/act.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "smooth/settings.h"
#include "smooth/smooth.h"

static const char *const setting_options[] = {"kinks", "slopes", "eps", "eps-right", "degree", "at", "form"};
static const char *const point_options[] = {"points", "outer"};

static berlu_status refuse_beside(const options *o, const char *const *names, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (options_given(o, names[i]))
            return berlu_fail(BERLU_ERR_ARG, "option --%s does not go with %s", names[i], what);
    return BERLU_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

typedef struct corners {
    double *x, *y;
    size_t count;
    double outer[2];
    int closed; /* the outer slopes are given, so that the first and the last point are kinks */
} corners;

/* "-2:0.4,0:1" */
static berlu_status corners_read(corners *out, const char *words)
{
    size_t most = 1;
    for (const char *c = words; *c; c++)
        most += *c == ',';
    out->x = calloc(most, sizeof *out->x);
    out->y = calloc(most, sizeof *out->y);
    if (!out->x || !out->y)
        return berlu_fail_memory(most * sizeof *out->x, "the points");
    for (const char *at = words;; at++) {
        char pair[128];
        size_t length = strcspn(at, ",");
        snprintf(pair, sizeof pair, "%.*s", (int)(length < sizeof pair ? length : sizeof pair - 1), at);
        char *colon = strchr(pair, ':');
        if (colon)
            *colon = 0;
        if (!colon || !number_parse(pair, &out->x[out->count]) || !number_parse(colon + 1, &out->y[out->count]))
            return berlu_fail(BERLU_ERR_ARG, "option --points: '%.*s' is not X:Y, for example -2:0.4", (int)length, at);
        if (out->count > 0 && !(out->x[out->count] > out->x[out->count - 1]))
            return berlu_fail(BERLU_ERR_ARG, "option --points: they must go from left to right, but %g follows %g",
                              out->x[out->count], out->x[out->count - 1]);
        out->count++;
        at += length;
        if (!*at)
            break;
    }
    return out->count >= 2 ? BERLU_OK : berlu_fail(BERLU_ERR_ARG, "option --points: give two points or more");
}

static berlu_status outer_read(corners *c, const char *words)
{
    char first[64];
    const char *comma = strchr(words, ',');
    snprintf(first, sizeof first, "%.*s", comma ? (int)(comma - words) : 0, words);
    c->closed = comma && number_parse(first, &c->outer[0]) && number_parse(comma + 1, &c->outer[1]);
    return c->closed ? BERLU_OK
                     : berlu_fail(BERLU_ERR_ARG, "option --outer: '%s' is not two slopes, for example 0,1", words);
}

static double corner_slope(const corners *c, size_t i)
{
    return (c->y[i + 1] - c->y[i]) / (c->x[i + 1] - c->x[i]);
}

static void number_add(text *out, double value)
{
    char digits[NUMBER_TEXT];
    text_add(out, "%s%s", out->length ? "," : "", number_text(digits, value));
}

/* Sets kinks, slopes and anchor of the function through the points. */
static berlu_status corners_set(smooth_settings *settings, const corners *c)
{
    char x[NUMBER_TEXT], y[NUMBER_TEXT];
    text kinks = {0}, slopes = {0}, at = {0};
    if (c->closed)
        number_add(&slopes, c->outer[0]);
    for (size_t i = 0; i < c->count; i++)
        if (c->closed || (i > 0 && i + 1 < c->count))
            number_add(&kinks, c->x[i]);
    for (size_t i = 0; i + 1 < c->count; i++)
        number_add(&slopes, corner_slope(c, i));
    if (c->closed)
        number_add(&slopes, c->outer[1]);
    text_add(&at, "%s=%s", number_text(x, c->x[0]), number_text(y, c->y[0]));
    berlu_status status;
    if (kinks.failed || slopes.failed || at.failed)
        TRY_DONE(berlu_fail_memory(0, "the points"));
    if (kinks.length)
        TRY_DONE(settings_set(settings, "kinks", kinks.data));
    TRY_DONE(settings_set(settings, "slopes", slopes.data));
    TRY_DONE(settings_set(settings, "at", at.data));
done:
    text_free(&kinks), text_free(&slopes), text_free(&at);
    return status;
}

static berlu_status points_take(const options *o, smooth_settings *settings)
{
    static const char *const instead[] = {"kinks", "slopes", "at"};
    corners c = {0};
    berlu_status status;
    TRY_DONE(refuse_beside(o, instead, COUNT(instead), "--points"));
    TRY_DONE(corners_read(&c, options_string(o, "points")));
    if (options_given(o, "outer"))
        TRY_DONE(outer_read(&c, options_string(o, "outer")));
    TRY_DONE(corners_set(settings, &c));
done:
    free(c.x);
    free(c.y);
    return status;
}

/* ---- the five sources ------------------------------------------------------------------------ */

static berlu_status from_options(const options *o, berlu_smooth **out)
{
    smooth_settings settings;
    berlu_status status;
    if (!options_given(o, "kinks") && !options_given(o, "slopes") && !options_given(o, "points"))
        return berlu_fail(BERLU_ERR_ARG,
                          "say which function: a name of the catalogue, for example `berlu smooth leaky_relu "
                          "--eps 0.5`, or --kinks 0 --slopes 0,1, or --points -1:0,0:0,1:1");
    if (options_given(o, "outer") && !options_given(o, "points"))
        return berlu_fail(BERLU_ERR_ARG, "option --outer goes with --points alone");
    settings_start(&settings);
    if (options_given(o, "points"))
        TRY_DONE(points_take(o, &settings));
    for (size_t i = 0; i < COUNT(setting_options); i++) {
        const char *option = setting_options[i], *key = strcmp(option, "eps-right") == 0 ? "eps_right" : option;
        if (options_given(o, option))
            TRY_DONE(settings_set(&settings, key, options_string(o, option)));
    }
    status = settings_make(&settings, out);
done:
    settings_free(&settings);
    return status;
}

/* A single number among the options of a catalogue's function. */
static berlu_status number_option(const options *o, const char *name, double *out)
{
    if (!options_given(o, name) || number_parse(options_string(o, name), out))
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_ARG, "option --%s: '%s' is not one number", name, options_string(o, name));
}

/* The title of a plot and of a table. The paper calls a smoothed leaky ReLU BerLU. */
static berlu_status title_make(smooth_made *m, const options *o, const char *parameter)
{
    text title = {0};
    berlu_transition t;
    if (strcmp(m->name, "leaky_relu") == 0 || strcmp(m->name, "prelu") == 0)
        text_string(&title, "BerLU: ");
    text_add(&title, "%s smoothed", m->name);
    if (parameter && options_given(o, parameter))
        text_add(&title, ", %s %g", parameter, options_float(o, parameter));
    else if (strcmp(m->name, "leaky_relu") == 0)
        text_string(&title, ", alpha 0.01");
    if (berlu_smooth_kink_count(m->f) > 0 && berlu_smooth_transition(m->f, 0, &t) == BERLU_OK) {
        double eps = t.eps_left;
        int same = 1;
        for (size_t i = 0; i < berlu_smooth_kink_count(m->f); i++) {
            berlu_smooth_transition(m->f, i, &t);
            same &= t.eps_left == eps && t.eps_right == eps;
        }
        if (same)
            text_add(&title, ", eps %g", eps);
        else
            text_string(&title, ", eps by kink");
    }
    text_add(&title, ", degree %d", berlu_smooth_degree(m->f));
    berlu_status status = text_status(&title);
    snprintf(m->title, sizeof m->title, "%s", status == BERLU_OK ? title.data : "");
    text_free(&title);
    return status;
}

/* An activation that the catalogue lacks (gelu) is not a misspelt function of it (relu). */
static berlu_status known_elsewhere(const char *name)
{
    const char *own, *builtin = berlu_act_builtin(0);
    char list[256] = "";
    for (size_t i = 1; builtin && strcmp(builtin, name) != 0; i++)
        builtin = berlu_act_builtin(i);
    if (!builtin || strcmp(name, "berlu") == 0 || strcmp(name, "smelu") == 0)
        return BERLU_OK;
    for (size_t i = 0; (own = berlu_smooth_name(i)); i++) {
        if (strcmp(own, name) == 0)
            return BERLU_OK;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "", own);
    }
    return berlu_fail(BERLU_ERR_ARG, "%s is an activation, but not in the catalogue of what is smoothed: %s", name,
                      list);
}

static berlu_status from_catalogue(const options *o, const char *name, smooth_made *out)
{
    static const char *const own[] = {"kinks", "slopes", "eps-right", "at", "form"};
    double eps = 0.01, degree = 2, parameter = NAN;
    TRY(refuse_beside(o, own, COUNT(own), "a function of the catalogue"));
    TRY(number_option(o, "eps", &eps));
    TRY(number_option(o, "degree", &degree));
    if (!(fabs(degree) < 1000) || degree != floor(degree))
        return berlu_fail(BERLU_ERR_ARG, "option --degree: '%s' is not a whole number from 2 to 16",
                          options_string(o, "degree"));
    const char *option = strcmp(name, "soft_shrink") == 0 ? "lambda" : "alpha";
    const char *const other[] = {strcmp(name, "soft_shrink") == 0 ? "alpha" : "lambda"};
    TRY(refuse_beside(o, other, 1, name));
    if (options_given(o, option))
        parameter = options_float(o, option);
    TRY(berlu_smooth_named(&out->f, name, options_given(o, option) ? &parameter : NULL, eps, (int)degree));
    return title_make(out, o, option);
}

static berlu_status from_elsewhere(const options *o, const char *name, size_t path, smooth_made *out)
{
    static const char *const parameters[] = {"alpha", "lambda"};
    TRY(refuse_beside(o, parameters, COUNT(parameters), "a function that is not of the catalogue"));
    if (!name)
        return from_options(o, &out->f);
    TRY(refuse_beside(o, setting_options, COUNT(setting_options), "a text or file that says it already"));
    if (!path)
        return berlu_smooth_parse(&out->f, name);
    if (name[path])
        return berlu_fail(BERLU_ERR_ARG, "'%s' belongs to an activation; name the file alone", name + path + 1);
    TRY(smooth_yaml_read(&out->f, out->name, name));
    if (!*out->name)
        strcpy(out->name, "smoothed");
    return BERLU_OK;
}

berlu_status smooth_make(const options *o, smooth_made *out)
{
    const char *name = options_string(o, "function");
    size_t path = name ? smooth_yaml_path(name) : 0;
    *out = (smooth_made){.name = "smoothed"};
    if (name)
        TRY(refuse_beside(o, point_options, COUNT(point_options), "a function that has a name"));
    if (name && !path && strncmp(name, "smooth(", 7) != 0) {
        snprintf(out->name, sizeof out->name, "%s", name);
        TRY(known_elsewhere(name));
        return from_catalogue(o, name, out);
    }
    TRY(from_elsewhere(o, name, path, out));
    TRY(title_make(out, o, NULL));
    if (strcmp(out->name, "smoothed") == 0)
        memmove(out->title, out->title + strlen("smoothed "), strlen(out->title) - strlen("smoothed ") + 1);
    return BERLU_OK;
}

/* ---- variants of a function ------------------------------------------------------------------ */

static berlu_status curves_again(berlu_smooth **out, const berlu_smooth *f, double *kinks, double *eps, int degree)
{
    berlu_smooth_curves spec = {.kink_count = f->count,
                                .kinks = kinks,
                                .curves = curve_at(f, 0),
                                .eps = eps,
                                .eps_count = f->count,
                                .degree = degree};
    return berlu_smooth_make_curves(out, &spec);
}

static berlu_status lines_again(berlu_smooth **out, const berlu_smooth *f, double *numbers, int degree, int collinear)
{
    size_t n = f->count;
    double *kinks = numbers, *slopes = kinks + n, *left = slopes + n + 1, *right = left + n;
    slopes[0] = f->count ? f->knots[0].left : f->first_slope;
    for (size_t i = 0; i < n; i++)
        slopes[i + 1] = f->knots[i].right;
    berlu_smooth_spec spec = {.kink_count = n,
                              .kinks = kinks,
                              .slopes = slopes,
                              .at_x = f->at_x,
                              .at_y = f->at_y,
                              .eps = left,
                              .eps_count = n ? n : 1,
                              .eps_right = right,
                              .degree = degree,
                              .form = collinear ? BERLU_SMOOTH_COLLINEAR : BERLU_SMOOTH_BERNSTEIN};
    static const double any = 1;
    if (n == 0)
        spec.eps = &any, spec.eps_right = NULL;
    return berlu_smooth_make(out, &spec);
}

static berlu_status again(berlu_smooth **out, const berlu_smooth *f, double eps, int degree, int collinear)
{
    size_t n = f->count;
    double *numbers = calloc(4 * n + 1, sizeof *numbers);
    if (!numbers)
        return berlu_fail_memory((4 * n + 1) * sizeof *numbers, "a function");
    for (size_t i = 0; i < n; i++) {
        numbers[i] = f->knots[i].x;
        numbers[2 * n + 1 + i] = isnan(eps) ? f->knots[i].eps_left : eps;
        numbers[3 * n + 1 + i] = isnan(eps) ? f->knots[i].eps_right : eps;
    }
    berlu_status status = f->curved ? curves_again(out, f, numbers, numbers + 2 * n + 1, degree)
                                    : lines_again(out, f, numbers, degree, collinear);
    free(numbers);
    return status;
}

int smooth_is_collinear(const berlu_smooth *f)
{
    berlu_smooth *plain = NULL;
    int differs = 0;
    if (f->curved || again(&plain, f, NAN, f->degree, 0) != BERLU_OK)
        return 0;
    for (size_t i = 0; i < f->count; i++)
        for (int k = 0; k <= f->piece_degree; k++)
            differs |= plain->piece_degree != f->piece_degree || plain->knots[i].control[k] != f->knots[i].control[k];
    berlu_smooth_free(plain);
    return differs;
}

berlu_status smooth_again(berlu_smooth **out, const berlu_smooth *f, double eps, int degree)
{
    return again(out, f, eps, degree ? degree : f->degree, smooth_is_collinear(f));
}

const char *smooth_warning(char out[SMOOTH_WARNING], const berlu_smooth *f)
{
    *out = 0;
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++) {
        berlu_transition t;
        berlu_smooth_transition(f, i, &t);
        if (t.contact_left > 0 && t.contact_right > 0)
            continue;
        double theta = fmin(t.eps_left, t.eps_right) / (t.eps_left + t.eps_right), degree = ceil(1 / theta);
        int length = snprintf(out, SMOOTH_WARNING,
                              "the function still has a kink: at a join of the transition around %g the slope jumps "
                              "(contact order 0), because the kink is off the centre; --form collinear",
                              t.x);
        if (degree <= BERLU_SMOOTH_MAX_DEGREE)
            length += snprintf(out + length, SMOOTH_WARNING - (size_t)length, " or --degree %.0f", degree);
        snprintf(out + length, SMOOTH_WARNING - (size_t)length, " makes the slope continuous");
        return out;
    }
    return out;
}
