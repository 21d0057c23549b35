/* kernel.c - the loops around a formula, compiled once per activation and instruction set. SPDX-License-Identifier: MIT
 *
 * The build passes the formula's header as ACT_FORMULA and the name of the table as ACT_TABLE; no activation is named
 * here. Loops take the formula's functions as arguments that the compiler inlines, so one text serves every op, and
 * dtype and the number of sums are constants inside each copy.
 *
 * Two loops per op. The *groups* loop does whole groups of vectors, all loads of a group before its stores (that order is
 * worth some percent of memory speed), with sums in registers. The *tile* loop does everything else: tails, bias,
 * parameters and sums per channel, scale and center. Both use the same formula, so they agree to the bit.
 * What is summed in which order is told in kernels.h; read unit_run() at the end first. */
#include <string.h>

#include "act/kernels.h"
#include ACT_FORMULA

#ifndef ACT_COMMON
#define ACT_COMMON(k) 1
#endif

/* The formula's constants and what scale= and center= need: g(x) = (f(scale x) - f(0)) / scale. */
typedef struct consts {
    act_consts f;
    v_f32 scale, offset;
#if ACT_PARAMS
    v_f32 param_offset[ACT_PARAMS];
#endif
} consts;
_Static_assert(sizeof(consts) <= ACT_CONSTS_BYTES, "ACT_CONSTS_BYTES is too small for this formula");

enum {
    PARAMS = ACT_PARAMS,
    GROUPS = V_LANES > 1, /* scalar is the reference: it walks in tiles alone */
    MAP_GROUP = 4,        /* vectors in flight; 16 registers of AVX2 hold only 2 in a backward */
    SUM_GROUP = V_LANES == 16 ? 4 : V_GROUP,
    TILE = 512 /* elements of one tile: a few buffers of it stay in the first cache */
};

/* Arrays of vectors must become registers, so loops over them are unrolled at any level of optimisation. */
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef v_f32 (*map_fn)(v_f32, const act_consts *);
typedef void (*params_fn)(v_f32, const act_consts *, v_f32 *);

/* ---- Memory by dtype; `dtype` is a constant wherever speed matters --------------------------------------------------- */

V_FN v_f32 load(const void *p, berlu_dtype dtype, size_t i)
{
    if (dtype == BERLU_F32)
        return v_load((const float *)p + i);
    if (dtype == BERLU_BF16)
        return v_load_bf16((const uint16_t *)p + i);
    return v_load_f16((const uint16_t *)p + i);
}

V_FN v_f32 load_n(const void *p, berlu_dtype dtype, size_t i, size_t n)
{
    if (n >= V_LANES)
        return load(p, dtype, i);
    if (dtype == BERLU_F32)
        return v_load_n((const float *)p + i, n);
    if (dtype == BERLU_BF16)
        return v_load_n_bf16((const uint16_t *)p + i, n);
    return v_load_n_f16((const uint16_t *)p + i, n);
}

V_FN void store(void *p, berlu_dtype dtype, size_t i, v_f32 a)
{
    if (dtype == BERLU_F32)
        v_store((float *)p + i, a);
    else if (dtype == BERLU_BF16)
        v_store_bf16((uint16_t *)p + i, a);
    else
        v_store_f16((uint16_t *)p + i, a);
}

V_FN void stream(void *p, berlu_dtype dtype, size_t i, v_f32 a)
{
    if (dtype == BERLU_F32)
        v_stream((float *)p + i, a);
    else if (dtype == BERLU_BF16)
        v_stream_bf16((uint16_t *)p + i, a);
    else
        v_stream_f16((uint16_t *)p + i, a);
}

V_FN void store_n(void *p, berlu_dtype dtype, size_t i, v_f32 a, size_t n)
{
    if (n >= V_LANES)
        store(p, dtype, i, a);
    else if (dtype == BERLU_F32)
        v_store_n((float *)p + i, a, n);
    else if (dtype == BERLU_BF16)
        v_store_n_bf16((uint16_t *)p + i, a, n);
    else
        v_store_n_f16((uint16_t *)p + i, a, n);
}

V_FN v_f32 load_f32(const float *p, size_t n)
{
    return n >= V_LANES ? v_load(p) : v_load_n(p, n);
}

V_FN void store_f32(float *p, v_f32 a, size_t n)
{
    if (n >= V_LANES)
        v_store(p, a);
    else
        v_store_n(p, a, n);
}

/* ---- Constants ------------------------------------------------------------------------------------------------------- */

