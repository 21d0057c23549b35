/* ref_update.c - clipping, AdamW, SGD and the average of the weights. SPDX-License-Identifier: MIT
 *
 * Exactly torch.optim.AdamW, torch.optim.SGD and clip_grad_norm_, in their order of operations
 * (decay first, eps outside the root, after the bias correction), then the parameter's bounds.
 * Scalars are double and rounded once. The clip factor is not applied to the gradients in memory:
 * readers multiply. */
#include <assert.h>
#include <math.h>

#include "cpu/norm_store.h"
#include "cpu/real.h"

static const real *gradient_of(const param_table *p, const param_span *s)
{
    return (const real *)p->gradient + s->gradient;
}

void REF(accumulate)(const op_call *c)
{
    int64_t total = c->params->total;
    const real *partial = c->params->partial_sums, *g = c->params->gradient;
    uint32_t levels = sum_levels(c->step);
    int level = sum_level(c->step);
    assert(c->step->micro_batch < c->step->micro_batches && (partial || (levels == 0 && level < 0)));
    real *to = level < 0 ? c->params->gradient : (real *)c->params->partial_sums + level * total;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < total; i++) {
        real sum = g[i];
        for (int k = 0; levels >> k; k++)
            if (levels >> k & 1)
                sum = partial[k * total + i] + sum;
        to[i] = sum;
    }
}

void REF(grad_norm)(const op_call *c)
{
    const param_table *p = c->params;
    double total = 0;
    for (int i = 0; i < p->count; i++) {
        double sum = 0;
        for (int64_t j = 0; span_moves(&p->spans[i], c->step) && j < p->spans[i].count; j++)
            sum += (double)gradient_of(p, &p->spans[i])[j] * gradient_of(p, &p->spans[i])[j];
        total += sum;
    }
    norm_store(c, sqrt(total));
}

static real within(real value, const param_span *span) /* a NaN stays */
{
    value = value < (real)span->low ? (real)span->low : value;
    return value > (real)span->high ? (real)span->high : value;
}

void REF(adamw)(const op_call *c)
{
    const param_table *p = c->params;
    const engine_step *s = c->step;
    for (int i = 0; i < p->count && !c->result->fault; i++) {
        const param_span *span = &p->spans[i];
        if (!span_moves(span, s))
            continue;
        double lr = s->lr * (span->activation ? s->act_lr : 1);
        const real *g = gradient_of(p, span);
        real *w = (real *)p->weight + span->offset, *m = (real *)p->moment1 + span->offset;
        real *v = (real *)p->moment2 + span->offset;
        real keep = (real)(1 - lr * span_decay(span, s)), step = (real)(lr / s->correction1),
             root = (real)sqrt(s->correction2);
        real toward = (real)(1 - s->beta1), b2 = (real)s->beta2, rest = (real)(1 - s->beta2),
             clip = (real)c->result->clip_factor;
        for (int64_t j = 0; j < span->count; j++) {
            real d = g[j] * clip;
            m[j] += toward * (d - m[j]);
            v[j] = b2 * v[j] + rest * d * d;
            w[j] = within(w[j] * keep - step * m[j] / ((real)sqrt((double)v[j]) / root + (real)s->eps), span);
        }
    }
}

void REF(sgd)(const op_call *c)
{
    const param_table *p = c->params;
    const engine_step *s = c->step;
    for (int i = 0; i < p->count && !c->result->fault; i++) {
        const param_span *span = &p->spans[i];
        if (!span_moves(span, s))
            continue;
        real wd = (real)span_decay(span, s), mu = (real)s->momentum;
        real lr = (real)(s->lr * (span->activation ? s->act_lr : 1));
        const real *g = gradient_of(p, span);
        real *w = (real *)p->weight + span->offset, *buffer = (real *)p->moment1 + span->offset;
#pragma omp parallel for num_threads(c->threads) schedule(static)
        for (int64_t j = 0; j < span->count; j++) {
            real d = g[j] * (real)c->result->clip_factor + wd * w[j];
            if (mu != 0) {
                buffer[j] = (s->count == 1 ? 0 : mu * buffer[j]) + d;
                d = p->nesterov ? d + mu * buffer[j] : buffer[j];
            }
            w[j] = within(w[j] - lr * d, span);
        }
    }
}

void REF(ema)(const op_call *c)
{
    const param_table *p = c->params;
    real rest = (real)(1 - c->step->ema_decay);
    for (int i = 0; i < p->count && !c->result->fault; i++) {
        const real *w = (const real *)p->weight + p->spans[i].offset;
        real *average = (real *)p->ema + p->spans[i].offset;
#pragma omp parallel for num_threads(c->threads) schedule(static)
        for (int64_t j = 0; j < p->spans[i].count; j++)
            average[j] = within(average[j] + rest * (w[j] - average[j]), &p->spans[i]);
    }
}

/* Weights and branches have one dtype on the CPU, so there are no copies to refresh. */
void REF(shadow)(const op_call *c)
{
    assert(!c->params->shadow);
    (void)c;
}
