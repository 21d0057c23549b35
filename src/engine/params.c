/* params.c - parameters and their arrays, activation sites, memory use.
 * SPDX-License-Identifier: MIT
 *
 * Device memory is moved as bytes and converted on the host. Setting a weight makes the copies in
 * the branch's dtype stale; the next forward refreshes them. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/engine_internal.h"

const graph *engine_graph(const engine *e)
{
    return e->model;
}

int engine_has(const engine *e, engine_array array)
{
    return e->store->array[array] != NULL;
}

device *engine_device(const engine *e)
{
    return e->device;
}

const backend *engine_backend(const engine *e)
{
    return e->backend;
}

static tensor_dtype array_dtype(const engine *e, engine_array array)
{
    return e->dtype[array == ARRAY_GRADIENT ? ROLE_GRADIENT : ROLE_WEIGHT];
}

/* First element of parameter i in an array; NULL with the error text set. */
static void *array_at(const engine *e, engine_array array, int i)
{
    static const char *const names[ARRAY_COUNT] = {"weights", "gradients", "first moments", "second moments",
                                                   "average"};
    if (i < 0 || i >= e->table.count || !e->store->array[array]) {
        berlu_fail(BERLU_ERR_ARG, "engine: no %s of parameter %d", names[array], i);
        return NULL;
    }
    if (array != ARRAY_GRADIENT)
        return (char *)e->store->array[array] + e->spans[i].offset * (int64_t)dtype_bytes(array_dtype(e, array));
    if (e->spans[i].gradient < 0) {
        berlu_fail(BERLU_ERR_ARG, "engine: '%s' has no gradient here", graph_tensor(e->g, graph_param(e->g, i))->name);
        return NULL;
    }
    return (char *)e->store->array[array] + e->spans[i].gradient * (int64_t)dtype_bytes(array_dtype(e, array));
}

/* Downloads `count` elements and converts them to f32 or, where `wide`, to f64. */
static berlu_status elements_get(const engine *e, void *out, const void *from, tensor_dtype dtype, size_t count,
                                 int wide)
{
    tensor_dtype wanted = wide ? DTYPE_F64 : DTYPE_F32;
    size_t bytes = count * dtype_bytes(dtype);
    if (dtype == wanted)
        return e->backend->download(e->device, out, from, bytes);
    void *raw = malloc(bytes ? bytes : 1);
    if (!raw)
        return berlu_fail_memory(bytes, "elements to convert");
    berlu_status status = e->backend->download(e->device, raw, from, bytes);
    if (status == BERLU_OK && wide)
        dtype_to_f64(out, raw, dtype, count);
    else if (status == BERLU_OK)
        dtype_to_f32(out, raw, dtype, count);
    free(raw);
    return status;
}

static berlu_status array_get(const engine *e, engine_array array, int parameter, void *out, int wide)
{
    const void *from = array_at(e, array, parameter);
    if (!from)
        return BERLU_ERR_ARG;
    return elements_get(e, out, from, array_dtype(e, array), (size_t)e->spans[parameter].count, wide);
}

static berlu_status array_set(engine *e, engine_array array, int parameter, const void *values, int wide)
{
    void *to = array_at(e, array, parameter);
    if (!to)
        return BERLU_ERR_ARG;
    tensor_dtype dtype = array_dtype(e, array);
    size_t count = (size_t)e->spans[parameter].count, bytes = count * dtype_bytes(dtype);
    e->store->shadow_stale = 1;
    if (dtype == (wide ? DTYPE_F64 : DTYPE_F32))
        return e->backend->upload(e->device, to, values, bytes);
    void *raw = malloc(bytes ? bytes : 1);
    if (!raw)
        return berlu_fail_memory(bytes, "elements to convert");
    if (wide)
        dtype_from_f64(raw, dtype, values, count);
    else
        dtype_from_f32(raw, dtype, values, count);
    berlu_status status = e->backend->upload(e->device, to, raw, bytes);
    free(raw);
    return status;
}

berlu_status engine_get(const engine *e, engine_array array, int parameter, float *out)
{
    return array_get(e, array, parameter, out, 0);
}

berlu_status engine_set(engine *e, engine_array array, int parameter, const float *values)
{
    return array_set(e, array, parameter, values, 0);
}

berlu_status engine_get_f64(const engine *e, engine_array array, int parameter, double *out)
{
    return array_get(e, array, parameter, out, 1);
}

berlu_status engine_set_f64(engine *e, engine_array array, int parameter, const double *values)
{
    return array_set(e, array, parameter, values, 1);
}

float *engine_host(engine *e, engine_array array, int parameter)
{
    int reachable = e->backend->host_memory && array_dtype(e, array) == DTYPE_F32;
    return reachable ? array_at(e, array, parameter) : NULL;
}

static berlu_status span_bound(engine *e, int parameter, float *values)
{
    const param_span *span = &e->spans[parameter];
    TRY(engine_get(e, ARRAY_WEIGHT, parameter, values));
    for (int64_t i = 0; i < span->count; i++) {
        values[i] = values[i] < span->low ? span->low : values[i];
        values[i] = values[i] > span->high ? span->high : values[i];
    }
    return engine_set(e, ARRAY_WEIGHT, parameter, values);
}

berlu_status engine_apply_bounds(engine *e)
{
    for (int i = 0; i < e->table.count; i++) {
        if (!(e->spans[i].low > -INFINITY) && !(e->spans[i].high < INFINITY))
            continue;
        size_t bytes = (size_t)e->spans[i].count * sizeof(float);
        float *values = malloc(bytes);
        berlu_status status = values ? span_bound(e, i, values) : berlu_fail_memory(bytes, "bounds of a parameter");
        free(values);
        if (status != BERLU_OK)
            return status;
    }
    return BERLU_OK;
}

