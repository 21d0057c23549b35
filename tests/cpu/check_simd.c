/* check_simd.c - the inner loops of every instruction set against those of scalar C.
 * SPDX-License-Identifier: MIT
 *
 * A program of its own, without a test library, so that it also runs cross-compiled under an
 * emulator (neon.sh). Each check runs one loop of two tables on the same elements and sizes that no
 * vector length divides. The bits are the same: sums run down a lane, and those across lanes in a
 * fixed number of lanes (simd_internal.h), so that processes on unlike CPUs do not drift apart. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/philox.h"
#include "cpu/simd_kernels.h"

enum { ROOM = 1 << 14, BUFFERS = 10, PROBLEMS = 21, SUMS = 67 };

/* What a check works on: inputs that are the same for every table, and everything it wrote. */
typedef struct bench {
    const simd_kernels *l;
    float in[BUFFERS][ROOM], out[BUFFERS][ROOM];
    double sum[SUMS];
    _Alignas(64) float work[4 * ROOM];
} bench;

static void prepare(bench *b, const simd_kernels *l)
{
    b->l = l;
    memset(b->sum, 0, sizeof b->sum);
    for (int k = 0; k < BUFFERS; k++)
        for (int i = 0; i < ROOM; i++) {
            b->in[k][i] = 2 * philox_f32(philox_draw((uint64_t)k, PURPOSE_TEST, 0, (uint64_t)i, 0).w[0]) - 1;
            b->out[k][i] = 0.25f; /* some loops add to what is there; and what they must not touch shows */
        }
}

/* Rows of one to four vectors, whole and not, stay in registers; longer ones do not: both ways for
 * every instruction set. */
static const int64_t row_sizes[] = {1, 4, 10, 16, 24, 37, 48, 60, 79};
enum { ROW_SIZES = sizeof row_sizes / sizeof *row_sizes, ROW_ROOM = 7 * 80 };

static void norm(bench *b)
{
    for (int i = 0; i < ROW_SIZES; i++) {
        b->l->norm_rows(b->out[0] + ROW_ROOM * i, b->in[0], b->in[1], b->in[2], b->out[1] + 20 * i, 0, 7, row_sizes[i],
                        1e-5f);
        b->l->norm_rows(b->out[2] + ROW_ROOM * i, b->in[0], b->in[1], b->in[2], b->in[3], 1, 7, row_sizes[i], 1e-5f);
    }
}

static void norm_grad(bench *b)
{
    for (int i = 0; i < ROW_SIZES; i++) {
        b->l->norm_grad_rows(b->out[0] + ROW_ROOM * i, b->in[0], b->in[1], b->in[2], b->in[3], NULL, b->out[1] + 90 * i,
                             b->out[2] + 90 * i, 7, row_sizes[i]);
        b->l->norm_grad_rows(b->out[3] + ROW_ROOM * i, b->in[0], b->in[1], b->in[2], b->in[3], b->in[4],
                             b->out[4] + 90 * i, b->out[5] + 90 * i, 7, row_sizes[i]);
    }
}

static void rows(bench *b)
{
    memcpy(b->out[0], b->in[5], sizeof b->out[0]);
    b->l->finish_rows(b->out[0], b->in[0], b->in[1], 5, 37);
    b->l->finish_rows(b->out[0] + 1000, NULL, b->in[1], 3, 19);
    b->l->column_sums(b->out[1], b->in[2], 9, 301); /* in order, whatever the vector */
    b->l->add(b->out[2], b->in[0], b->in[1], 307);
    b->l->scale_rows(b->out[3], b->in[0], b->in[1], b->in[2], 5, 37);
    b->l->scale_rows(b->out[4], b->in[0], b->in[1], NULL, 3, 5);
    b->l->scale_grad_rows(b->out[5], b->in[0], b->in[1], b->in[2], b->out[6], 9, 37);
    b->l->transpose(b->out[7], 35, b->in[3], 40, 35, 21);
}

static void softmax(bench *b)
{
    memcpy(b->out[0], b->in[0], sizeof b->out[0]);
    memcpy(b->out[2], b->in[0], sizeof b->out[2]);
    memcpy(b->out[3], b->in[1], sizeof b->out[3]);
    b->l->softmax_columns(b->out[0], 65, 37, 3.0f, b->out[1], 3);
    b->l->weights_columns(b->out[2], 65, 37, 3.0f, b->in[2], 3);
    b->l->softmax_grad_columns(b->out[3], b->in[3], 65, 37, 0.5f);
}

static void product(bench *b)
{
    static const int64_t widths[] = {1, 17, 40, 63, 70};
    for (int i = 0; i < 5; i++)
        for (int add = 0; add < 2; add++) {
            int64_t n = widths[i];
            float *c = b->out[2 * add] + i * 1000, *d = b->out[2 * add + 1] + i * 1000;
            b->l->product(&(simd_product){10, n, 33, b->in[0], 35, 1, b->in[1], n, c, n + 1, add});
            b->l->product(&(simd_product){10, n, 33, b->in[2], 1, 12, b->in[3], n, d, n + 1, add});
        }
}

