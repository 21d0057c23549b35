/* test_golden.c - micro models against timm, gradient by gradient. SPDX-License-Identifier: MIT
 *
 * tests/golden/models_micro.safetensors holds logits, loss and, for every parameter, the gradient's
 * norm and eight of its values, made by tools/golden_models.py with timm in float64. Weights and
 * images are the known-answer fill; activation parameters have a fill of their own here (as in
 * tools/reference.py), away from 1, where an activation is a line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "models/fill.h"
#include "models/models.h"
#include "models/weights.h"

enum { IMAGES = 2, CLASSES = 10, SAMPLES = 8 };

static safetensors *golden;

static int golden_open(void **state)
{
    (void)state;
    char path[4096];
    const char *root = getenv("BERLU_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/golden/models_micro.safetensors", root ? root : ".");
    return safetensors_open(&golden, path) == BERLU_OK ? 0 : -1;
}

static int golden_close(void **state)
{
    (void)state;
    safetensors_close(golden);
    return 0;
}

static const st_tensor *wanted(const char *model_name, const char *act, int per_channel, const char *what)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s/%s/%s", model_name, act, per_channel ? "channel" : "layer", what);
    const st_tensor *t = safetensors_find(golden, name);
    if (!t)
        fail_msg("no tensor %s", name);
    return t;
}

static int ends(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static void fill_activations(engine *e)
{
    const graph *g = engine_graph(e);
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *p = graph_tensor(g, graph_param(g, i));
        int alpha = ends(p->name, ".act.alpha"), eps = ends(p->name, ".act.eps");
        if (!alpha && !eps)
            continue;
        float values[4096];
        for (int64_t k = 0; k < p->size[0]; k++) {
            double v = fill_unit(fill_hash(p->name), (uint32_t)k);
            values[k] = (float)(alpha ? 0.2 + 0.15 * v : 0.6 + 0.3 * v);
        }
        assert_int_equal(engine_set(e, ARRAY_WEIGHT, i, values), BERLU_OK);
    }
}

/* How close: gradients relative to their own norm, and absolute for what is zero by symmetry (the
 * bias of keys). The f64 engine differs from timm by the rounding to float of its logits and of the
 * stored rows alone. The f32 engine is held ten times closer than the parity promised at full
 * size. */
typedef struct limits {
    const backend *(*backend)(void);
    double logit, loss, gradient, zero;
} limits;
static const limits reference = {cpu_f64_backend, 5e-7, 1e-12, 2e-7, 1e-9},
                    fast = {cpu_backend, 2e-5, 1e-5, 1e-4, 1e-6};

static void check_gradient(const char *place, engine *e, int parameter, const float want[1 + SAMPLES],
                           const limits *within_limits)
{
    const graph *g = engine_graph(e);
    const tensor_info *p = graph_tensor(g, graph_param(g, parameter));
    size_t count = (size_t)tensor_elements(p);
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    assert_int_equal(engine_get(e, ARRAY_GRADIENT, parameter, values), BERLU_OK);
    double sum = 0, within = fmax(within_limits->gradient * (double)want[0], within_limits->zero);
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    if (!(fabs(sqrt(sum) - (double)want[0]) <= within))
        fail_msg("%s: %s: gradient norm %.9g, not %.9g", place, p->name, sqrt(sum), (double)want[0]);
    for (size_t k = 0; k < SAMPLES; k++) {
        double got = (double)values[k * count / SAMPLES];
        if (!(fabs(got - (double)want[1 + k]) <= within))
            fail_msg("%s: %s: gradient %zu is %.9g, not %.9g", place, p->name, k * count / SAMPLES, got,
                     (double)want[1 + k]);
    }
    free(values);
}

static void check_logits(const char *place, const st_tensor *want, engine *e, double within)
{
    double logits[IMAGES * CLASSES];
    assert_int_equal(st_read_f64(want, logits), BERLU_OK);
    for (int i = 0; i < IMAGES * CLASSES; i++)
        if (!(fabs((double)engine_logits(e)[i] - logits[i]) <= within))
            fail_msg("%s: logit %d is %.9g, not %.9g", place, i, (double)engine_logits(e)[i], logits[i]);
}

