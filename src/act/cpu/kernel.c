/* kernel.c - the loops around a formula, compiled once per activation and instruction set.
 * SPDX-License-Identifier: MIT
 *
 * The build passes the formula's header as ACT_FORMULA and the name of the table as ACT_TABLE; no
 * activation is named here. Loops take the formula's functions as arguments that the compiler
 * inlines, so one text serves every op, and dtype and the number of sums are constants inside each
 * copy.
 *
 * Two paths per op. A *loop* does whole groups of vectors, all loads of a group before its stores
 * (that order is worth a few percent of memory bandwidth), with sums in registers (kernel_loops.h).
 * *Tiles* do everything else: heads and tails, bias, parameters and sums per channel, scale and
 * center. Rows with a bias have groups of their own (kernel_rows.h). All use the same formula, so
 * they agree to the bit. kernels.h defines the order of the
 * sums; read units_run() at the end first, then traverse_blocks(). */
#include <stdint.h>
#include <string.h>

#include "act/cpu/kernels.h"
#include ACT_FORMULA

#include "act/formulas/full.h"

#include "act/cpu/kernel_memory.h"

_Static_assert(sizeof(consts) <= ACT_CONSTS_BYTES, "ACT_CONSTS_BYTES is too small for this formula");

enum {
    PARAMS = ACT_PARAMS,
    GROUPS = V_LANES > 1, /* scalar is the reference: it uses tiles alone */
    TILE = 512,           /* elements of one tile: a few buffers of it stay in L1 */
    RANGE = 256,          /* elements of an interleaved range where the formula is costly */
    SHORT_BYTES = 256,    /* bytes of one where memory is the limit */
};
_Static_assert(SHORT_BYTES % (64 * sizeof(float)) == 0 && RANGE % 64 == 0 && ACT_BLOCK % RANGE == 0,
               "a range is whole groups of at most 64 elements");

/* ---- Constants ------------------------------------------------------------------------------- */

V_FN consts consts_at(const act_job *job, size_t channel, size_t n)
{
    v_f32 params[CONSTS_PARAMS];
    for (int p = 0; p < PARAMS; p++) {
        params[p] = job->per_channel[p] ? load_f32(job->param[p] + channel, n) : v_set(*job->param[p]);
        /* a NaN whose lower half is 0 */
        params[p] = v_select(v_is_nan(params[p]), v_set(__builtin_nanf("")), params[p]);
    }
    (void)channel;
    (void)n;
    return consts_make(params, job->shape, job->scale, job->center);
}

static void prepare(act_job *job)
{
    consts *k = job->consts;
    size_t channels = job->vector_consts ? job->channels : 1;
    for (size_t c = 0; c < channels; c += V_LANES)
        *k++ = consts_at(job, c, channels - c);
}

/* ---- Sums of a layer: sixteen lanes ---------------------------------------------------------- */

typedef struct lanes {
    float lane[CONSTS_PARAMS][ACT_LANES];
} lanes;

static void lanes_clear(lanes *s)
{
    for (int p = 0; p < PARAMS; p++)
        V_FOR(int i = 0; i < ACT_LANES; i += V_LANES)
            v_store(s->lane[p] + i, v_zero());
}

/* Pairs, which every target can add. */
typedef float pair_f32 __attribute__((vector_size(8)));
typedef double pair __attribute__((vector_size(16)));

/* Joins lanes by a binary tree in double: i and i + 8, then 4, 2, 1. */
static double lanes_join(const float *lane)
{
    pair_f32 part[ACT_LANES / 2];
    pair sum[ACT_LANES / 2];
    memcpy(part, lane, sizeof part);
    V_FOR(int i = 0; i < ACT_LANES / 2; i++)
        sum[i] = __builtin_convertvector(part[i], pair);
    V_FOR(int half = ACT_LANES / 4; half > 0; half /= 2)
        V_FOR(int i = 0; i < half; i++)
            sum[i] += sum[i + half];
    return sum[0][0] + sum[0][1];
}

static void lanes_close(const act_job *job, const lanes *s, size_t block)
{
    for (int p = 0; p < PARAMS; p++)
        if (job->layer_sum[p])
            job->layer_sum[p][block] = lanes_join(s->lane[p]);
}

/* Adds g[i] d[i] for the elements from `at` on. Whole rounds of sixteen are vectors; the rest goes
 * one by one. */
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

#include "act/cpu/kernel_loops.h"

/* ---- Tiles: at most TILE elements of one row, or of the flat array --------------------------- */

