/* diagnose_values.c - moments, shares and dead units of one site, over a fixed number of parts.
 * SPDX-License-Identifier: MIT
 *
 * part_measure() processes blocks of rows that stay in cache, values_measure() joins the parts in
 * order. Moments are shifted by the first value, so that a mean far from zero costs no
 * precision. */
#include "train/diagnose_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "train/metrics.h"

enum { PARTS = 8, VALUES_ALONE = 1 << 15 }; /* below this, waking another thread costs more than the work */

typedef struct moments {
    double count, mean, spread; /* spread: sum of squares around the mean */
} moments;

typedef struct part {
    float *scratch; /* slopes or outputs of a block */
    unsigned char *alive;
    void *workspace;
    size_t left, right;
    moments x, y;
    double cross; /* sum of (x - mean x) (y - mean y) */
    kept_failure failure;
} part;

struct value_parts {
    part list[PARTS];
    size_t workspace_bytes;
};

value_parts *value_parts_make(arena *memory, size_t channels, size_t workspace)
{
    value_parts *parts = ARENA_ARRAY(memory, value_parts, 1);
    size_t block = channels > VALUES_BLOCK ? channels : VALUES_BLOCK;
    for (int i = 0; parts && i < PARTS; i++) {
        part *p = &parts->list[i];
        p->scratch = ARENA_ARRAY(memory, float, block);
        p->alive = ARENA_ARRAY(memory, unsigned char, channels);
        p->workspace = ARENA_ARRAY(memory, unsigned char, workspace + 1);
        if (!p->scratch || !p->alive || !p->workspace)
            return NULL;
    }
    if (parts)
        parts->workspace_bytes = workspace;
    return parts;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Sums run in LANES lanes that are joined at the end: vectorizable, and independent of the
 * instruction set. */
enum { LANES = 16 };

static double lanes_sum(const double lanes[LANES])
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

/* Both moments in one pass, shifted by the first value; in double no precision of a float is
 * lost. */
static moments moments_of(const float *x, size_t count)
{
    double sums[LANES] = {0}, squares[LANES] = {0}, shift = x[0];
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
    double off = lanes_sum(sums) / (double)count, spread = lanes_sum(squares) - off * off * (double)count;
    return (moments){(double)count, shift + off, spread < 0 ? 0 : spread}; /* keeps a NaN */
}

/* The sum of (x - mean x) (y - mean y), both means known. */
static double cross_of(const float *x, const float *y, size_t count, double mean_x, double mean_y)
{
    double sums[LANES] = {0};
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES) {
#pragma omp simd
        for (int k = 0; k < LANES; k++)
            sums[k] += (x[i + (size_t)k] - mean_x) * (y[i + (size_t)k] - mean_y);
    }
    for (size_t i = whole; i < count; i++)
        sums[i - whole] += (x[i] - mean_x) * (y[i] - mean_y);
    return lanes_sum(sums);
}

static void moments_join(moments *to, moments more)
{
    double all = to->count + more.count, apart = more.mean - to->mean;
    if (more.count == 0)
        return;
    if (to->count == 0) {
        *to = more;
        return;
    }
    to->spread += more.spread + apart * apart * to->count * more.count / all;
    to->mean += apart * more.count / all;
    to->count = all;
}

/* Merges the moments and the cross sum of two sets of pairs. */
static void pairs_join(moments *x, moments *y, double *cross, moments more_x, moments more_y, double more_cross)
{
    double all = x->count + more_x.count;
    if (more_x.count == 0)
        return;
    *cross += more_cross + (more_x.mean - x->mean) * (more_y.mean - y->mean) * x->count * more_x.count / all;
    moments_join(x, more_x);
    moments_join(y, more_y);
}

/* Counts one row; there is one edge of the transition for all channels, or one each. */
static void row_shares(const float *x, size_t channels, const float *edge, size_t stride, part *p)
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
    p->left += below;
    p->right += above;
}

