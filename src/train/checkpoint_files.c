/* checkpoint_files.c - the content of a checkpoint's files. SPDX-License-Identifier: MIT
 *
 * Weights are stored under the names of parameters, moments under the same names with a prefix,
 * counters, sums and site metrics ("figures") as three tensors. Integers and doubles are stored
 * exactly, so a resume has the same bits. */
#include "train/checkpoint_files.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "models/weights.h"
#include "train/metrics.h"
#include "train/settings_hash.h"

/* Format 0 has one counter and one metric per site fewer; the reader fills in what is missing. */
enum { COUNTERS = 8, COUNTERS_0 = 7, SUMS = 3 };
static const char format_name[] = "berlu checkpoint", format_name_0[] = "berlu training state 1";

/* The activations of the network, one line per site or one for all: they cannot be inferred from
 * the weights. */
static berlu_status activations_add(text *out, const graph *g)
{
    int same = 1;
    for (int i = 1; i < graph_site_count(g); i++)
        same &= strcmp(berlu_act_spec(graph_site_at(g, i)->act), berlu_act_spec(graph_site_at(g, 0)->act)) == 0;
    for (int i = 0; i < graph_site_count(g) && !(i > 0 && same); i++)
        text_add(out, "%s%s", i ? "\n" : "", berlu_act_spec(graph_site_at(g, i)->act));
    return text_status(out);
}

berlu_status weights_write(const folder_handle *in, const char *name, engine *e, engine_array array,
                           const st_text *facts, size_t fact_count)
{
    text activations = {0};
    st_text all[1 + WEIGHT_FACTS];
    size_t count = 0;
    assert(fact_count <= WEIGHT_FACTS);
    berlu_status status = activations_add(&activations, engine_graph(e));
    if (activations.length)
        all[count++] = (st_text){CHECKPOINT_ACTIVATION, activations.data};
    for (size_t i = 0; i < fact_count; i++)
        all[count++] = facts[i];
    if (status == BERLU_OK)
        status = weights_save_in(e, array, in, name, all, count);
    text_free(&activations);
    return status;
}

static void counters_put(const train_state *s, int64_t counters[COUNTERS], double sums[SUMS])
{
    const uint64_t c[COUNTERS] = {s->updates, s->epoch,         s->batches,      s->images,
                                  s->norms,   s->metrics_bytes, s->best_updates, s->metrics_sum};
    for (int i = 0; i < COUNTERS; i++)
        counters[i] = (int64_t)c[i];
    sums[0] = s->loss_sum, sums[1] = s->norm_sum, sums[2] = s->best_top1;
}

static void counters_get(train_state *s, const int64_t counters[COUNTERS], const double sums[SUMS])
{
    uint64_t *c[COUNTERS] = {&s->updates, &s->epoch,         &s->batches,      &s->images,
                             &s->norms,   &s->metrics_bytes, &s->best_updates, &s->metrics_sum};
    for (int i = 0; i < COUNTERS; i++)
        *c[i] = (uint64_t)counters[i];
    s->loss_sum = sums[0], s->norm_sum = sums[1], s->best_top1 = sums[2];
}

static const struct {
    engine_array array;
    const char *prefix;
} moments[] = {{ARRAY_MOMENT1, "moment1."}, {ARRAY_MOMENT2, "moment2."}};

/* A parameter's values: in place where they are in host memory, else copied into the arena. */
static berlu_status values_of(const void **out, engine *e, engine_array array, int parameter, size_t count,
                              arena *memory)
{
    if ((*out = engine_host(e, array, parameter)))
        return BERLU_OK;
    float *copy = ARENA_ARRAY(memory, float, count);
    *out = copy;
    return copy ? engine_get(e, array, parameter, copy) : BERLU_ERR_MEMORY;
}

static berlu_status moment_put(engine *e, size_t which, int parameter, arena *memory, st_tensor *out)
{
    const graph *g = engine_graph(e);
    const tensor_info *info = graph_tensor(g, graph_param(g, parameter));
    *out = (st_tensor){.dtype = ST_F32, .rank = info->rank};
    for (int d = 0; d < info->rank; d++)
        out->shape[d] = (uint64_t)info->size[d];
    out->name = arena_printf(memory, "%s%s", moments[which].prefix, info->name);
    if (!out->name)
        return BERLU_ERR_MEMORY;
    return values_of(&out->data, e, moments[which].array, parameter, (size_t)tensor_elements(info), memory);
}

