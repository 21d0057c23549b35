/* bench_act.c - see bench_act.h. SPDX-License-Identifier: MIT
 *
 * Only ratios inside one interleaved run mean anything: clocks, neighbours and memory change by the
 * minute. So each round runs everything once, in an order that rotates, and medians are compared.
 * Bytes count one read of x (and of dy) and one write; the read for ownership of a cache line is
 * not counted. */
#include "bench/bench_act.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/act_internal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/half.h"
#include "base/median.h"
#include "base/philox.h"
#include "bench/yardstick.h"
#include "io/act_text.h"

enum { STICKS_MOST = 16, ROUNDS_LEAST = 5, ROUNDS_MOST = 101 };

typedef struct subject {
    const yardstick *stick; /* or */
    int half;               /* the yardstick of 16-bit rows: as many elements, half the bytes */
    bench_row *row;
    berlu_act *act;
    float *x; /* of its range and dtype */
    double times[ROUNDS_MOST];
} subject;

typedef struct bench {
    subject *subjects;
    size_t count;
    size_t n;
    int threads, repeats, rounds;
    float *dy, *y;
    float *dy16[3]; /* by dtype; [BERLU_F32] is dy */
    void *workspace;
    size_t workspace_bytes;
} bench;

/* n elements uniform in +-range, stored as dtype; NULL without memory. */
static float *values_random(size_t n, berlu_dtype dtype, double range, uint64_t seed)
{
    float *out = memory_aligned(n * berlu_dtype_size(dtype) + 64, "the arrays of a bench");
    for (size_t i = 0; out && i < n; i += 4) {
        philox_words r = philox_draw(seed, PURPOSE_TEST, 0, i, 0);
        for (size_t j = i; j < n && j < i + 4; j++) {
            float v = (philox_f32(r.w[j - i]) * 2 - 1) * (float)range;
            uint16_t half = dtype == BERLU_BF16 ? bf16_from_f32(v) : f16_from_f32(v);
            if (dtype == BERLU_F32)
                out[j] = v;
            else
                memcpy((uint16_t *)(void *)out + j, &half, sizeof half);
        }
    }
    return out;
}

static void call_of(const bench *b, const subject *s, berlu_act_call *call, float grad[BERLU_ACT_PARAMS])
{
    const bench_row *row = s->row;
    *call = (berlu_act_call){.dtype = row->dtype, .hint = row->hint, .rows = b->n, .channels = 1, .x = s->x};
    call->dy = b->dy16[row->dtype];
    if (row->op == BERLU_ACT_BACKWARD_FROM_OUTPUT)
        call->y = s->x;
    else if (row->op != BERLU_ACT_BACKWARD)
        call->y = b->y;
    call->dx = b->y;
    for (size_t p = 0; p < berlu_act_param_count(s->act); p++) {
        berlu_act_param_info info;
        if (berlu_act_param(s->act, p, &info) == BERLU_OK && info.learned)
            call->param[p].grad = &grad[p];
    }
    call->workspace = b->workspace;
    call->workspace_bytes = b->workspace_bytes;
}

static berlu_status subject_run(const bench *b, subject *s, int repeats)
{
    float grad[BERLU_ACT_PARAMS];
    berlu_act_call call;
    if (s->row)
        call_of(b, s, &call, grad);
    for (int i = 0; i < repeats; i++) {
        if (s->stick) {
            yardstick_run(s->stick, call_threads(b->threads, b->n), b->y, s->x, b->dy, s->half ? (b->n + 1) / 2 : b->n);
            continue;
        }
        berlu_exec exec = {s->row->isa, b->threads};
        TRY(berlu_act_run(s->act, s->row->op, &call, &exec));
    }
    return BERLU_OK;
}

static berlu_dtype dtype_of(const subject *s)
{
    return s->row ? s->row->dtype : BERLU_F32;
}

static double range_of(const subject *s)
{
    return s->row ? s->row->range : 3;
}

/* An earlier subject of the same dtype and range, whose x it shares; NULL where there is none. */
static const subject *same_numbers(const bench *b, size_t index)
{
    const subject *s = &b->subjects[index];
    for (size_t i = 0; i < index; i++)
        if (dtype_of(&b->subjects[i]) == dtype_of(s) && range_of(&b->subjects[i]) == range_of(s))
            return &b->subjects[i];
    return NULL;
}

static berlu_status subject_numbers(bench *b, size_t index)
{
    subject *s = &b->subjects[index];
    const subject *same = same_numbers(b, index);
    berlu_dtype dtype = dtype_of(s);
    s->x = same ? same->x : values_random(b->n, dtype, range_of(s), 1);
    if (!s->x)
        return BERLU_ERR_MEMORY;
    if (!b->dy16[dtype] && !(b->dy16[dtype] = values_random(b->n, dtype, 1, 2)))
        return BERLU_ERR_MEMORY;
    return BERLU_OK;
}

/* Counts all arrays: x by dtype and range, dy by dtype, y. */
static berlu_status memory_check(const bench *b, double free)
{
    double bytes = (double)b->n * sizeof(float);
    int dtypes[3] = {0};
    for (size_t i = 0; i < b->count; i++) {
        berlu_dtype dtype = dtype_of(&b->subjects[i]);
        bytes += (double)b->n * (double)berlu_dtype_size(dtype) * (!same_numbers(b, i) + !dtypes[dtype]);
        dtypes[dtype] = 1;
    }
    if (free <= 0 || bytes <= free)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_MEMORY,
                      "n: arrays of %zu numbers take %.2f GiB and %.2f GiB are free: the largest that fits is %.0f",
                      b->n, bytes / 0x1p30, free / 0x1p30, floor((double)b->n * (free / bytes)));
}