static void row_alive(const float *slope, size_t channels, unsigned char *alive)
{
#pragma omp simd
    for (size_t c = 0; c < channels; c++)
        alive[c] |= !(fabsf(slope[c]) < 1e-3f);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static berlu_status block_apply(const value_parts *parts, part *p, const site_values *v, berlu_act_op op, size_t first,
                                size_t rows)
{
    berlu_act_call call = v->call;
    call.rows = rows;
    call.x = v->x + first * call.channels;
    call.y = p->scratch;
    call.workspace = p->workspace;
    call.workspace_bytes = parts->workspace_bytes;
    return berlu_act_run(v->act, op, &call, &(berlu_exec){.threads = 1});
}

static berlu_status block_measure(const value_parts *parts, part *p, const site_values *v, size_t first, size_t rows)
{
    size_t channels = v->call.channels;
    const float *x = v->x + first * channels;
    for (size_t r = 0; r < rows; r++)
        row_shares(x + r * channels, channels, v->edge, v->edge_stride, p);
    moments of_x = moments_of(x, rows * channels), of_y;
    TRY(block_apply(parts, p, v, BERLU_ACT_SLOPE, first, rows));
    for (size_t r = 0; r < rows; r++)
        row_alive(p->scratch + r * channels, channels, p->alive);
    TRY(block_apply(parts, p, v, BERLU_ACT_FORWARD, first, rows));
    of_y = moments_of(p->scratch, rows * channels);
    pairs_join(&p->x, &p->y, &p->cross, of_x, of_y, cross_of(x, p->scratch, rows * channels, of_x.mean, of_y.mean));
    return BERLU_OK;
}

static size_t block_rows(const site_values *v)
{
    size_t rows = VALUES_BLOCK / v->call.channels;
    return rows > 0 ? rows : 1;
}

typedef struct looking {
    value_parts *parts;
    const site_values *values;
} looking;

static void part_measure(void *context, size_t number)
{
    const looking *l = context;
    const site_values *v = l->values;
    part *p = &l->parts->list[number];
    size_t end = v->rows * (number + 1) / PARTS, most = block_rows(v);
    p->left = p->right = 0;
    p->x = p->y = (moments){0};
    p->cross = 0;
    berlu_status status = BERLU_OK;
    memset(p->alive, 0, v->call.channels);
    for (size_t r = v->rows * number / PARTS; r < end && status == BERLU_OK; r += most)
        status = block_measure(l->parts, p, v, r, end - r < most ? end - r : most);
    failure_keep(&p->failure, status);
}

static size_t alive_count(const value_parts *parts, size_t channels)
{
    size_t alive = 0;
    for (size_t c = 0; c < channels; c++) {
        int any = 0;
        for (int i = 0; i < PARTS; i++)
            any |= parts->list[i].alive[c];
        alive += (size_t)any;
    }
    return alive;
}

berlu_status values_measure(value_parts *parts, const site_values *v, int threads, double *site_metrics)
{
    size_t channels = v->call.channels, left = 0, right = 0;
    double all = (double)(v->rows * channels);
    moments x = {0}, y = {0};
    double cross = 0;
    threads_for(all < VALUES_ALONE ? 1 : threads, PARTS, part_measure, &(looking){parts, v});
    for (int i = 0; i < PARTS; i++) {
        const part *p = &parts->list[i];
        TRY(failure_report(&p->failure));
        left += p->left, right += p->right;
        pairs_join(&x, &y, &cross, p->x, p->y, p->cross);
    }
    site_metrics[SITE_LEFT] = (double)left / all;
    site_metrics[SITE_RIGHT] = (double)right / all;
    site_metrics[SITE_INSIDE] = 1 - (double)(left + right) / all;
    site_metrics[SITE_DEAD] = 1 - (double)alive_count(parts, channels) / (double)channels;
    site_metrics[SITE_MEAN] = x.mean, site_metrics[SITE_VAR] = x.spread / x.count;
    site_metrics[SITE_Y_MEAN] = y.mean, site_metrics[SITE_Y_VAR] = y.spread / y.count;
    site_metrics[SITE_NONLINEAR] = NAN; /* undefined where either is constant */
    if (x.spread > 0 && y.spread > 0)
        site_metrics[SITE_NONLINEAR] =
            fmax(0, 1 - cross * cross / (x.spread * y.spread)); /* rounding may give less than 0 */
    return BERLU_OK;
}

berlu_status values_outputs(value_parts *parts, const site_values *v, const float **out, size_t *count)
{
    size_t rows = block_rows(v) < v->rows ? block_rows(v) : v->rows;
    *out = parts->list[0].scratch;
    *count = rows * v->call.channels;
    return block_apply(parts, &parts->list[0], v, BERLU_ACT_FORWARD, 0, rows);
}