/* Attention of PROBLEMS problems, as many at a time as the table takes. Problem i has its numbers
 * in blocks of its own. */
static void heads_of(bench *b, int64_t tokens, int64_t width, int at)
{
    simd_heads h = {tokens, width, 2 * width, width, width, 0.7f};
    int64_t size = tokens * width;
    for (int64_t first = 0; first < PROBLEMS; first += b->l->width) {
        const float *q[16], *v[16], *dy[16], *known[16];
        float *y[16], *logsum[16], *again[16], *dq[16], *dv[16];
        int64_t count = PROBLEMS - first < b->l->width ? PROBLEMS - first : b->l->width;
        for (int64_t i = 0; i < count; i++) {
            int64_t p = first + i;
            q[i] = b->in[0] + 2 * p * size, v[i] = b->in[1] + p * size, dy[i] = b->in[2] + p * size;
            y[i] = b->out[at] + p * size, again[i] = b->out[at + 1] + p * size;
            dq[i] = b->out[at + 2] + 2 * p * size, dv[i] = b->out[at + 3] + p * size;
            logsum[i] = b->out[8] + at * 1000 + p * tokens;
            known[i] = logsum[i];
        }
        b->l->heads_forward(&h, count, q, v, y, logsum, 1, 0, b->work);
        b->l->heads_forward(&h, count, q, v, again, logsum, 1, 1, b->work);
        b->l->heads_backward(&h, count, q, v, dy, known, 1, dq, dv, b->work);
    }
}

static void heads(bench *b)
{
    heads_of(b, 16, 6, 0); /* TNT's */
    heads_of(b, 5, 11, 4); /* more than eight channels */
}

static void depthwise(bench *b)
{
    simd_map m = {6, 11, 19, 7};
    for (int64_t c = 0; c < m.channels; c += b->l->width) {
        b->l->depthwise(&m, c, b->out[0], b->in[0], b->in[1], b->in[2], NULL, 0, b->work);
        b->l->depthwise(&m, c, b->out[1], b->in[0], b->in[1], NULL, b->in[3], 1, b->work);
        b->l->depthwise_dw(&m, c, b->out[2], b->out[3], b->in[0], b->in[4], b->work);
    }
}

static void update(bench *b)
{
    const simd_adamw k = {0.99f, 0.01f, 0.3f, 0.1f, 0.999f, 0.001f, 0.7f, 1e-8f, -INFINITY, INFINITY};
    for (int i = 0; i < 211; i++)
        b->out[2][i] = fabsf(b->in[3][i]);
    b->l->adamw(b->out[0], b->out[1], b->out[2], b->in[0], 211, &k);
    for (int i = 0; i < SUMS; i++)
        b->sum[i] = b->l->square_sum(b->in[1], 3 * i);
}

typedef struct check {
    const char *name;
    void (*run)(bench *b);
} check;

static const check checks[] = {
    {"norm", norm},       {"norm_grad", norm_grad}, {"rows", rows},           {"softmax", softmax},
    {"product", product}, {"heads", heads},         {"depthwise", depthwise}, {"update", update},
};

static int compare(const check *c, bench *got, bench *want)
{
    int different = 0;
    c->run(got);
    c->run(want);
    for (int k = 0; k < BUFFERS; k++)
        for (int i = 0; i < ROOM; i++)
            different += memcmp(&got->out[k][i], &want->out[k][i], sizeof(float)) != 0;
    for (int i = 0; i < SUMS; i++)
        different += memcmp(&got->sum[i], &want->sum[i], sizeof(double)) != 0;
    printf("%-8s %-10s %d elements differ from scalar%s\n", got->l->isa, c->name, different,
           different ? ": FAILED" : "");
    return !different;
}

static int table_check(const simd_kernels *l, bench *got, bench *want)
{
    int bad = 0;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        prepare(got, l);
        prepare(want, &simd_kernels_scalar);
        bad += !compare(&checks[i], got, want);
    }
    return bad;
}

int main(void)
{
    static const simd_kernels *const tables[] = {
#if defined(__x86_64__)
        &simd_kernels_avx512,
        &simd_kernels_avx2,
#elif defined(__aarch64__)
        &simd_kernels_neon,
#endif
        NULL
    };
    static bench got, want;
    int bad = 0;
    for (int i = 0; tables[i]; i++) {
        cpu_isa isa;
        if (cpu_isa_parse(&isa, tables[i]->isa) == BERLU_OK && cpu_has(isa))
            bad += table_check(tables[i], &got, &want);
    }
    return bad ? 1 : 0;
}