V_FN consts consts_at(const act_job *job, size_t channel, size_t n)
{
    consts k;
#if ACT_PARAMS
    v_f32 params[PARAMS];
    for (int p = 0; p < PARAMS; p++)
        params[p] = job->per_channel[p] ? load_f32(job->param[p] + channel, n) : v_set(*job->param[p]);
    k.f = act_prepare(params, job->shape);
    v_f32 at_zero[PARAMS];
    act_param_slopes(v_zero(), &k.f, at_zero);
    for (int p = 0; p < PARAMS; p++)
        k.param_offset[p] = job->center ? at_zero[p] : v_zero();
#else
    (void)channel;
    (void)n;
    k.f = act_prepare(NULL, job->shape);
#endif
    k.scale = v_set(job->scale);
    k.offset = job->center ? act_value(v_zero(), &k.f) : v_zero();
    return k;
}

static void prepare(act_job *job)
{
    consts *k = job->consts;
    size_t channels = job->vector_consts ? job->channels : 1;
    for (size_t c = 0; c < channels; c += V_LANES)
        *k++ = consts_at(job, c, channels - c);
}

/* ---- The function with scale and center around it -------------------------------------------------------------------- */

V_FN v_f32 full_value(v_f32 x, const consts *k, int plain)
{
    if (plain)
        return act_value(x, &k->f);
    return v_div(v_sub(act_value(v_mul(x, k->scale), &k->f), k->offset), k->scale);
}

V_FN v_f32 full_slope(v_f32 x, const consts *k, int plain)
{
    return act_slope(plain ? x : v_mul(x, k->scale), &k->f);
}

V_FN v_f32 full_curve(v_f32 x, const consts *k, int plain)
{
    return plain ? act_curve(x, &k->f) : v_mul(k->scale, act_curve(v_mul(x, k->scale), &k->f));
}

#if ACT_PARAMS
V_FN void full_param_slopes(v_f32 x, const consts *k, int plain, v_f32 *out)
{
    act_param_slopes(plain ? x : v_mul(x, k->scale), &k->f, out);
    if (!plain)
        for (int p = 0; p < PARAMS; p++)
            out[p] = v_div(v_sub(out[p], k->param_offset[p]), k->scale);
}
#endif

/* ---- Sums of a layer: sixteen lanes ---------------------------------------------------------------------------------- */

typedef struct lanes {
    float lane[PARAMS ? PARAMS : 1][ACT_LANES];
} lanes;

/* Lanes by a binary tree in double: i and i + 8, then 4, 2, 1. Leaves the lanes at zero for the next block. */
static void lanes_close(const act_job *job, lanes *s, size_t block)
{
    for (int p = 0; p < PARAMS; p++) {
        if (!job->layer_sum[p])
            continue;
        double sum[ACT_LANES];
        for (int i = 0; i < ACT_LANES; i++)
            sum[i] = s->lane[p][i];
        for (int half = ACT_LANES / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++)
                sum[i] += sum[i + half];
        job->layer_sum[p][block] = sum[0];
    }
    memset(s, 0, sizeof *s);
}

/* Adds g[i] d[i] for the elements from `at` on. Whole rounds of sixteen go as vectors; the rest one by one. */
V_FN void lanes_add(float *lane, size_t at, const float *g, const float *d, size_t n)
{
    size_t i = 0;
    if (at % ACT_LANES == 0)
        for (; i + ACT_LANES <= n; i += ACT_LANES)
            for (int v = 0; v < ACT_LANES; v += V_LANES)
                v_store(lane + v, v_fma(v_load(g + i + v), v_load(d + i + v), v_load(lane + v)));
    for (; i < n; i++)
        lane[(at + i) % ACT_LANES] = __builtin_fmaf(g[i], d[i], lane[(at + i) % ACT_LANES]);
}

/* ---- Tiles: at most TILE elements of one row, or of the flat array --------------------------------------------------- */

typedef struct tile {
    size_t at;      /* index of the first element in the flat array */
    size_t channel; /* its channel; 0 in a flat walk */
    size_t n;
} tile;

V_FN const consts *tile_consts(const act_job *job, size_t channel)
{
    const consts *k = job->consts;
    return job->vector_consts ? k + channel / V_LANES : k;
}

V_FN v_f32 tile_input(const act_job *job, const tile *t, size_t i)
{
    v_f32 x = load_n(job->x, job->dtype, t->at + i, t->n - i);
    return job->bias ? v_add(x, load_f32(job->bias + t->channel + i, t->n - i)) : x;
}