berlu_status state_write(const folder_handle *in, const char *name, engine *e, const train_state *s,
                         const char *settings)
{
    int parameters = graph_param_count(engine_graph(e));
    int64_t counters[COUNTERS];
    double sums[SUMS];
    arena memory = {0};
    berlu_status status = BERLU_ERR_MEMORY;
    st_tensor *list = ARENA_ARRAY(&memory, st_tensor, 2 * (size_t)parameters + 3);
    size_t count = 0;
    if (!list)
        goto done;
    for (size_t m = 0; m < COUNT(moments); m++)
        for (int p = 0; engine_has(e, moments[m].array) && p < parameters; p++)
            if ((status = moment_put(e, m, p, &memory, &list[count++])) != BERLU_OK)
                goto done;
    counters_put(s, counters, sums);
    list[count++] = (st_tensor){.name = "counters", .dtype = ST_I64, .rank = 1, .shape = {COUNTERS}, .data = counters};
    list[count++] = (st_tensor){.name = "sums", .dtype = ST_F64, .rank = 1, .shape = {SUMS}, .data = sums};
    list[count++] = (st_tensor){
        .name = "figures", .dtype = ST_F64, .rank = 1, .shape = {s->site_metric_count}, .data = s->site_metrics};
    assert(count <= 2 * (size_t)parameters + 3);
    char version[16], hash[SETTINGS_HASH] = "";
    snprintf(version, sizeof version, "%d", CHECKPOINT_FORMAT);
    if (settings)
        settings_hash(hash, settings);
    const st_text facts[] = {
        {"format", format_name}, {"version", version}, {"settings_hash", hash}, {"settings", settings}};
    status = safetensors_write_in(in, name, list, count, facts, settings ? COUNT(facts) : 2);
done:
    arena_free(&memory);
    return status;
}

static const st_tensor *tensor_need(const safetensors *file, const char *name, st_dtype dtype, size_t count)
{
    const st_tensor *t = safetensors_find(file, name);
    if (!t || t->dtype != dtype || t->count != count) {
        berlu_fail(BERLU_ERR_INPUT, "%s: '%s' is missing or has another size; the checkpoint belongs to another run",
                   safetensors_path(file), name);
        return NULL;
    }
    return t;
}

berlu_status array_read(engine *e, engine_array array, const safetensors *file, const char *prefix, int set)
{
    const graph *g = engine_graph(e);
    for (int p = 0; p < graph_param_count(g); p++) {
        const tensor_info *info = graph_tensor(g, graph_param(g, p));
        char name[ST_NAME_MAX + 16];
        snprintf(name, sizeof name, "%s%s", prefix, info->name);
        const st_tensor *t = tensor_need(file, name, ST_F32, (size_t)tensor_elements(info));
        if (!t)
            return BERLU_ERR_INPUT;
        if (!set)
            continue;
        float *values = malloc(t->bytes + 1);
        if (!values)
            return berlu_fail_memory(t->bytes, name);
        berlu_status status = st_read_f32(t, values);
        if (status == BERLU_OK)
            status = engine_set(e, array, p, values);
        free(values);
        if (status != BERLU_OK)
            return status;
    }
    return BERLU_OK;
}

berlu_status state_format(const safetensors *file, int *format)
{
    const char *name = safetensors_metadata(file, "format"), *version = safetensors_metadata(file, "version");
    *format = -1;
    if (name && strcmp(name, format_name_0) == 0)
        *format = 0;
    else if (name && strcmp(name, format_name) == 0 && version && version[0] >= '1' && version[0] <= '9')
        *format = atoi(version);
    if (*format < 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: is no training state of berlu", safetensors_path(file));
    if (*format > CHECKPOINT_FORMAT)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: has format %d, and this version of berlu reads formats up to %d; use a later version",
                          safetensors_path(file), *format, CHECKPOINT_FORMAT);
    return BERLU_OK;
}

/* Spreads the site metrics of 0.1.0, SITE_METRICS_0 per site, in place and from the last backwards;
 * metrics it did not have become NaN. */
static void metrics_spread_0(train_state *s)
{
    for (size_t i = s->site_metric_count; i-- > 0;) {
        size_t site = i / SITE_METRICS, which = i % SITE_METRICS;
        s->site_metrics[i] = which < SITE_METRICS_0 ? s->site_metrics[site * SITE_METRICS_0 + which] : NAN;
    }
}

berlu_status state_read(const safetensors *file, engine *e, train_state *s, int set)
{
    int format;
    TRY(state_format(file, &format));
    size_t metrics = format == 0 ? s->site_metric_count / SITE_METRICS * SITE_METRICS_0 : s->site_metric_count;
    size_t count = format == 0 ? COUNTERS_0 : COUNTERS;
    const st_tensor *counters = tensor_need(file, "counters", ST_I64, count);
    const st_tensor *sums = counters ? tensor_need(file, "sums", ST_F64, SUMS) : NULL;
    const st_tensor *figures = sums ? tensor_need(file, "figures", ST_F64, metrics) : NULL;
    if (!figures)
        return BERLU_ERR_INPUT;
    for (size_t m = 0; m < COUNT(moments); m++)
        if (engine_has(e, moments[m].array))
            TRY(array_read(e, moments[m].array, file, moments[m].prefix, set));
    if (!set)
        return BERLU_OK;
    int64_t c[COUNTERS] = {0};
    double d[SUMS];
    TRY(st_read_i64(counters, c));
    TRY(st_read_f64(sums, d));
    TRY(st_read_f64(figures, s->site_metrics));
    counters_get(s, c, d);
    if (format == 0)
        metrics_spread_0(s);
    return BERLU_OK;
}
