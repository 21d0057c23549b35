/* update.c - the norm of all gradients, and AdamW in one pass. SPDX-License-Identifier: MIT
 *
 * Clipping costs nothing: grad_norm leaves the factor in the step's result, and adamw multiplies as
 * it reads. SGD and the average of the weights use the reference kernels, whose plain loops over
 * elements already run at the speed of memory. */
#include <assert.h>
#include <math.h>

#include "base/threads.h"
#include "cpu/blocks.h"
#include "cpu/kernels.h"
#include "cpu/norm_store.h"

enum { SQUARES = 4096, PIECE = 16384 };

static int64_t pieces_of(const param_table *p)
{
    int64_t count = 0;
    for (int i = 0; i < p->count; i++)
        count += p->spans[i].gradient < 0 ? 0 : blocks_of(p->spans[i].count, SQUARES).count;
    return count;
}

size_t cpu_grad_norm_workspace(const op_call *c)
{
    return (size_t)pieces_of(c->params) * sizeof(double);
}

void cpu_grad_norm(const op_call *c)
{
    const param_table *p = c->params;
    const float *gradient = p->gradient;
    double *part = c->workspace;
    int64_t parts = 0;
#pragma omp parallel num_threads(c->threads)
    {
        int64_t before = 0; /* the same in every thread */
        for (int i = 0; i < p->count; i++) {
            if (!span_moves(&p->spans[i], c->step))
                continue;
            blocks b = blocks_of(p->spans[i].count, SQUARES);
            assert(p->spans[i].gradient + p->spans[i].count <= p->total);
#pragma omp for schedule(static) nowait
            for (int64_t j = 0; j < b.count; j++)
                part[before + j] =
                    simd_of(c)->square_sum(gradient + p->spans[i].gradient + block_begin(&b, j), block_rows(&b, j));
            before += b.count;
        }
#pragma omp single
        parts = before;
    }
    norm_store(c, sqrt(tree_sum(part, (size_t)parts)));
}

static simd_adamw constants(const op_call *c, const param_span *span)
{
    const engine_step *s = c->step;
    double lr = s->lr * (span->activation ? s->act_lr : 1);
    return (simd_adamw){.keep = (float)(1 - lr * span_decay(span, s)),
                        .step = (float)(lr / s->correction1),
                        .root = (float)sqrt(s->correction2),
                        .toward = (float)(1 - s->beta1),
                        .beta2 = (float)s->beta2,
                        .rest = (float)(1 - s->beta2),
                        .clip = (float)c->result->clip_factor,
                        .eps = (float)s->eps,
                        .low = span->low,
                        .high = span->high};
}

void cpu_adamw(const op_call *c)
{
    const param_table *p = c->params;
    const float *gradient = p->gradient;
    if (c->result->fault)
        return;
#pragma omp parallel num_threads(c->threads)
    for (int i = 0; i < p->count; i++) {
        const param_span *span = &p->spans[i];
        if (!span_moves(span, c->step))
            continue;
        simd_adamw k = constants(c, span);
        blocks b = blocks_of(span->count, PIECE);
#pragma omp for schedule(static) nowait
        for (int64_t j = 0; j < b.count; j++) {
            int64_t at = span->offset + block_begin(&b, j);
            simd_of(c)->adamw((float *)p->weight + at, (float *)p->moment1 + at, (float *)p->moment2 + at,
                              gradient + span->gradient + block_begin(&b, j), block_rows(&b, j), &k);
        }
    }
}
