/* engine_params.c - parameters and what belongs to them, activation sites, figures. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "passes/engine_inside.h"

const graph *engine_graph(const engine *e)
{
    return e->model;
}

int engine_has(const engine *e, engine_array array)
{
    return e->store->array[array] != NULL;
}

/* Where parameter i of an array begins; NULL with the text set. */
static void *array_at(const engine *e, engine_array array, int i)
{
    static const char *const names[ARRAY_COUNT] = {"weights", "gradients", "first moments", "second moments",
                                                   "average"};
    if (i < 0 || i >= e->table.count || !e->store->array[array]) {
        berlu_fail(BERLU_ERR_ARG, "engine: no %s of parameter %d", names[array], i);
        return NULL;
    }
    if (array != ARRAY_GRADIENT)
        return (char *)e->store->array[array] + e->spans[i].offset * (int64_t)e->machine->bytes_of(ROLE_WEIGHT);
    if (e->spans[i].gradient < 0) {
        berlu_fail(BERLU_ERR_ARG, "engine: '%s' has no gradient here", graph_tensor(e->g, graph_param(e->g, i))->name);
        return NULL;
    }
    void *base = e->options.accumulate ? e->store->sum : e->store->array[array];
    return (char *)base + e->spans[i].gradient * (int64_t)e->machine->bytes_of(ROLE_GRADIENT);
}

berlu_status engine_get(const engine *e, engine_array array, int parameter, float *out)
{
    const void *from = array_at(e, array, parameter);
    if (!from)
        return BERLU_ERR_ARG;
    e->machine->get(out, from, (size_t)e->spans[parameter].count);
    return BERLU_OK;
}

berlu_status engine_set(engine *e, engine_array array, int parameter, const float *values)
{
    void *to = array_at(e, array, parameter);
    if (!to)
        return BERLU_ERR_ARG;
    e->machine->put(to, values, (size_t)e->spans[parameter].count);
    return BERLU_OK;
}

berlu_status engine_get_f64(const engine *e, engine_array array, int parameter, double *out)
{
    const void *from = array_at(e, array, parameter);
    if (!from)
        return BERLU_ERR_ARG;
    e->machine->get_f64(out, from, (size_t)e->spans[parameter].count);
    return BERLU_OK;
}

berlu_status engine_set_f64(engine *e, engine_array array, int parameter, const double *values)
{
    void *to = array_at(e, array, parameter);
    if (!to)
        return BERLU_ERR_ARG;
    e->machine->put_f64(to, values, (size_t)e->spans[parameter].count);
    return BERLU_OK;
}

float *engine_host(engine *e, engine_array array, int parameter)
{
    return e->machine->host_f32 ? array_at(e, array, parameter) : NULL;
}

/* Both by blocks through a small buffer of the host's: exact in either direction, and no second copy of the weights. */
enum { COPY_BLOCK = 4096 };

void engine_sync_ema(engine *e)
{
    double block[COPY_BLOCK];
    size_t size = e->machine->bytes_of(ROLE_WEIGHT), count = e->store->bytes / size;
    for (size_t at = 0; e->store->array[ARRAY_EMA] && at < count; at += COPY_BLOCK) {
        size_t n = count - at < COPY_BLOCK ? count - at : COPY_BLOCK;
        e->machine->get_f64(block, (char *)e->store->array[ARRAY_WEIGHT] + at * size, n);
        e->machine->put_f64((char *)e->store->array[ARRAY_EMA] + at * size, block, n);
    }
}

void engine_swap_ema(engine *e)
{
    double weight[COPY_BLOCK], average[COPY_BLOCK];
    size_t size = e->machine->bytes_of(ROLE_WEIGHT), count = e->store->bytes / size;
    for (size_t at = 0; e->store->array[ARRAY_EMA] && at < count; at += COPY_BLOCK) {
        size_t n = count - at < COPY_BLOCK ? count - at : COPY_BLOCK;
        char *w = (char *)e->store->array[ARRAY_WEIGHT] + at * size,
             *a = (char *)e->store->array[ARRAY_EMA] + at * size;
        e->machine->get_f64(weight, w, n);
        e->machine->get_f64(average, a, n);
        e->machine->put_f64(w, average, n);
        e->machine->put_f64(a, weight, n);
    }
}