static berlu_status subjects_make(bench *b, bench_row *rows, size_t count, double free)
{
    int halves = 0;
    for (size_t i = 0; i < count; i++)
        halves |= rows[i].dtype != BERLU_F32;
    b->subjects = calloc(count + 2 * STICKS_MOST, sizeof *b->subjects);
    if (!b->subjects)
        return berlu_fail_memory((count + 2 * STICKS_MOST) * sizeof *b->subjects, "a bench");
    for (int half = 0; half <= halves; half++)
        for (size_t i = 0; i < STICKS_MOST && yardstick_at(i); i++)
            /* compare with the same vector width only */
            if (yardstick_at(i)->isa != CPU_AVX512 || rows[0].isa == BERLU_ISA_AVX512)
                b->subjects[b->count++] = (subject){.stick = yardstick_at(i), .half = half};
    for (size_t i = 0; i < count; i++) {
        subject *s = &b->subjects[b->count++];
        berlu_status status = act_from_text(&s->act, rows[i].act);
        if (status != BERLU_OK)
            return status;
        s->row = &rows[i];
        berlu_act_call call;
        float grad[BERLU_ACT_PARAMS];
        call_of(b, s, &call, grad);
        size_t bytes = berlu_act_workspace(s->act, rows[i].op, &call);
        b->workspace_bytes = bytes > b->workspace_bytes ? bytes : b->workspace_bytes;
    }
    TRY(memory_check(b, free));
    for (size_t i = 0; i < b->count; i++) {
        berlu_status status = subject_numbers(b, i);
        if (status != BERLU_OK)
            return status;
    }
    b->dy = b->dy16[BERLU_F32];
    b->y = values_random(b->n, BERLU_F32, 0, 3);
    b->workspace = memory_aligned(b->workspace_bytes + 64, "the workspace of a bench");
    return b->y && b->workspace ? BERLU_OK : BERLU_ERR_MEMORY;
}

static void bench_free(bench *b)
{
    for (size_t i = 0; b->subjects && i < b->count; i++) {
        int shared = 0;
        for (size_t j = i + 1; j < b->count; j++)
            shared |= b->subjects[j].x == b->subjects[i].x;
        if (!shared)
            free(b->subjects[i].x);
        berlu_act_free(b->subjects[i].act);
    }
    for (int d = 0; d < 3; d++)
        free(b->dy16[d]);
    free(b->y);
    free(b->workspace);
    free(b->subjects);
}

/* The warm-up round gives the number of repeats that fill a tenth of a millisecond, and of rounds
 * that fit in the time. */
static berlu_status bench_rounds(bench *b, double seconds)
{
    double round = 0;
    b->repeats = b->n >= 1 << 22 ? 1 : (int)((1 << 22) / (b->n + 1)) + 1;
    if (b->repeats > 200)
        b->repeats = 200;
    for (size_t i = 0; i < b->count; i++) {
        double start = clock_seconds();
        berlu_status status = subject_run(b, &b->subjects[i], 1);
        if (status != BERLU_OK)
            return status;
        round += (clock_seconds() - start) * b->repeats;
    }
    double rounds = seconds / round;
    b->rounds = rounds < ROUNDS_LEAST ? ROUNDS_LEAST : rounds > ROUNDS_MOST ? ROUNDS_MOST : (int)rounds | 1;
    for (int r = 0; r < b->rounds; r++)
        for (size_t j = 0; j < b->count; j++) {
            subject *s = &b->subjects[(j + (size_t)r) % b->count];
            /* Warm up: the caches hold the previous subject's data, and wide vectors take some 20
             * us to reach full speed. */
            berlu_status status = subject_run(b, s, b->repeats / 8 + 1);
            double start = clock_seconds();
            if (status == BERLU_OK)
                status = subject_run(b, s, b->repeats);
            if (status != BERLU_OK)
                return status;
            s->times[r] = (clock_seconds() - start) / b->repeats;
        }
    return BERLU_OK;
}

static void rows_fill(bench *b)
{
    double best[2][2] = {{1e30, 1e30}, {1e30, 1e30}}; /* [16-bit][copy, add] */
    for (size_t i = 0; i < b->count; i++) {
        subject *s = &b->subjects[i];
        double m = median(s->times, b->rounds);
        if (s->stick && m < best[s->half][s->stick->kind])
            best[s->half][s->stick->kind] = m;
        if (s->row)
            s->row->median_ns = m * 1e9;
    }
    for (size_t i = 0; i < b->count; i++) {
        bench_row *row = b->subjects[i].row;
        if (!row)
            continue;
        berlu_act_call call;
        float grad[BERLU_ACT_PARAMS];
        call_of(b, &b->subjects[i], &call, grad);
        int add = row->op == BERLU_ACT_BACKWARD || row->op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
        double size = (double)berlu_dtype_size(row->dtype);
        row->bytes = (double)b->n * size * (add ? 3 : 2);
        row->gb_per_s = row->bytes / row->median_ns;
        row->yardstick = add ? "add" : "copy";
        row->threads = call_threads(b->threads, b->n);
        row->hint =
            call_streams(b->subjects[i].act, row->op, &call, row->threads) ? BERLU_HINT_STREAM : BERLU_HINT_REUSE;
        row->ratio = row->median_ns / (best[row->dtype != BERLU_F32][add] * 1e9);
    }
}

berlu_status bench_act_run(bench_row *rows, size_t count, double seconds, double free)
{
    bench b = {.n = rows[0].n, .threads = rows[0].threads};
    berlu_status status;
    TRY_DONE(subjects_make(&b, rows, count, free));
    TRY_DONE(bench_rounds(&b, seconds));
    rows_fill(&b);
done:
    bench_free(&b);
    return status;
}