V_FN v_f32 map_point(const act_job *job, v_f32 x, const consts *k)
{
    switch (job->op) {
    case BERLU_ACT_SLOPE:
        return full_slope(x, k, job->plain);
    case BERLU_ACT_SECOND:
        return full_curve(x, k, job->plain);
#if ACT_PARAMS
    case BERLU_ACT_PARAM_SLOPE: {
        v_f32 d[PARAMS];
        full_param_slopes(x, k, job->plain, d);
        return d[job->param_index];
    }
#endif
    default:
        return full_value(x, k, job->plain);
    }
}

static void map_tile(const act_job *job, const tile *t)
{
    for (size_t i = 0; i < t->n; i += V_LANES) {
        v_f32 y = map_point(job, tile_input(job, t, i), tile_consts(job, t->channel + i));
        store_n(job->y, job->dtype, t->at + i, y, t->n - i);
    }
}

/* sum[i] += a for the channels of a tile: rows come in order, so this is the order of the rule. */
V_FN void column_add(float *sum, v_f32 a, size_t n)
{
    store_f32(sum, v_add(load_f32(sum, n), a), n);
}

V_FN void column_fma(float *sum, v_f32 g, v_f32 d, size_t n)
{
    store_f32(sum, v_fma(g, d, load_f32(sum, n)), n);
}

/* Slope and parameter slopes at vector i of a tile, from x or from the output; fills y where it is wanted. */
V_FN v_f32 tile_slopes(const act_job *job, const tile *t, size_t i, v_f32 *d)
{
    const consts *k = tile_consts(job, t->channel + i);
    (void)d;
#if ACT_FROM_OUTPUT
    if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT) {
        v_f32 y = load_n(job->y_in, job->dtype, t->at + i, t->n - i);
#if ACT_PARAMS
        act_param_slopes_from_output(y, &k->f, d);
#endif
        return act_slope_from_output(y, &k->f);
    }
#endif
    v_f32 x = tile_input(job, t, i);
#if ACT_PARAMS
    full_param_slopes(x, k, job->plain, d);
#endif
    v_f32 slope = full_slope(x, k, job->plain);
    if (job->y)
        store_n(job->y, job->dtype, t->at + i, full_value(x, k, job->plain), t->n - i);
    return slope;
}

/* What the sums of a layer need from a tile: they are added in the order of the flat array, not of the tile. */
typedef struct terms {
    float g[TILE];
    float d[PARAMS ? PARAMS : 1][TILE];
} terms;

static void backward_tile(const act_job *job, const tile *t, terms *s)
{
    size_t column = t->at / job->channels / ACT_ROWS * job->channels + t->channel; /* in the partial column sums */
    for (size_t i = 0; i < t->n; i += V_LANES) {
        size_t n = t->n - i;
        v_f32 d[PARAMS + 1];
        v_f32 g = load_n(job->dy, job->dtype, t->at + i, n);
        v_f32 dx = v_mul(g, tile_slopes(job, t, i, d));
        store_n(job->dx, job->dtype, t->at + i, dx, n);
        if (job->bias_sum)
            column_add(job->bias_sum + column + i, dx, n);
        store_f32(s->g + i, g, n);
        for (int p = 0; p < PARAMS; p++) {
            if (job->channel_sum[p])
                column_fma(job->channel_sum[p] + column + i, g, d[p], n);
            if (job->layer_sum[p])
                store_f32(s->d[p] + i, d[p], n);
        }
    }
}

/* Adds elements [from, from + n) of a tile to the lanes; they lie in one block. */
static void terms_add(const act_job *job, const tile *t, const terms *s, size_t from, size_t n, lanes *sums)
{
    for (int p = 0; p < PARAMS; p++)
        if (job->layer_sum[p])
            lanes_add(sums->lane[p], t->at + from, s->g + from, s->d[p] + from, n);
}

/* ---- Groups: whole vectors of a flat walk, plain function ------------------------------------------------------------ */

V_FN void store_group(const act_job *job, void *p, berlu_dtype dtype, size_t i, const v_f32 *r, int vectors)
{
    if (job->stream)
        UNROLL for (int v = 0; v < vectors; v++) stream(p, dtype, i + (size_t)v * V_LANES, r[v]);
    else
        UNROLL for (int v = 0; v < vectors; v++) store(p, dtype, i + (size_t)v * V_LANES, r[v]);
}

