/* ref_loss.c - cross entropy and distillation. SPDX-License-Identifier: MIT
 *
 * A row of K logits costs little beside the network, so both backends compute these in double.
 * Definitions are those of DeiT and timm; graph/op_loss.c lists the ops. Rows with a negative label
 * are left out. */
#include <math.h>

#include "cpu/real.h"

/* p = softmax(z / tau); returns the log of the sum, so that log p_k = z_k / tau - that. */
static double softmax(const real *z, int64_t classes, double tau, real *p)
{
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; k++)
        top = z[k] / tau > top ? z[k] / tau : top;
    for (int64_t k = 0; k < classes; k++)
        sum += exp(z[k] / tau - top);
    double logsum = top + log(sum);
    for (int64_t k = 0; k < classes; k++)
        p[k] = (real)exp(z[k] / tau - logsum);
    return isnan(sum) ? NAN : logsum;
}

static int64_t images_counted(const op_call *c)
{
    int64_t counted = 0;
    for (int64_t i = 0; i < c->batch; i++)
        counted += c->attr->soft || ((const int32_t *)c->in[1].data)[i] >= 0;
    return counted ? counted : 1;
}

/* The target of class k for image i. */
static double target_of(const op_call *c, int64_t i, int64_t k, int64_t classes)
{
    if (c->attr->soft)
        return ((const real *)c->in[1].data)[i * classes + k];
    double low = c->step->smoothing / (double)classes;
    return low + (((const int32_t *)c->in[1].data)[i] == k ? 1 - c->step->smoothing : 0);
}

static int is_counted(const op_call *c, int64_t i)
{
    return c->attr->soft || ((const int32_t *)c->in[1].data)[i] >= 0;
}

void REF(cross_entropy)(const op_call *c)
{
    int64_t classes = c->in[0].channels;
    double total = 0;
    for (int64_t i = 0; i < c->batch; i++) {
        const real *z = (const real *)c->in[0].data + i * classes;
        double logsum = softmax(z, classes, 1, (real *)c->out[0].data + i * classes);
        for (int64_t k = 0; k < classes && is_counted(c, i); k++) {
            double t = target_of(c, i, k, classes);
            total += t != 0 ? t * (logsum - z[k]) : 0;
        }
        if (is_counted(c, i) && isnan(logsum))
            total = NAN;
    }
    c->result->loss_part[0] = total / (double)images_counted(c);
    c->result->fault |= !isfinite(total);
}

void REF(cross_entropy_grad)(const op_call *c)
{
    int64_t classes = c->in[0].channels;
    double factor =
        c->step->loss_scale * (c->attr->distill ? 1 - c->step->distill_alpha : 1) / (double)images_counted(c);
    for (int64_t i = 0; i < c->batch; i++) {
        const real *p = (const real *)c->in[0].data + i * classes;
        real *dz = (real *)c->out[0].data + i * classes;
        double sum = 0;
        for (int64_t k = 0; k < classes; k++)
            sum += target_of(c, i, k, classes);
        for (int64_t k = 0; k < classes; k++)
            dz[k] = is_counted(c, i) ? (real)(factor * (p[k] * sum - target_of(c, i, k, classes))) : 0;
    }
}

/* ---- distillation ---------------------------------------------------------------------------- */

static int64_t argmax(const real *z, int64_t classes)
{
    int64_t best = 0;
    for (int64_t k = 1; k < classes; k++)
        best = z[k] > z[best] ? k : best;
    return best;
}

/* sum over the classes of q (log q - log r), both at temperature tau. */
static double divergence(const real *teacher, const real *z, int64_t classes, double tau, double logsum, real *r)
{
    double other = softmax(teacher, classes, tau, r), sum = 0; /* r holds q temporarily */
    for (int64_t k = 0; k < classes; k++)
        sum += exp(teacher[k] / tau - other) * ((teacher[k] / tau - other) - (z[k] / tau - logsum));
    softmax(z, classes, tau, r);
    return sum;
}

void REF(distill)(const op_call *c)
{
    int64_t classes = c->in[0].channels;
    double tau = c->attr->distill == DISTILL_HARD ? 1 : c->step->distill_tau, total = 0;
    for (int64_t i = 0; i < c->batch; i++) {
        const real *z = (const real *)c->in[0].data + i * classes, *teacher = (const real *)c->in[1].data + i * classes;
        real *r = (real *)c->out[0].data + i * classes;
        double logsum = softmax(z, classes, tau, r);
        if (c->attr->distill == DISTILL_HARD)
            total += (logsum - z[argmax(teacher, classes)]) / (double)c->batch;
        else
            total += tau * tau * divergence(teacher, z, classes, tau, logsum, r) / (double)(c->batch * classes);
    }
    c->result->loss_part[1] = total;
    c->result->fault |= !isfinite(total);
}

void REF(distill_grad)(const op_call *c)
{
    int64_t classes = c->in[0].channels;
    int hard = c->attr->distill == DISTILL_HARD;
    double tau = hard ? 1 : c->step->distill_tau, weight = c->step->loss_scale * c->step->distill_alpha;
    double factor = weight * (hard ? 1 / (double)c->batch : tau / (double)(c->batch * classes));
    for (int64_t i = 0; i < c->batch; i++) {
        const real *r = (const real *)c->in[0].data + i * classes, *teacher = (const real *)c->in[1].data + i * classes;
        real *dz = (real *)c->out[0].data + i * classes;
        softmax(teacher, classes, tau, dz);
        int64_t best = argmax(teacher, classes);
        for (int64_t k = 0; k < classes; k++)
            dz[k] = (real)(factor * (r[k] - (hard ? (double)(k == best) : (double)dz[k])));
    }
}
