/* simulate.c - one wide random network of real layers, to compare with the theory of infinitely
 * wide ones. SPDX-License-Identifier: MIT
 *
 * Two inputs of variance q and correlation c0 pass through fully connected layers with the weights
 * of depth.h, activations by the f32 kernels. Weights are drawn on use (Philox: purpose analyze,
 * the layer as epoch, the weight as index), so a network of any depth needs four rows of memory and
 * its result does not depend on the number of threads. */
#include <math.h>
#include <stdlib.h>

#include "analyze/depth.h"
#include "base/philox.h"
#include "base/status.h"
#include "base/threads.h"
#include "simd/normal.h"

enum { BIAS_DRAW = 1 };

typedef struct network {
    const berlu_act *act;
    size_t width;
    uint64_t seed;
    int layer;
    double weight, bias; /* deviations */
    float *in[2], *out[2];
} network;

/* Unit `unit` of both inputs: they share weights, so each weight is drawn once. */
static void unit_run(void *context, size_t unit)
{
    network *n = context;
    double sum[2] = {0, 0};
    for (size_t i = 0; i < n->width; i += 4) {
        philox_words words = philox_draw(n->seed, PURPOSE_ANALYZE, (uint32_t)n->layer, unit * n->width + i, 0);
        for (size_t k = 0; k < 4 && i + k < n->width; k++) {
            double w = normal_of_word(words.w[k]);
            sum[0] += w * n->in[0][i + k];
            sum[1] += w * n->in[1][i + k];
        }
    }
    double bias =
        n->bias * normal_of_word(philox_draw(n->seed, PURPOSE_ANALYZE, (uint32_t)n->layer, unit, BIAS_DRAW).w[0]);
    for (int k = 0; k < 2; k++)
        n->out[k][unit] = (float)(n->weight * sum[k] + bias);
}

/* 1 - the uncentred correlation of the two rows, which is what the theory follows. */
static double gap_of(const float *x, const float *y, size_t count)
{
    double xx = 0, yy = 0, apart = 0;
    for (size_t i = 0; i < count; i++) {
        xx += (double)x[i] * x[i];
        yy += (double)y[i] * y[i];
    }
    for (size_t i = 0; i < count; i++) {
        double d = x[i] / sqrt(xx) - y[i] / sqrt(yy);
        apart += d * d;
    }
    return apart / 2;
}

static void inputs_draw(network *n, double q, double c0)
{
    for (size_t i = 0; i < n->width; i++) {
        philox_words words = philox_draw(n->seed, PURPOSE_ANALYZE, 0, i, 0);
        double u = normal_of_word(words.w[0]), v = normal_of_word(words.w[1]);
        n->out[0][i] = (float)(sqrt(q) * u);
        n->out[1][i] = (float)(sqrt(q) * (c0 * u + sqrt(1 - c0 * c0) * v));
    }
}

berlu_status depth_simulate(depth *d, const berlu_act *act, const depth_settings *s)
{
    network n = {.act = act, .width = s->width, .seed = s->seed, .bias = sqrt(d->sb2)};
    n.weight = sqrt(d->sw2 / (double)s->width);
    float *memory = calloc(s->width, 4 * sizeof *memory);
    if (!memory)
        return berlu_fail_memory(s->width * 4 * sizeof *memory, "the simulated network");
    for (int k = 0; k < 2; k++) {
        n.in[k] = memory + (size_t)k * s->width;
        n.out[k] = memory + (size_t)(k + 2) * s->width;
    }
    inputs_draw(&n, s->q, s->c0);
    berlu_status status = BERLU_OK;
    size_t point = 0;
    for (n.layer = 1; n.layer <= s->layers; n.layer++) {
        for (int k = 0; k < 2; k++)
            TRY_DONE(berlu_act_forward(act, BERLU_F32, n.in[k], n.out[k], n.width));
        threads_for(s->threads, n.width, unit_run, &n);
        if (point < d->count && d->curve[point].layer == n.layer)
            d->curve[point++].simulated = gap_of(n.out[0], n.out[1], n.width);
    }
done:
    free(memory);
    return status;
}
