/* diagnose.c - reads the pre-activations of every site in the last step of an epoch.
 * SPDX-License-Identifier: MIT
 *
 * diagnose.h has the metrics. diagnosis_forward() runs between forward and backward, while the step
 * holds them, diagnosis_backward() after the backward, for gradients; the statistics of one site
 * are in diagnose_values.c. diagnosis_parameters() follows the learned parameters and the Lipschitz
 * constant they give. */
#include "train/diagnose.h"

#include <assert.h>
#include <berlu/act.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "train/diagnose_values.h"

/* A learned parameter of a site: its index in the activation and in the engine. */
typedef struct learned {
    const char *name;
    int number;    /* of the activation's parameter */
    int parameter; /* of the engine */
    size_t count;  /* 1, or one per channel */
    float *values; /* of the last learned_fetch() */
} learned;

typedef struct site {
    const graph_site *declared;
    learned learned[BERLU_ACT_PARAMS];
    int learned_count;
    int bias; /* parameter that receives the gradient of the pre-activations; -1: none found */
} site;

struct diagnosis {
    arena memory;
    const graph *graph;
    site *sites;
    const char **names;
    size_t count;
    float *x; /* `capacity` pre-activations */
    size_t capacity;
    value_parts *parts;
    int threads;
};

static int parameter_index(const graph *g, const char *name)
{
    tensor t = graph_find(g, name);
    return t == TENSOR_NONE ? -1 : graph_tensor(g, t)->parameter;
}

static berlu_status site_learned(diagnosis *d, site *s)
{
    for (size_t i = 0; i < berlu_act_param_count(s->declared->act); i++) {
        berlu_act_param_info info;
        TRY(berlu_act_param(s->declared->act, i, &info));
        const char *name = arena_printf(&d->memory, "%s.%s", s->declared->name, info.name);
        if (!name)
            return BERLU_ERR_MEMORY;
        int parameter = info.learned ? parameter_index(d->graph, name) : -1;
        if (parameter < 0)
            continue;
        learned *l = &s->learned[s->learned_count++];
        *l = (learned){.name = arena_strdup(&d->memory, info.name), .number = (int)i, .parameter = parameter};
        l->count = (size_t)tensor_elements(graph_tensor(d->graph, graph_param(d->graph, parameter)));
        l->values = ARENA_ARRAY(&d->memory, float, l->count);
        if (!l->name || !l->values)
            return BERLU_ERR_MEMORY;
    }
    return BERLU_OK;
}

/* "blocks.0.mlp.act" is fed by "blocks.0.mlp.fc1". */
static berlu_status site_bias(diagnosis *d, site *s)
{
    const char *name = s->declared->name, *dot = strrchr(name, '.');
    const char *bias = arena_printf(&d->memory, "%.*s.fc1.bias", dot ? (int)(dot - name) : 0, name);
    s->bias = bias ? parameter_index(d->graph, bias) : -1;
    return bias ? BERLU_OK : BERLU_ERR_MEMORY;
}

void diagnosis_free(diagnosis *d)
{
    if (!d)
        return;
    arena_free(&d->memory);
    free(d);
}

size_t diagnosis_sites(const diagnosis *d)
{
    return d->count;
}

