/* diagnose.c - see diagnose.h. SPDX-License-Identifier: MIT */
#include "train/diagnose.h"

#include <berlu/act.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* A learned parameter of a site: which one of the activation, and where the engine keeps it. */
typedef struct learned {
    const char *name;
    int number;    /* of the activation's parameter */
    int parameter; /* of the engine */
    size_t count;  /* 1, or one per channel */
    float *values; /* as fetched last */
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
    float *x, *scratch; /* DIAGNOSE_VALUES each: pre-activations; their slopes or outputs */
    unsigned char *alive;
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
        berlu_status status = berlu_act_param(s->declared->act, i, &info);
        if (status != BERLU_OK)
            return status;
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

berlu_status diagnosis_create(diagnosis **out, const graph *g)
{
    diagnosis *d = calloc(1, sizeof *d);
    if (!d)
        return berlu_fail_memory(sizeof *d, "the figures of activation sites");
    d->graph = g;
    d->count = (size_t)graph_site_count(g);
    d->sites = ARENA_ARRAY(&d->memory, site, d->count + 1);
    d->names = ARENA_ARRAY(&d->memory, const char *, d->count + 1);
    d->x = ARENA_ARRAY(&d->memory, float, DIAGNOSE_VALUES);
    d->scratch = ARENA_ARRAY(&d->memory, float, DIAGNOSE_VALUES);
    size_t widest = 1;
    berlu_status status = d->sites && d->names && d->x && d->scratch ? BERLU_OK : BERLU_ERR_MEMORY;
    for (size_t i = 0; status == BERLU_OK && i < d->count; i++) {
        site *s = &d->sites[i];
        s->declared = graph_site_at(g, (int)i);
        d->names[i] = s->declared->name;
        widest = s->declared->channels > (int64_t)widest ? (size_t)s->declared->channels : widest;
        status = site_learned(d, s);
        if (status == BERLU_OK)
            status = site_bias(d, s);
    }
    d->alive = status == BERLU_OK ? ARENA_ARRAY(&d->memory, unsigned char, widest) : NULL;
    if (!d->alive) {
        diagnosis_free(d);
        return status == BERLU_OK ? BERLU_ERR_MEMORY : status;
    }
    *out = d;
    return BERLU_OK;
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

/* ---- parameters ---------------------------------------------------------------------------------------------------- */

static berlu_status learned_fetch(site *s, const engine *e)
{
    for (int i = 0; i < s->learned_count; i++) {
        berlu_status status = engine_get(e, ARRAY_WEIGHT, s->learned[i].parameter, s->learned[i].values);
        if (status != BERLU_OK)
            return status;
    }
    return BERLU_OK;
}

static const learned *learned_named(const site *s, const char *name)
{
    for (int i = 0; i < s->learned_count; i++)
        if (strcmp(s->learned[i].name, name) == 0)
            return &s->learned[i];
    return NULL;
}

/* The parameter's present value: the mean over channels of a learned one; NaN if there is no such parameter. */
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

/* max |f'| is convex in a slope parameter, so the extremes over channels hold the maximum. */
static double lipschitz_of(const site *s)
{
    const learned *l = learned_named(s, "alpha");
    if (!l)
        return berlu_act_lipschitz(s->declared->act);
    float ends[2] = {l->values[0], l->values[0]};
    double most = 0;
    for (size_t i = 1; i < l->count; i++) {
        ends[0] = fminf(ends[0], l->values[i]);
        ends[1] = fmaxf(ends[1], l->values[i]);
    }
    for (int i = 0; i < 2; i++) {
        text spec = {0};
        berlu_act *act = NULL;
        if (spec_with(&spec, berlu_act_spec(s->declared->act), "alpha", ends[i]) == BERLU_OK &&
            berlu_act_make(&act, spec.data) == BERLU_OK)
            most = fmax(most, berlu_act_lipschitz(act));
        else
            most = NAN;
        berlu_act_free(act);
        text_free(&spec);
    }
    return most;
}

berlu_status diagnosis_parameters(diagnosis *d, engine *e, double *figures)
{
    for (size_t i = 0; i < d->count; i++, figures += SITE_FIGURES) {
        berlu_status status = learned_fetch(&d->sites[i], e);
        if (status != BERLU_OK)
            return status;
        figures[SITE_ALPHA] = parameter_mean(&d->sites[i], "alpha");
        figures[SITE_EPS] = parameter_mean(&d->sites[i], "eps");
        figures[SITE_LIPSCHITZ] = lipschitz_of(&d->sites[i]);
    }
    return BERLU_OK;
}

/* ---- values ---------------------------------------------------------------------------------------------------------- */

/* Sums run in LANES lanes that are joined at the end: the same numbers on every machine, and eight at a time. */
enum { LANES = 16 };

static double lanes_sum(const double lanes[LANES])
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

/* Both moments in one pass, around the first value: in double nothing is lost that floats could hold. */
static void moments_of(const float *x, size_t count, double *mean, double *variance)
{
    double sums[LANES] = {0}, squares[LANES] = {0}, shift = count ? x[0] : 0;
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES) {
#pragma omp simd
        for (int k = 0; k < LANES; k++) {
            double v = x[i + (size_t)k] - shift;
            sums[k] += v;
            squares[k] += v * v;
        }
    }
    for (size_t i = whole; i < count; i++) {
        sums[i - whole] += x[i] - shift;
        squares[i - whole] += (x[i] - shift) * (x[i] - shift);
    }
    double off = lanes_sum(sums) / (double)count;
    *mean = shift + off;
    double spread = lanes_sum(squares) / (double)count - off * off;
    *variance = spread < 0 ? 0 : spread; /* a NaN stays one */
}

/* One row; the edges of the transition are the activation's own float, one for all or one per channel. */
static void row_shares(const float *x, size_t channels, const float *edge, size_t stride, size_t *left, size_t *right)
{
    unsigned below = 0, above = 0;
    if (stride == 0) {
        float e = *edge;
#pragma omp simd reduction(+ : below, above)
        for (size_t c = 0; c < channels; c++) {
            below += x[c] < -e;
            above += x[c] > e;
        }
    } else {
#pragma omp simd reduction(+ : below, above)
        for (size_t c = 0; c < channels; c++) {
            below += x[c] < -edge[c];
            above += x[c] > edge[c];
        }
    }
    *left += below;
    *right += above;
}

static void shares(const float *x, size_t rows, size_t channels, const learned *eps, double fixed, double *figures)
{
    size_t left = 0, right = 0;
    const float edge = (float)fixed;
    for (size_t r = 0; r < rows; r++)
        row_shares(x + r * channels, channels, eps ? eps->values : &edge, eps && eps->count > 1, &left, &right);
    double all = (double)(rows * channels);
    figures[SITE_LEFT] = (double)left / all;
    figures[SITE_RIGHT] = (double)right / all;
    figures[SITE_INSIDE] = 1 - (double)(left + right) / all;
}

static double dead_share(diagnosis *d, size_t rows, size_t channels)
{
    size_t alive = 0;
    unsigned char *flags = d->alive;
    memset(flags, 0, channels);
    for (size_t r = 0; r < rows; r++) {
        const float *slope = d->scratch + r * channels;
#pragma omp simd
        for (size_t c = 0; c < channels; c++)
            flags[c] |= !(fabsf(slope[c]) < 1e-3f);
    }
    for (size_t c = 0; c < channels; c++)
        alive += flags[c];
    return 1 - (double)alive / (double)channels;
}

static berlu_status act_apply(diagnosis *d, const site *s, berlu_act_op op, const float *x, size_t rows,
                              size_t channels)
{
    berlu_act_call call = {.rows = rows, .channels = channels, .x = x, .y = d->scratch};
    for (int i = 0; i < s->learned_count; i++) {
        call.param[s->learned[i].number].value = s->learned[i].values;
        call.param[s->learned[i].number].stride = s->learned[i].count > 1;
    }
    size_t bytes = berlu_act_workspace(s->declared->act, op, &call);
    void *room = bytes ? malloc(bytes) : NULL;
    if (bytes && !room)
        return berlu_fail_memory(bytes, "the figures of activation sites");
    call.workspace = room;
    call.workspace_bytes = bytes;
    berlu_exec one = {.threads = 1}; /* waking others costs more than it saves here */
    berlu_status status = berlu_act_run(s->declared->act, op, &call, &one);
    free(room);
    return status;
}

static berlu_status site_look(diagnosis *d, site *s, const float *x, size_t rows, size_t channels, double *figures)
{
    double eps = parameter_mean(s, "eps");
    shares(x, rows, channels, learned_named(s, "eps"), isnan(eps) ? 0 : eps, figures);
    moments_of(x, rows * channels, &figures[SITE_MEAN], &figures[SITE_VAR]);
    berlu_status status = act_apply(d, s, BERLU_ACT_SLOPE, x, rows, channels);
    if (status != BERLU_OK)
        return status;
    figures[SITE_DEAD] = dead_share(d, rows, channels);
    status = act_apply(d, s, BERLU_ACT_FORWARD, x, rows, channels);
    if (status == BERLU_OK)
        moments_of(d->scratch, rows * channels, &figures[SITE_Y_MEAN], &figures[SITE_Y_VAR]);
    return status;
}

/* A picture of a distribution needs no half million of values: the first whole rows of HISTOGRAM_VALUES. */
static void site_histograms(const diagnosis *d, size_t i, size_t values, tb_writer *tb, double wall, int64_t step)
{
    char tag[512];
    size_t channels = (size_t)d->sites[i].declared->channels, most = HISTOGRAM_VALUES / channels * channels;
    if (most > 0 && values > most)
        values = most;
    snprintf(tag, sizeof tag, "pre_activation/%s", d->names[i]);
    tb_values(tb, wall, step, tag, d->x, values);
    snprintf(tag, sizeof tag, "activation/%s", d->names[i]);
    tb_values(tb, wall, step, tag, d->scratch, values);
    for (int k = 0; k < d->sites[i].learned_count; k++) {
        const learned *l = &d->sites[i].learned[k];
        snprintf(tag, sizeof tag, "%s_by_channel/%s", l->name, d->names[i]);
        if (l->count > 1)
            tb_values(tb, wall, step, tag, l->values, l->count);
    }
}

berlu_status diagnosis_forward(diagnosis *d, engine *e, double *figures, tb_writer *tb, double wall, int64_t step)
{
    for (size_t i = 0; i < d->count; i++, figures += SITE_FIGURES) {
        int64_t rows = engine_site_rows(e, (int)i), channels = d->sites[i].declared->channels;
        for (int f = SITE_LEFT; f < SITE_LIPSCHITZ; f++)
            figures[f] = NAN;
        if (rows > DIAGNOSE_VALUES / channels)
            rows = DIAGNOSE_VALUES / channels;
        berlu_status status = rows > 0 ? engine_site_read(e, (int)i, 0, rows, d->x) : BERLU_ERR_UNSUPPORTED;
        if (status == BERLU_ERR_UNSUPPORTED)
            continue; /* the plan overwrote it: keep `output` */
        if (status == BERLU_OK)
            status = learned_fetch(&d->sites[i], e);
        if (status == BERLU_OK)
            status = site_look(d, &d->sites[i], d->x, (size_t)rows, (size_t)channels, figures);
        if (status != BERLU_OK)
            return status;
        if (tb)
            site_histograms(d, i, (size_t)(rows * channels), tb, wall, step);
    }
    return BERLU_OK;
}

berlu_status diagnosis_backward(diagnosis *d, engine *e, double *figures)
{
    for (size_t i = 0; i < d->count; i++, figures += SITE_FIGURES) {
        int bias = d->sites[i].bias;
        size_t count = bias < 0 ? 0 : (size_t)tensor_elements(graph_tensor(d->graph, graph_param(d->graph, bias)));
        double sum = 0;
        if (count == 0 || count > DIAGNOSE_VALUES)
            continue;
        berlu_status status = engine_get(e, ARRAY_GRADIENT, bias, d->scratch);
        if (status != BERLU_OK)
            return status;
        for (size_t k = 0; k < count; k++)
            sum += (double)d->scratch[k] * d->scratch[k];
        figures[SITE_GRAD] = sqrt(sum);
    }
    return BERLU_OK;
}