static void check_answers(const char *name, const char *act, int per_channel, engine *e, const limits *within)
{
    char place[128];
    double loss;
    snprintf(place, sizeof place, "%s %s %s", name, act, per_channel ? "channel" : "layer");
    assert_int_equal(st_read_f64(wanted(name, act, per_channel, "loss"), &loss), BERLU_OK);
    check_logits(place, wanted(name, act, per_channel, "logits"), e, within->logit);
    if (!(fabs(engine_loss(e) - loss) <= within->loss))
        fail_msg("%s: the loss is %.15g, not %.15g", place, engine_loss(e), loss);

    const st_tensor *grads = wanted(name, act, per_channel, "grads");
    int parameters = graph_param_count(engine_graph(e));
    assert_int_equal(grads->shape[0], parameters);
    float *rows = malloc(grads->count * sizeof *rows);
    assert_non_null(rows);
    assert_int_equal(st_read_f32(grads, rows), BERLU_OK);
    for (int i = 0; i < parameters; i++)
        check_gradient(place, e, i, rows + i * (1 + SAMPLES), within);
    free(rows);
}

/* The same weights in a plan without gradients, without a loss. */
static void check_inference(const char *name, const char *act, int per_channel, const model *m, engine *train,
                            const limits *within)
{
    engine *e = NULL;
    const engine_options how = {.backend = within->backend(), .batch = IMAGES, .share = train};
    if (engine_create(&e, m->graph, &how) != BERLU_OK)
        fail_msg("%s %s: %s", name, act, berlu_last_error());
    fill_input(engine_input(e), IMAGES * 3 * 32 * 32);
    assert_int_equal(engine_forward(e, &(engine_step){0}), BERLU_OK);
    check_logits(name, wanted(name, act, per_channel, "logits"), e, within->logit);
    engine_free(e);
}

static void check(const char *name, const char *act, int per_channel, engine_keep keep, const limits *within)
{
    model *m = NULL;
    engine *e = NULL;
    const model_options what = {.acts = &act, .act_count = 1, .per_channel = per_channel};
    const engine_options how = {.backend = within->backend(),
                                .mode = ENGINE_TRAIN,
                                .batch = IMAGES,
                                .keep = keep,
                                .loss = LOSS_CROSS_ENTROPY,
                                .no_update = 1};
    if (model_create(&m, name, &what) != BERLU_OK || engine_create(&e, m->graph, &how) != BERLU_OK ||
        weights_fill(e) != BERLU_OK)
        fail_msg("%s %s: %s", name, act, berlu_last_error());
    fill_activations(e);
    fill_input(engine_input(e), IMAGES * 3 * 32 * 32);
    for (int i = 0; i < IMAGES; i++)
        engine_labels(e)[i] = fill_labels[i];
    if (engine_forward(e, &(engine_step){0}) != BERLU_OK || engine_backward(e) != BERLU_OK)
        fail_msg("%s %s: %s", name, act, berlu_last_error());
    check_answers(name, act, per_channel, e, within);
    check_inference(name, act, per_channel, m, e, within);
    engine_free(e);
    model_free(m);
}

static const char *const models[] = {"vit_micro", "deit_micro", "tnt_micro", "convnext_micro"};

static void the_f64_engine_equals_timm_in_every_gradient(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(models); i++) {
        check(models[i], "gelu", 0, KEEP_INPUT, &reference);
        check(models[i], "prelu", 0, KEEP_INPUT, &reference);
        check(models[i], "prelu", 1, KEEP_INPUT, &reference);
        check(models[i], "berlu:learn=alpha+eps", 1, KEEP_INPUT, &reference);
    }
}

/* prelu is left out here: an input that f32 rounds across its kink has another slope, and one such
 * input among 10^5 moves a gradient by more than rounding does. */
static void the_f32_engine_equals_timm_with_smooth_activations(void **state)
{
    (void)state;
    static const char *const acts[] = {"berlu:eps=0.5", "berlu:learn=alpha+eps"};
    for (size_t i = 0; i < COUNT(models); i++) {
        check(models[i], "gelu", 0, KEEP_INPUT, &fast);
        check(models[i], "gelu", 0, KEEP_BOTH, &fast);
        for (size_t a = 0; a < COUNT(acts); a++)
            for (int per_channel = 0; per_channel < 2; per_channel++)
                check(models[i], acts[a], per_channel, KEEP_INPUT, &fast);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_f64_engine_equals_timm_in_every_gradient),
        cmocka_unit_test(the_f32_engine_equals_timm_with_smooth_activations),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