berlu_status engine_sync_ema(engine *e)
{
    void *const *array = e->store->array;
    return array[ARRAY_EMA] ? e->backend->copy(e->device, array[ARRAY_EMA], array[ARRAY_WEIGHT], e->store->bytes)
                            : BERLU_OK;
}

/* In pieces through the kernels' workspace: without a third array and without the host. */
berlu_status engine_swap_ema(engine *e)
{
    char *weight = e->store->array[ARRAY_WEIGHT], *average = e->store->array[ARRAY_EMA];
    size_t piece = e->workspace_bytes / 64 * 64, total = average ? e->store->bytes : 0;
    assert(piece > 0 || total == 0);
    void *scratch = e->workspace;
    berlu_status (*copy)(device *, void *, const void *, size_t) = e->backend->copy;
    for (size_t at = 0; at < total; at += piece) {
        size_t bytes = total - at < piece ? total - at : piece;
        TRY(copy(e->device, scratch, weight + at, bytes));
        TRY(copy(e->device, weight + at, average + at, bytes));
        TRY(copy(e->device, average + at, scratch, bytes));
    }
    e->store->shadow_stale = 1;
    return BERLU_OK;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static const engine_array snapshot_arrays[] = {ARRAY_WEIGHT, ARRAY_MOMENT1, ARRAY_MOMENT2, ARRAY_EMA};

size_t engine_snapshot_bytes(const engine *e)
{
    size_t arrays = 0;
    for (size_t i = 0; i < COUNT(snapshot_arrays); i++)
        arrays += engine_has(e, snapshot_arrays[i]);
    return arrays * e->store->bytes;
}

berlu_status engine_snapshot_take(const engine *e, void *to)
{
    char *at = to;
    for (size_t i = 0; i < COUNT(snapshot_arrays); i++) {
        if (!engine_has(e, snapshot_arrays[i]))
            continue;
        TRY(e->backend->download(e->device, at, e->store->array[snapshot_arrays[i]], e->store->bytes));
        at += e->store->bytes;
    }
    return BERLU_OK;
}

berlu_status engine_snapshot_put(engine *e, const engine *like, const void *from)
{
    const char *at = from;
    assert(e->table.count == like->table.count && like->dtype[ROLE_WEIGHT] == DTYPE_F32);
    for (size_t i = 0; i < COUNT(snapshot_arrays); i++) {
        if (!engine_has(like, snapshot_arrays[i]))
            continue;
        for (int p = 0; p < e->table.count; p++)
            TRY(engine_set(e, snapshot_arrays[i], p, (const float *)at + like->spans[p].offset));
        at += like->store->bytes;
    }
    return BERLU_OK;
}

/* ---- activation sites ------------------------------------------------------------------------ */

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

/* Is x still in memory at the end of the forward? Only an output that overwrote it in place can
 * have its address: the lifetime of that memory extends beyond the forward. */
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
    tensor_dtype dtype = graph_tensor(e->g, s->x)->dtype;
    const char *x = engine_data(e, s->x);
    TRY(elements_get(e, out, x + (size_t)(first * s->channels) * dtype_bytes(dtype), dtype,
                     (size_t)(count * s->channels), 0));
    tensor bias = site_bias(e, s->x);
    enum { PART = 1024 };
    float part[PART];
    for (int64_t c = 0; c < s->channels && bias != TENSOR_NONE; c += PART) {
        int64_t n = s->channels - c < PART ? s->channels - c : PART;
        tensor_dtype type = graph_tensor(e->g, bias)->dtype;
        const char *from = (const char *)engine_data(e, bias) + (size_t)c * dtype_bytes(type);
        TRY(elements_get(e, part, from, type, (size_t)n, 0));
        for (int64_t r = 0; r < count; r++)
            for (int64_t i = 0; i < n; i++)
                out[r * s->channels + c + i] += part[i];
    }
    return BERLU_OK;
}

/* ---- memory use ------------------------------------------------------------------------------ */

/* From the plan and the options alone, so that it holds before anything is allocated. */
engine_memory engine_memory_use(const engine *e)
{
    const engine_options *o = &e->options;
    const uint64_t *bytes = e->plan.bytes;
    engine_memory m = {.parameters = o->share ? 0 : bytes[AREA_WEIGHT],
                       .arena = bytes[AREA_ARENA],
                       .kept = e->plan.kept,
                       .input = bytes[AREA_FEED],
                       .shadow = o->share ? 0 : bytes[AREA_SHADOW],
                       .workspace = e->workspace_bytes + e->prepared_bytes,
                       .library = e->library_bytes,
                       .allocated = e->allocated};
    if (o->mode == ENGINE_TRAIN) {
        m.gradients = bytes[AREA_GRADIENT] * (uint64_t)(1 + sum_levels_for(o->accumulate));
        m.moments = o->no_update ? 0 : bytes[AREA_WEIGHT] * (o->optimizer == OPTIMIZER_ADAMW ? 2 : 1);
        m.ema = o->ema ? bytes[AREA_WEIGHT] : 0;
    }
    m.total = m.parameters + m.gradients + m.moments + m.ema + m.shadow + m.arena + m.input + m.workspace + m.library;
    for (int i = 0; i < graph_site_count(e->g); i++)
        m.site_values += (uint64_t)(engine_site_rows(e, i) * graph_site_at(e->g, i)->channels);
    return m;
}

static const char *const keep_names[] = {"input", "both", "output"};

const char *engine_keep_name(engine_keep keep)
{
    return keep_names[keep];
}
