/* ref_attention.c - attention one row of weights at a time, by the textbook.
 * SPDX-License-Identifier: MIT
 *
 * p = softmax(scale q k^T), y = p v. Backward with dp = dy v^T:  ds = p (dp - sum(p dp)), dq =
 *                                                                scale ds k,
 * dk = scale ds^T q,  dv = p^T dy. p is recomputed from the saved log-sum. */
#include <math.h>
#include <string.h>

#include "cpu/heads.h"
#include "cpu/real.h"

/* p[j] = exp(scale q_i k_j - logsum); with `logsum` NAN it is computed and returned. */
static double weights_row(const heads *h, const real *q, const real *k, double logsum, double *p)
{
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < h->tokens; j++) {
        p[j] = 0;
        for (int64_t l = 0; l < h->width; l++)
            p[j] += (double)q[l] * k[j * h->stride_k + l];
        p[j] *= h->scale;
        top = p[j] > top ? p[j] : top;
    }
    for (int64_t j = 0; j < h->tokens && isnan(logsum); j++)
        sum += exp(p[j] - top);
    if (isnan(logsum))
        logsum = top + log(sum);
    for (int64_t j = 0; j < h->tokens; j++)
        p[j] = exp(p[j] - logsum);
    return logsum;
}

size_t REF(attention_workspace)(const op_call *c)
{
    const tensor_info *x = c->in[c->op == OP_ATTENTION ? 0 : 1].info;
    return 2 * (size_t)x->size[x->rank - 2] * sizeof(double);
}

void REF(attention)(const op_call *c)
{
    heads h = heads_make(c, 0, 1);
    double *p = c->workspace;
    const real *x = c->in[0].data, *v_apart = c->in[1].data, *given = c->in[2].data;
    real *y = c->out[0].data, *logsum = c->out[1].data;
    for (int64_t i = 0; i < h.groups * h.heads; i++) {
        int64_t row = i / h.heads * h.tokens, head = i % h.heads;
        const real *q = x + row * h.stride_k + head * h.width, *k = q + h.dim;
        const real *v = v_apart ? v_apart + row * h.stride_v + head * h.width : k + h.dim;
        for (int64_t t = 0; t < h.tokens; t++) {
            double known = given ? given[(row + t) * h.heads + head] : NAN;
            double found = weights_row(&h, q + t * h.stride_k, k, known, p);
            if (logsum)
                logsum[(row + t) * h.heads + head] = (real)found;
            for (int64_t l = 0; l < h.width; l++) {
                double sum = 0;
                for (int64_t j = 0; j < h.tokens; j++)
                    sum += p[j] * v[j * h.stride_v + l];
                y[(row + t) * h.dim + head * h.width + l] = (real)sum;
            }
        }
    }
}

typedef struct head_grad {
    const real *q, *k, *v, *dy;
    real *dq, *dk, *dv;
} head_grad;

static void grad_row(const heads *h, const head_grad *g, int64_t t, double logsum, double *p, double *ds)
{
    const real *q = g->q + t * h->stride_k, *dy = g->dy + t * h->dim;
    double dot = 0;
    weights_row(h, q, g->k, logsum, p);
    for (int64_t j = 0; j < h->tokens; j++) {
        ds[j] = 0;
        for (int64_t l = 0; l < h->width; l++)
            ds[j] += (double)dy[l] * g->v[j * h->stride_v + l];
        dot += p[j] * ds[j];
    }
    for (int64_t l = 0; l < h->width; l++) {
        double sum = 0;
        for (int64_t j = 0; j < h->tokens; j++) {
            double s = h->scale * p[j] * (ds[j] - dot);
            sum += s * g->k[j * h->stride_k + l];
            g->dk[j * h->stride_k + l] += (real)(s * q[l]);
            g->dv[j * h->stride_v + l] += (real)(p[j] * dy[l]);
        }
        g->dq[t * h->stride_k + l] = (real)sum;
    }
}

void REF(attention_grad)(const op_call *c)
{
    heads h = heads_make(c, 1, 2);
    double *p = c->workspace, *ds = p + h.tokens;
    const real *x = c->in[1].data, *v_apart = c->in[2].data, *logsum = c->in[3].data, *dy = c->in[0].data;
    real *dx = c->out[0].data, *dv_apart = c->out[1].data;
    memset(dx, 0, (size_t)(c->out[0].rows * c->out[0].channels) * sizeof *dx);
    if (dv_apart)
        memset(dv_apart, 0, (size_t)(c->out[1].rows * c->out[1].channels) * sizeof *dx);
    for (int64_t i = 0; i < h.groups * h.heads; i++) {
        int64_t row = i / h.heads * h.tokens, head = i % h.heads, at = row * h.stride_k + head * h.width;
        int64_t at_v = row * h.stride_v + head * h.width;
        head_grad g = {.q = x + at, .k = x + at + h.dim, .dq = dx + at, .dk = dx + at + h.dim};
        g.v = v_apart ? v_apart + at_v : g.k + h.dim;
        g.dv = dv_apart ? dv_apart + at_v : g.dk + h.dim;
        g.dy = dy + row * h.dim + head * h.width;
        for (int64_t t = 0; t < h.tokens; t++)
            grad_row(&h, &g, t, logsum[(row + t) * h.heads + head], p, ds);
    }
}