const char *const *diagnosis_names(const diagnosis *d)
{
    return d->names;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static berlu_status learned_fetch(site *s, const engine *e)
{
    for (int i = 0; i < s->learned_count; i++)
        TRY(engine_get(e, ARRAY_WEIGHT, s->learned[i].parameter, s->learned[i].values));
    return BERLU_OK;
}

static const learned *learned_named(const site *s, const char *name)
{
    for (int i = 0; i < s->learned_count; i++)
        if (strcmp(s->learned[i].name, name) == 0)
            return &s->learned[i];
    return NULL;
}

/* The parameter's current value, for a learned one the mean over channels; NaN if there is none. */
static double parameter_mean(const site *s, const char *name)
{
    const learned *l = learned_named(s, name);
    berlu_act_param_info info;
    double sum = 0;
    if (!l) {
        int number = berlu_act_param_find(s->declared->act, name);
        return number >= 0 && berlu_act_param(s->declared->act, (size_t)number, &info) == BERLU_OK ? info.value : NAN;
    }
    for (size_t i = 0; i < l->count; i++)
        sum += l->values[i];
    return sum / (double)l->count;
}

/* The activation's own text with one value replaced. */
static berlu_status spec_with(text *out, const char *spec, const char *name, double value)
{
    char key[64], digits[NUMBER_TEXT];
    snprintf(key, sizeof key, "%s=", name);
    const char *at = spec;
    while ((at = strstr(at, key)) && !(at > spec && (at[-1] == ':' || at[-1] == ',')))
        at++;
    if (!at)
        return berlu_fail(BERLU_ERR_ARG, "%s: no %s to replace", spec, name);
    text_bytes(out, spec, (size_t)(at - spec));
    text_add(out, "%s%s%s", key, number_text(digits, value), at + strcspn(at, ","));
    return text_status(out);
}

/* max |f'| is convex in a slope parameter, so the extremes over channels suffice. NaN where a
 * parameter is outside the activation's range, as in a diverged run. */
static berlu_status lipschitz_of(const site *s, double *out)
{
    const learned *l = learned_named(s, "alpha");
    berlu_status status = BERLU_OK;
    *out = l ? 0 : berlu_act_lipschitz(s->declared->act);
    if (!l)
        return BERLU_OK;
    float ends[2] = {l->values[0], l->values[0]};
    for (size_t i = 1; i < l->count; i++) {
        ends[0] = fminf(ends[0], l->values[i]);
        ends[1] = fmaxf(ends[1], l->values[i]);
    }
    for (int i = 0; i < 2 && status != BERLU_ERR_MEMORY; i++) {
        text spec = {0};
        berlu_act *act = NULL;
        status = spec_with(&spec, berlu_act_spec(s->declared->act), "alpha", ends[i]);
        if (status == BERLU_OK)
            status = berlu_act_make(&act, spec.data);
        *out = status == BERLU_OK && !isnan(*out) ? fmax(*out, berlu_act_lipschitz(act)) : NAN;
        berlu_act_free(act);
        text_free(&spec);
    }
    return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
}

berlu_status diagnosis_parameters(diagnosis *d, engine *e, double *site_metrics)
{
    for (size_t i = 0; i < d->count; i++, site_metrics += SITE_METRICS) {
        TRY(learned_fetch(&d->sites[i], e));
        site_metrics[SITE_ALPHA] = parameter_mean(&d->sites[i], "alpha");
        site_metrics[SITE_EPS] = parameter_mean(&d->sites[i], "eps");
        TRY(lipschitz_of(&d->sites[i], &site_metrics[SITE_LIPSCHITZ]));
    }
    return BERLU_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* `edge` receives the edge of the transition where it is not learned. */
static site_values values_of(const site *s, const float *x, size_t rows, float *edge)
{
    site_values v = {.act = s->declared->act, .x = x, .rows = rows, .edge = edge};
    const learned *eps = learned_named(s, "eps");
    double fixed = eps ? 0 : parameter_mean(s, "eps");
    *edge = isnan(fixed) ? 0 : (float)fixed;
    if (eps)
        v.edge = eps->values, v.edge_stride = eps->count > 1;
    v.call.channels = (size_t)s->declared->channels;
    for (int i = 0; i < s->learned_count; i++) {
        v.call.param[s->learned[i].number].value = s->learned[i].values;
        v.call.param[s->learned[i].number].stride = s->learned[i].count > 1;
    }
    return v;
}

/* The rows of the first block suffice for a histogram. */
static berlu_status site_histograms(diagnosis *d, size_t i, const site_values *v, tb_writer *tb, double wall,
                                    int64_t step)
{
    char tag[512];
    const float *y;
    size_t count;
    TRY(values_outputs(d->parts, v, &y, &count));
    snprintf(tag, sizeof tag, "pre_activation/%s", d->names[i]);
    tb_values(tb, wall, step, tag, v->x, count);
    snprintf(tag, sizeof tag, "activation/%s", d->names[i]);
    tb_values(tb, wall, step, tag, y, count);
    for (int k = 0; k < d->sites[i].learned_count; k++) {
        const learned *l = &d->sites[i].learned[k];
        snprintf(tag, sizeof tag, "%s_by_channel/%s", l->name, d->names[i]);
        if (l->count > 1)
            tb_values(tb, wall, step, tag, l->values, l->count);
    }
    return BERLU_OK;
}

static int64_t rows_most(int64_t channels)
{
    int64_t rows = DIAGNOSE_VALUES / channels;
    return rows > DIAGNOSE_ROWS ? rows : DIAGNOSE_ROWS;
}

berlu_status diagnosis_forward(diagnosis *d, engine *e, double *site_metrics, tb_writer *tb, double wall, int64_t step)
{
    for (size_t i = 0; i < d->count; i++, site_metrics += SITE_METRICS) {
        int64_t rows = engine_site_rows(e, (int)i), channels = d->sites[i].declared->channels;
        float edge;
        for (int f = SITE_LEFT; f < SITE_METRICS; f++)
            site_metrics[f] = f == SITE_LIPSCHITZ ? site_metrics[f] : NAN;
        if (rows > rows_most(channels))
            rows = rows_most(channels);
        assert((size_t)(rows * channels) <= d->capacity);
        berlu_status status = rows > 0 ? engine_site_read(e, (int)i, 0, rows, d->x) : BERLU_ERR_UNSUPPORTED;
        if (status == BERLU_ERR_UNSUPPORTED)
            continue; /* not readable under this `keep` policy: `output` overwrote it */
        TRY(status);
        TRY(learned_fetch(&d->sites[i], e));
        site_values v = values_of(&d->sites[i], d->x, (size_t)rows, &edge);
        TRY(values_measure(d->parts, &v, d->threads, site_metrics));
        if (tb)
            TRY(site_histograms(d, i, &v, tb, wall, step));
    }
    return BERLU_OK;
}

berlu_status diagnosis_backward(diagnosis *d, engine *e, double *site_metrics)
{
    for (size_t i = 0; i < d->count; i++, site_metrics += SITE_METRICS) {
        int bias = d->sites[i].bias;
        size_t count = bias < 0 ? 0 : (size_t)tensor_elements(graph_tensor(d->graph, graph_param(d->graph, bias)));
        double sum = 0;
        if (count == 0 || count > d->capacity)
            continue;
        TRY(engine_get(e, ARRAY_GRADIENT, bias, d->x));
        for (size_t k = 0; k < count; k++)
            sum += (double)d->x[k] * d->x[k];
        site_metrics[SITE_GRAD] = sqrt(sum);
    }
    return BERLU_OK;
}

/* ---- creation -------------------------------------------------------------------------------- */

/* The largest workspace of a call at any site; it depends on channels and strides alone. */
static size_t workspace_most(const diagnosis *d)
{
    size_t most = 0;
    for (size_t i = 0; i < d->count; i++) {
        float edge;
        site_values v = values_of(&d->sites[i], NULL, 1, &edge);
        v.call.rows = 1;
        size_t slope = berlu_act_workspace(v.act, BERLU_ACT_SLOPE, &v.call);
        size_t value = berlu_act_workspace(v.act, BERLU_ACT_FORWARD, &v.call);
        most = slope > most ? slope : most;
        most = value > most ? value : most;
    }
    return most;
}

static berlu_status sites_make(diagnosis *d, size_t *widest)
{
    for (size_t i = 0; i < d->count; i++) {
        site *s = &d->sites[i];
        s->declared = graph_site_at(d->graph, (int)i);
        d->names[i] = s->declared->name;
        *widest = s->declared->channels > (int64_t)*widest ? (size_t)s->declared->channels : *widest;
        TRY(site_learned(d, s));
        TRY(site_bias(d, s));
    }
    return BERLU_OK;
}

berlu_status diagnosis_create(diagnosis **out, const graph *g, int threads)
{
    diagnosis *d = calloc(1, sizeof *d);
    if (!d)
        return berlu_fail_memory(sizeof *d, "the metrics of activation sites");
    d->graph = g;
    d->threads = threads;
    d->count = (size_t)graph_site_count(g);
    d->sites = ARENA_ARRAY(&d->memory, site, d->count + 1);
    d->names = ARENA_ARRAY(&d->memory, const char *, d->count + 1);
    size_t widest = 1;
    berlu_status status;
    TRY_DONE(d->sites && d->names ? sites_make(d, &widest) : BERLU_ERR_MEMORY);
    d->capacity = widest > DIAGNOSE_VALUES / DIAGNOSE_ROWS ? widest * DIAGNOSE_ROWS : DIAGNOSE_VALUES;
    d->x = ARENA_ARRAY(&d->memory, float, d->capacity);
    d->parts = value_parts_make(&d->memory, widest, workspace_most(d));
    TRY_DONE(d->x && d->parts ? BERLU_OK : BERLU_ERR_MEMORY);
    *out = d;
    return BERLU_OK;
done:
    diagnosis_free(d);
    return status;
}