V_FN size_t value_loop(const act_job *job, size_t from, size_t to, berlu_dtype dtype, const act_consts *k)
{
    const void *x = job->x;
    void *y = job->y;
    size_t i = from;
    for (; i + MAP_GROUP * V_LANES <= to; i += MAP_GROUP * V_LANES) {
        v_f32 r[MAP_GROUP];
        UNROLL for (int v = 0; v < MAP_GROUP; v++) r[v] = act_value(load(x, dtype, i + (size_t)v * V_LANES), k);
        store_group(job, y, dtype, i, r, MAP_GROUP);
    }
    return i;
}

/* The constants are copied, so that no store can seem to change them; in the first copy of the loop ACT_COMMON holds. */
V_FN size_t value_groups(const act_job *job, size_t from, size_t to, berlu_dtype dtype)
{
    const act_consts k = ((const consts *)job->consts)->f;
    if (ACT_COMMON(&k))
        return value_loop(job, from, to, dtype, &k);
    return value_loop(job, from, to, dtype, &k);
}

/* dx, and the first `wanted` parameter sums of one block; returns where it stopped. */
V_FN size_t slope_loop(const act_job *job, size_t from, size_t to, berlu_dtype dtype, int wanted, lanes *sums,
                       const void *source, map_fn slope, params_fn slopes, const act_consts *k)
{
    const void *dy = job->dy;
    void *dx = job->dx;
    v_f32 sum[PARAMS + 1][V_GROUP];
    UNROLL for (int p = 0; p < wanted; p++) UNROLL for (int v = 0; v < V_GROUP; v++) sum[p][v] = v_zero();
    size_t i = from;
    for (; i + SUM_GROUP * V_LANES <= to; i += SUM_GROUP * V_LANES) {
        v_f32 r[SUM_GROUP];
        UNROLL for (int v = 0; v < SUM_GROUP; v++)
        {
            v_f32 x = load(source, dtype, i + (size_t)v * V_LANES), g = load(dy, dtype, i + (size_t)v * V_LANES);
            v_f32 d[PARAMS + 1];
            r[v] = v_mul(g, slope(x, k));
            if (wanted)
                slopes(x, k, d);
            UNROLL for (int p = 0; p < wanted; p++) sum[p][v % V_GROUP] = v_fma(g, d[p], sum[p][v % V_GROUP]);
        }
        store_group(job, dx, dtype, i, r, SUM_GROUP);
    }
    UNROLL for (int p = 0; p < wanted; p++) UNROLL for (int v = 0; v < V_GROUP; v++)
        v_store(sums->lane[p] + v * V_LANES, sum[p][v]);
    return i;
}

V_FN size_t slope_groups(const act_job *job, size_t from, size_t to, berlu_dtype dtype, int wanted, lanes *sums,
                         const void *source, map_fn slope, params_fn slopes)
{
    const act_consts k = ((const consts *)job->consts)->f;
    if (ACT_COMMON(&k))
        return slope_loop(job, from, to, dtype, wanted, sums, source, slope, slopes, &k);
    return slope_loop(job, from, to, dtype, wanted, sums, source, slope, slopes, &k);
}

