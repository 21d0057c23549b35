/* engine_params.c - parameters and what belongs to them, activation sites, figures. SPDX-License-Identifier: MIT */

#include "engine/engine_internal.h"

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
        return (char *)e->store->array[array] + e->spans[i].offset * (int64_t)e->backend->bytes_of(ROLE_WEIGHT);
    if (e->spans[i].gradient < 0) {
        berlu_fail(BERLU_ERR_ARG, "engine: '%s' has no gradient here", graph_tensor(e->g, graph_param(e->g, i))->name);
        return NULL;
    }
    void *base = e->options.accumulate ? e->store->sum : e->store->array[array];
    return (char *)base + e->spans[i].gradient * (int64_t)e->backend->bytes_of(ROLE_GRADIENT);
}

berlu_status engine_get(const engine *e, engine_array array, int parameter, float *out)
{
    const void *from = array_at(e, array, parameter);
    if (!from)
        return BERLU_ERR_ARG;
    e->backend->get(out, from, (size_t)e->spans[parameter].count);
    return BERLU_OK;
}

berlu_status engine_set(engine *e, engine_array array, int parameter, const float *values)
{
    void *to = array_at(e, array, parameter);
    if (!to)
        return BERLU_ERR_ARG;
    e->backend->put(to, values, (size_t)e->spans[parameter].count);
    return BERLU_OK;
}

berlu_status engine_get_f64(const engine *e, engine_array array, int parameter, double *out)
{
    const void *from = array_at(e, array, parameter);
    if (!from)
        return BERLU_ERR_ARG;
    e->backend->get_f64(out, from, (size_t)e->spans[parameter].count);
    return BERLU_OK;
}

berlu_status engine_set_f64(engine *e, engine_array array, int parameter, const double *values)
{
    void *to = array_at(e, array, parameter);
    if (!to)
        return BERLU_ERR_ARG;
    e->backend->put_f64(to, values, (size_t)e->spans[parameter].count);
    return BERLU_OK;
}

float *engine_host(engine *e, engine_array array, int parameter)
{
    return e->backend->host_f32 ? array_at(e, array, parameter) : NULL;
}

/* Both by blocks through a small buffer of the host's: exact in either direction, and no second copy of the weights. */
enum { COPY_BLOCK = 4096 };

void engine_sync_ema(engine *e)
{
    double block[COPY_BLOCK];
    size_t size = e->backend->bytes_of(ROLE_WEIGHT), count = e->store->bytes / size;
    for (size_t at = 0; e->store->array[ARRAY_EMA] && at < count; at += COPY_BLOCK) {
        size_t n = count - at < COPY_BLOCK ? count - at : COPY_BLOCK;
        e->backend->get_f64(block, (char *)e->store->array[ARRAY_WEIGHT] + at * size, n);
        e->backend->put_f64((char *)e->store->array[ARRAY_EMA] + at * size, block, n);
    }
}

void engine_swap_ema(engine *e)
{
    double weight[COPY_BLOCK], average[COPY_BLOCK];
    size_t size = e->backend->bytes_of(ROLE_WEIGHT), count = e->store->bytes / size;
    for (size_t at = 0; e->store->array[ARRAY_EMA] && at < count; at += COPY_BLOCK) {
        size_t n = count - at < COPY_BLOCK ? count - at : COPY_BLOCK;
        char *w = (char *)e->store->array[ARRAY_WEIGHT] + at * size,
             *a = (char *)e->store->array[ARRAY_EMA] + at * size;
        e->backend->get_f64(weight, w, n);
        e->backend->get_f64(average, a, n);
        e->backend->put_f64(w, average, n);
        e->backend->put_f64(a, weight, n);
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

/* Does x still stand where it was written when the forward is over? A result that took over its memory lies at the same
 * address, and nothing else can: that memory lives beyond the forward. */
static int site_held(const engine *e, tensor x)
{
    const plan_place *place = &e->plan.places[x];
    if (place->area != AREA_ARENA || e->plan.places[place->root].last < e->plan.boundary)
        return 0;
    for (int i = graph_tensor(e->g, x)->producer + 1; i < e->plan.boundary; i++) {
        const node *n = graph_node(e->g, i);
        if (!(op_rules[n->op].flags & RULE_VIEW) && n->out[0] != TENSOR_NONE &&
            engine_data(e, n->out[0]) == engine_data(e, x))
            return 0;
    }
    return 1;
}

berlu_status engine_site_read(const engine *e, int site, int64_t first, int64_t count, float *out)
{
    if (site < 0 || site >= graph_site_count(e->model))
        return berlu_fail(BERLU_ERR_ARG, "engine: no activation site %d", site);
    const graph_site *s = graph_site_at(e->g, site);
    if (!site_held(e, s->x))
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: this plan does not hold what went into the activation", s->name);
    if (first < 0 || count < 0 || first + count > engine_site_rows(e, site))
        return berlu_fail(BERLU_ERR_ARG, "%s: rows %lld to %lld are not there", s->name, (long long)first,
                          (long long)(first + count));
    size_t size = e->backend->bytes_of(graph_tensor(e->g, s->x)->role);
    const char *x = engine_data(e, s->x);
    e->backend->get(out, x + (size_t)(first * s->channels) * size, (size_t)(count * s->channels));
    tensor bias = site_bias(e, s->x);
    if (bias == TENSOR_NONE)
        return BERLU_OK;
    enum { PART = 1024 };
    float part[PART];
    for (int64_t c = 0; c < s->channels; c += PART) {
        int64_t n = s->channels - c < PART ? s->channels - c : PART;
        e->backend->get(part, (char *)engine_data(e, bias) + (size_t)c * e->backend->bytes_of(ROLE_WEIGHT), (size_t)n);
        for (int64_t r = 0; r < count; r++)
            for (int64_t i = 0; i < n; i++)
                out[r * s->channels + c + i] += part[i];
    }
    return BERLU_OK;
}

/* ---- figures ---- */

/* From the plan and the options alone, so that it holds before anything is allocated. */
engine_memory engine_memory_use(const engine *e)
{
    const engine_options *o = &e->options;
    const uint64_t *bytes = e->plan.bytes;
    engine_memory m = {.parameters = o->share ? 0 : bytes[AREA_WEIGHT],
                       .arena = bytes[AREA_ARENA],
                       .kept = e->plan.kept,
                       .input = bytes[AREA_FEED],
                       .workspace = e->workspace_bytes,
                       .library = e->library_bytes,
                       .allocated = e->allocated};
    if (o->mode == ENGINE_TRAIN) {
        m.gradients = bytes[AREA_GRADIENT] * (o->accumulate ? 2 : 1);
        m.moments = o->no_update ? 0 : bytes[AREA_WEIGHT] * (o->optimizer == OPTIMIZER_ADAMW ? 2 : 1);
        m.ema = o->ema ? bytes[AREA_WEIGHT] : 0;
    }
    m.total = m.parameters + m.gradients + m.moments + m.ema + m.arena + m.input + m.workspace + m.library;
    for (int i = 0; i < graph_site_count(e->g); i++)
        m.site_values += (uint64_t)(engine_site_rows(e, i) * graph_site_at(e->g, i)->channels);
    return m;
}

static const char *const keep_names[] = {"input", "both", "output"};

const char *engine_keep_name(engine_keep keep)
{
    return keep_names[keep];
}