typedef struct tile {
    size_t at;      /* index of the first element in the flat array */
    size_t channel; /* its channel; 0 in a flat traversal */
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
    v_f32 d[PARAMS + 1];
    if (PARAMS > 0 && job->op == BERLU_ACT_PARAM_SLOPE) {
        full_param_slopes(x, k, job->plain, d);
        return d[job->param_index];
    }
    switch (job->op) {
    case BERLU_ACT_SLOPE:
        return full_slope(x, k, job->plain);
    case BERLU_ACT_SECOND:
        return full_curve(x, k, job->plain);
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

/* sum[i] += a for the channels of a tile: rows come in order, as the rule of kernels.h demands. */
V_FN void column_add(float *sum, v_f32 a, size_t n)
{
    store_f32(sum, v_add(load_f32(sum, n), a), n);
}

V_FN void column_fma(float *sum, v_f32 g, v_f32 d, size_t n)
{
    store_f32(sum, v_fma(g, d, load_f32(sum, n)), n);
}

/* Derivative and parameter derivatives at vector i of a tile, from x or from the output; fills y if
 * the job has one. */
V_FN v_f32 tile_slopes(const act_job *job, const tile *t, size_t i, v_f32 *d)
{
    const consts *k = tile_consts(job, t->channel + i);
    if (ACT_FROM_OUTPUT && job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT) {
        v_f32 y = load_n(job->y_in, job->dtype, t->at + i, t->n - i);
        act_param_slopes_from_output(y, &k->f, d);
        return act_slope_from_output(y, &k->f);
    }
    v_f32 x = tile_input(job, t, i);
    full_param_slopes(x, k, job->plain, d);
    v_f32 slope = full_slope(x, k, job->plain);
    if (job->y)
        store_n(job->y, job->dtype, t->at + i, full_value(x, k, job->plain), t->n - i);
    return slope;
}

/* Terms of the layer's sums: they are added in the order of the flat array, not of the tile. */
typedef struct terms {
    float g[TILE];
    float d[CONSTS_PARAMS][TILE];
} terms;

static void backward_tile(const act_job *job, const tile *t, terms *s)
{
    size_t column = t->at / job->channels / ACT_ROWS * job->channels + t->channel; /* in the partial column sums */
    for (size_t i = 0; i < t->n; i += V_LANES) {
        size_t n = t->n - i;
        v_f32 d[PARAMS + 1];
        v_f32 g = load_n(job->dy, job->dtype, t->at + i, n);
        v_f32 dx = ACT_PRODUCT(tile_slopes(job, t, i, d), g);
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

/* ---- The flat traversal ---------------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void map_tiles(const act_job *job, size_t from, size_t to, lanes *sums)
{
    (void)sums;
    for (size_t i = from; i < to; i += TILE)
        map_tile(job, &(tile){.at = i, .n = least(TILE, to - i)});
}

static void backward_tiles(const act_job *job, size_t from, size_t to, lanes *sums)
{
    terms s;
    for (size_t i = from; i < to; i += TILE) {
        tile t = {.at = i, .n = least(TILE, to - i)};
        backward_tile(job, &t, &s);
        terms_add(job, &t, &s, 0, t.n, sums);
    }
}

/* Converts between the lanes of the array and those of a vector that starts at another element. */
static void lanes_rotate(lanes *s, size_t by)
{
    for (int p = 0; p < PARAMS && by % ACT_LANES; p++) {
        float old[ACT_LANES];
        memcpy(old, s->lane[p], sizeof old);
        for (size_t i = 0; i < ACT_LANES; i++)
            s->lane[p][i] = old[(i + by) % ACT_LANES];
    }
}

/* Elements of each block up to the first cache line of the output, done as a tile: non-temporal
 * stores need whole lines. */
static size_t head_of(const act_job *job, int backward)
{
    const void *out = backward ? job->dx : job->y;
    size_t past = (uintptr_t)out % 64;
    return job->stream && past ? (64 - past) / berlu_dtype_size(job->dtype) : 0;
}

/* Elements of an interleaved range. Short ranges keep more cache lines in flight; each costs one
 * loop call. Where nothing is interleaved a single range covers everything. */
static size_t range_of(const act_job *job)
{
    if (!job->stream || !job->interleave)
        return SIZE_MAX;
    return ACT_COSTLY ? RANGE : SHORT_BYTES / berlu_dtype_size(job->dtype);
}

typedef struct traversal {
    loop_fn loop;
    void (*tiles)(const act_job *job, size_t from, size_t to, lanes *sums);
    size_t head, range;
    int backward;
} traversal;

/* Processes consecutive blocks of the same size; more than one are whole. Streaming may
 * interleave them (job->interleave), a few lines of each at a time: with arithmetic between the
 * loads a single stream does not keep enough lines in flight to hide the latency of memory, unless
 * the processor itself fetches ahead. The order within a block stays. */
static void traverse_blocks(const act_job *job, const traversal *w, size_t from, size_t size, size_t blocks)
{
    lanes sums[ACT_UNIT / ACT_BLOCK];
    size_t head = least(w->head, size), at = head;
    for (size_t b = 0; w->backward && b < blocks; b++)
        lanes_clear(&sums[b]);
    for (size_t b = 0; head && b < blocks; b++) {
        w->tiles(job, from + b * size, from + b * size + head, &sums[b]);
        if (w->backward)
            lanes_rotate(&sums[b], head);
    }
    for (size_t done = 1; w->loop && done && at < size; at += done) {
        span s = {.from = from + at, .n = least(w->range, size - at), .blocks = blocks, .sums = sums};
        done = w->loop(job, &s);
    }
    for (size_t b = 0; b < blocks; b++) {
        if (head && w->backward)
            lanes_rotate(&sums[b], ACT_LANES - head % ACT_LANES);
        if (at < size)
            w->tiles(job, from + b * size + at, from + (b + 1) * size, &sums[b]);
        if (w->backward)
            lanes_close(job, &sums[b], from / ACT_BLOCK + b);
    }
}

static void flat_run(const act_job *job, size_t from, size_t to, int backward)
{
    traversal w = {.loop = loop_pick(job),
                   .tiles = backward ? backward_tiles : map_tiles,
                   .head = head_of(job, backward),
                   .range = range_of(job),
                   .backward = backward};
    size_t whole = backward || job->stream ? (to - from) / ACT_BLOCK : 0;
    if (whole)
        traverse_blocks(job, &w, from, ACT_BLOCK, whole);
    from += whole * ACT_BLOCK;
    if (from < to)
        traverse_blocks(job, &w, from, to - from, 1);
}

/* ---- The traversal by rows, and units -------------------------------------------------------- */

/* Zeroes the column sums of a unit. */
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

#include "act/cpu/kernel_rows.h"

/* Row by row. A block of the layer's sums may end inside a tile; a unit ends with a whole block or
 * with the array. */
static void backward_rows(const act_job *job, size_t row, size_t end)
{
    lanes sums;
    terms s;
    lanes_clear(&sums);
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
            if (at % ACT_BLOCK == 0 || at == stop) {
                lanes_close(job, &sums, (at - 1) / ACT_BLOCK);
                lanes_clear(&sums);
            }
        }
    }
}

/* Whole groups first, then what they leave of each row: no sum crosses channels. */
static void grouped_rows(const act_job *job, size_t row, size_t end, int backward)
{
    terms s;
    if (backward)
        columns_clear(job, row, end);
    size_t done = !backward ? rows_values(job, row, end)
                  : job->y  ? rows_slopes_and_values(job, row, end)
                            : rows_slopes(job, row, end);
    for (; done < job->channels && row < end; row++) {
        tile t = {row * job->channels + done, done, job->channels - done};
        if (backward)
            backward_tile(job, &t, &s);
        else
            map_tile(job, &t);
    }
}

static void rows_run(const act_job *job, size_t unit, int backward)
{
    size_t row = unit * job->unit_rows, end = least(row + job->unit_rows, job->rows);
    if (rows_in_groups(job)) {
        grouped_rows(job, row, end, backward);
        return;
    }
    if (backward) {
        backward_rows(job, row, end);
        return;
    }
    for (; row < end; row++)
        for (size_t c = 0; c < job->channels; c += TILE)
            map_tile(job, &(tile){row * job->channels + c, c, least(TILE, job->channels - c)});
}

/* Units [from, to). A flat forward without streaming has no blocks: its units are one range. */
static void units_run(const act_job *job, size_t from, size_t to)
{
    int backward = job->op == BERLU_ACT_BACKWARD || job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
    size_t step = backward || job->stream || job->unit_rows ? 1 : to - from;
    for (size_t unit = from; unit < to; unit += step) {
        if (job->unit_rows)
            rows_run(job, unit, backward);
        else
            flat_run(job, unit * ACT_UNIT, least((unit + step) * ACT_UNIT, job->count), backward);
    }
    if (job->stream)
        v_stream_end();
}

const act_kernels ACT_TABLE = {
    .lanes = V_LANES,
    .consts_bytes = sizeof(consts),
    .prepare = prepare,
    .units = units_run,
};