/* ---- activation sites ---- */

int64_t engine_site_rows(const engine *e, int site)
{
    const graph_site *s = graph_site_at(e->g, site);
    return s->values / s->channels * e->options.batch;
}

/* The bias that a raw site still lacks; TENSOR_NONE where x is whole. */
static tensor site_bias(const engine *e, tensor x)
{
    int producer = graph_tensor(e->g, x)->producer;
    const node *n = producer < 0 ? NULL : graph_node(e->g, producer);
    return n && n->attr.raw ? n->in[2] : TENSOR_NONE;
}

berlu_status engine_site_read(const engine *e, int site, int64_t first, int64_t count, float *out)
{
    if (site < 0 || site >= graph_site_count(e->model))
        return berlu_fail(BERLU_ERR_ARG, "engine: no activation site %d", site);
    const graph_site *s = graph_site_at(e->g, site);
    const plan_place *place = &e->plan.places[s->x];
    if (place->area != AREA_ARENA || e->plan.places[place->root].last < e->plan.boundary)
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: this plan does not hold what went into the activation", s->name);
    if (first < 0 || count < 0 || first + count > engine_site_rows(e, site))
        return berlu_fail(BERLU_ERR_ARG, "%s: rows %lld to %lld are not there", s->name, (long long)first,
                          (long long)(first + count));
    size_t size = e->machine->bytes_of(graph_tensor(e->g, s->x)->role);
    const char *x = engine_data(e, s->x);
    e->machine->get(out, x + (size_t)(first * s->channels) * size, (size_t)(count * s->channels));
    tensor bias = site_bias(e, s->x);
    if (bias == TENSOR_NONE)
        return BERLU_OK;
    enum { PART = 1024 };
    float part[PART];
    for (int64_t c = 0; c < s->channels; c += PART) {
        int64_t n = s->channels - c < PART ? s->channels - c : PART;
        e->machine->get(part, (char *)engine_data(e, bias) + (size_t)c * e->machine->bytes_of(ROLE_WEIGHT), (size_t)n);
        for (int64_t r = 0; r < count; r++)
            for (int64_t i = 0; i < n; i++)
                out[r * s->channels + c + i] += part[i];
    }
    return BERLU_OK;
}

/* ---- figures ---- */

engine_memory engine_memory_use(const engine *e)
{
    const uint64_t *bytes = e->plan.bytes;
    engine_memory m = {.parameters = e->owns_store ? e->store->bytes : 0,
                       .arena = bytes[AREA_ARENA],
                       .kept = e->plan.kept,
                       .input = bytes[AREA_FEED],
                       .workspace = e->workspace_bytes,
                       .library = e->library_bytes,
                       .allocated = e->allocated};
    if (e->options.mode == ENGINE_TRAIN) {
        m.gradients = e->store->gradient_bytes * (e->options.accumulate ? 2 : 1);
        m.moments =
            e->store->bytes * ((e->store->array[ARRAY_MOMENT1] != NULL) + (e->store->array[ARRAY_MOMENT2] != NULL));
        m.ema = e->store->array[ARRAY_EMA] ? e->store->bytes : 0;
    }
    m.total = m.parameters + m.gradients + m.moments + m.ema + m.arena + m.input + m.workspace + m.library;
    return m;
}

static const char *const keep_names[] = {"input", "both", "output", NULL};

const char *engine_keep_name(engine_keep keep)
{
    return keep_names[keep];
}

berlu_status engine_keep_parse(engine_keep *out, const char *name)
{
    for (int i = 0; keep_names[i]; i++)
        if (strcmp(name, keep_names[i]) == 0) {
            *out = (engine_keep)i;
            return BERLU_OK;
        }
    return berlu_fail(BERLU_ERR_ARG, "keep '%s': input, both or output is possible", name);
}