/* ---- Units ----------------------------------------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t value_start(const act_job *job, size_t from, size_t to)
{
    if (!GROUPS || job->op != BERLU_ACT_FORWARD || !job->plain)
        return from;
    if (job->dtype == BERLU_F32)
        return value_groups(job, from, to, BERLU_F32);
    if (job->dtype == BERLU_BF16)
        return value_groups(job, from, to, BERLU_BF16);
    return value_groups(job, from, to, BERLU_F16);
}

static void map_flat(const act_job *job, size_t from, size_t to)
{
    for (size_t i = value_start(job, from, to); i < to; i += TILE)
        map_tile(job, &(tile){.at = i, .n = least(TILE, to - i)});
}

V_FN size_t slope_start_as(const act_job *job, size_t from, size_t to, berlu_dtype dtype, lanes *sums,
                           const void *source, map_fn slope, params_fn slopes)
{
    int wanted = 0;
    for (int p = 0; p < PARAMS; p++)
        if (job->layer_sum[p])
            wanted = p + 1;
    if (wanted == 0)
        return slope_groups(job, from, to, dtype, 0, sums, source, slope, slopes);
    if (wanted == 1)
        return slope_groups(job, from, to, dtype, PARAMS ? 1 : 0, sums, source, slope, slopes);
    return slope_groups(job, from, to, dtype, PARAMS, sums, source, slope, slopes);
}

V_FN size_t slope_start(const act_job *job, size_t from, size_t to, lanes *sums, const void *source, map_fn slope,
                        params_fn slopes)
{
    if (job->dtype == BERLU_F32)
        return slope_start_as(job, from, to, BERLU_F32, sums, source, slope, slopes);
    if (job->dtype == BERLU_BF16)
        return slope_start_as(job, from, to, BERLU_BF16, sums, source, slope, slopes);
    return slope_start_as(job, from, to, BERLU_F16, sums, source, slope, slopes);
}

#if !ACT_PARAMS
V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out)
{
    (void)x;
    (void)k;
    (void)out;
}
#endif
#if ACT_FROM_OUTPUT && !ACT_PARAMS
V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out)
{
    act_param_slopes(y, k, out);
}
#endif

static size_t block_start(const act_job *job, size_t from, size_t to, lanes *sums)
{
#if ACT_FROM_OUTPUT
    if (GROUPS && job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT && job->plain)
        return slope_start(job, from, to, sums, job->y_in, act_slope_from_output, act_param_slopes_from_output);
#endif
    if (GROUPS && job->op == BERLU_ACT_BACKWARD && job->plain && !job->y)
        return slope_start(job, from, to, sums, job->x, act_slope, act_param_slopes);
    return from;
}

static void backward_flat(const act_job *job, size_t from, size_t to)
{
    lanes sums;
    terms s;
    memset(&sums, 0, sizeof sums);
    for (size_t block = from; block < to; block += ACT_BLOCK) {
        size_t end = least(block + ACT_BLOCK, to);
        for (size_t i = block_start(job, block, end, &sums); i < end; i += TILE) {
            tile t = {.at = i, .n = least(TILE, end - i)};
            backward_tile(job, &t, &s);
            terms_add(job, &t, &s, 0, t.n, &sums);
        }
        lanes_close(job, &sums, block / ACT_BLOCK);
    }
}

/* The column sums of a unit start at zero. */
static void columns_clear(const act_job *job, size_t row, size_t end)
{
    size_t at = row / ACT_ROWS * job->channels;
    size_t bytes = ((end - row + ACT_ROWS - 1) / ACT_ROWS) * job->channels * sizeof(float);
    if (job->bias_sum)
        memset(job->bias_sum + at, 0, bytes);
    for (int p = 0; p < PARAMS; p++)
        if (job->channel_sum[p])
            memset(job->channel_sum[p] + at, 0, bytes);
}

/* Row by row. A block of the layer's sums may end inside a tile; a unit ends with a whole block or with the array. */
static void backward_rows(const act_job *job, size_t row, size_t end)
{
    lanes sums;
    terms s;
    memset(&sums, 0, sizeof sums);
    columns_clear(job, row, end);
    for (size_t at = row * job->channels, stop = end * job->channels; at < stop;) {
        tile t = {.at = at, .channel = at % job->channels};
        t.n = least(TILE, job->channels - t.channel);
        backward_tile(job, &t, &s);
        for (size_t done = 0; done < t.n;) {
            size_t n = least(t.n - done, ACT_BLOCK - at % ACT_BLOCK);
            terms_add(job, &t, &s, done, n, &sums);
            done += n;
            at += n;
            if (at % ACT_BLOCK == 0 || at == stop)
                lanes_close(job, &sums, (at - 1) / ACT_BLOCK);
        }
    }
}

static void unit_run(const act_job *job, size_t unit)
{
    int backward = job->op == BERLU_ACT_BACKWARD || job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
    if (job->unit_rows == 0) {
        size_t from = unit * ACT_UNIT, to = least(from + ACT_UNIT, job->count);
        (backward ? backward_flat : map_flat)(job, from, to);
    } else {
        size_t row = unit * job->unit_rows, end = least(row + job->unit_rows, job->rows);
        if (backward) {
            backward_rows(job, row, end);
        } else {
            for (; row < end; row++)
                for (size_t c = 0; c < job->channels; c += TILE)
                    map_tile(job, &(tile){row * job->channels + c, c, least(TILE, job->channels - c)});
        }
    }
    if (job->stream)
        v_stream_end();
}

const act_kernels ACT_TABLE = {
    .isa = V_ISA_TEXT,
    .from_output = ACT_FROM_OUTPUT,
    .lanes = V_LANES,
    .consts_bytes = sizeof(consts),
    .prepare = prepare,
    .unit = unit_run,
};
