/* test_known_answers.c - filled models give the numbers that timm gives.
 * SPDX-License-Identifier: MIT
 *
 * Weights and images are the known-answer fill (models/fill.h), so nothing is read. The table is
 * timm 1.0.30 in float64 on the same float32 weights, printed to six digits; the limits allow for
 * that rounding and for f32 arithmetic (timm's own f32 is within 2.1e-6 of these logits) and see
 * every mistake that was tried: a wrong eps moves a logit by 7.8e-4 or more, the tanh form of GELU
 * by 1.2e-4. Without arguments the models that take a moment run; with `full` the large ones (ctest
 * -C parity). */
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

typedef struct answer {
    const char *name;
    double y[5]; /* y[0][0] y[0][1] y[0][9] y[1][0] y[1][9] */
    double sum, loss, gradient, first_gradient;
} answer;

/* clang-format off */
static const answer timm[] = {
    {"vit_tiny", {0.727372, 0.839487, 0.010110, 1.096511, 0.058205}, 1567.9973, 6.656352, 42.54656, 18.89143},
    {"vit_small", {0.723455, 0.589566, -2.134229, 1.669295, -1.324748}, 1692.6296, 6.037476, 57.08758, 21.82360},
    {"vit_base", {0.980743, -0.832985, 0.793913, 1.105257, 0.413591}, 1644.4333, 7.381051, 70.51955, 19.75288},
    {"deit_tiny", {0.727372, 0.839487, 0.010110, 1.096511, 0.058205}, 1567.9973, 6.656352, 42.54656, 18.89143},
    {"deit_small", {0.723455, 0.589566, -2.134229, 1.669295, -1.324748}, 1692.6296, 6.037476, 57.08758, 21.82360},
    {"deit_tiny_distilled", {0.120347, 0.633212, -0.220683, 0.337023, 0.041785}, 1159.9747, 7.006927, 28.83872, 13.06252},
    {"deit_small_distilled", {0.706370, -0.464452, -1.106424, 1.205431, -0.532175}, 1186.1738, 6.563029, 41.34015, 15.11438},
    {"tnt_s", {1.186035, -0.071589, 0.216247, 0.638588, 0.042135}, 1602.6220, 7.180186, 49.34294, 18.51753},
    {"tnt_s_legacy", {1.046998, 0.011228, -0.289847, 0.884250, -0.478805}, 1604.9779, 7.278969, 48.00101, 19.21809},
    {"convnext_atto", {-0.074497, 1.889095, 1.412278, -0.170387, 1.254677}, 1617.0969, 8.056720, 35.61630, 18.01598},
    {"convnext_femto", {-0.926209, 0.017750, 3.035511, -0.366487, 2.612246}, 1672.6208, 7.188779, 40.11479, 18.77985},
    {"convnext_pico", {0.073313, -0.322714, 0.790227, -0.156575, 0.860920}, 1668.4270, 7.154074, 42.45472, 17.92575},
    {"convnext_nano", {0.055889, 1.777442, -1.338371, -0.173504, -1.417276}, 1611.0334, 7.227133, 45.60031, 17.74488},
    {"convnext_tiny", {1.006163, -0.463259, 1.316526, 0.998162, 0.959912}, 1622.0626, 6.674337, 50.22713, 16.84959},
    {"vit_tiny_cifar", {1.723025, 0.830789, -0.135948, 1.158291, -0.102755}, 14.4807, 2.044461, 47.45947, 26.54555},
    {"deit_tiny_cifar", {1.723025, 0.830789, -0.135948, 1.158291, -0.102755}, 14.4807, 2.044461, 47.45947, 26.54555},
    {"deit_tiny_distilled_cifar", {1.137259, 1.424841, 0.156195, 0.805250, 0.010449}, 11.9615, 2.788419, 42.42731, 23.41625},
    {"tnt_s_cifar", {1.022699, -0.264296, -0.303815, 1.365575, -0.140092}, 10.4739, 2.023712, 59.40472, 28.99543},
    {"convnext_atto_cifar", {0.964567, 0.810661, 1.711655, 1.024319, 1.492553}, 17.3399, 3.643006, 56.61725, 20.57085},
    {"convnext_femto_cifar", {1.244949, 0.441852, 1.338356, -0.634479, 1.919362}, 19.5827, 3.052048, 65.14061, 24.74110},
    {"convnext_pico_cifar", {0.061010, -1.005054, 0.428173, 0.445894, 0.717853}, 7.1789, 2.147611, 47.43748, 18.54904},
    {"convnext_nano_cifar", {-0.162910, 1.780370, -1.269995, 0.019559, -1.043374}, 15.9906, 2.236375, 67.10343, 19.43483},
    {"convnext_tiny_cifar", {0.262487, -0.632952, 0.622071, 0.769789, 0.446647}, 15.8930, 2.154111, 50.88278, 17.85356},
};
/* clang-format on */

/* Six printed digits: half a unit of the last one. */
static const double LOGIT = 2e-5, LOSS = 2e-5;

static void near(const char *name, const char *what, double got, double want, double within)
{
    if (!(fabs(got - want) <= within))
        fail_msg("%s: %s is %.9g, not %.9g: %.2g away, %.2g allowed", name, what, got, want, fabs(got - want), within);
}

static double norm_of(engine *e, int parameter, float *values)
{
    size_t count = (size_t)tensor_elements(graph_tensor(engine_graph(e), graph_param(engine_graph(e), parameter)));
    double sum = 0;
    assert_int_equal(engine_get(e, ARRAY_GRADIENT, parameter, values), BERLU_OK);
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    return sqrt(sum);
}

static int64_t largest_parameter(const graph *g)
{
    int64_t most = 0;
    for (int i = 0; i < graph_param_count(g); i++) {
        int64_t count = tensor_elements(graph_tensor(g, graph_param(g, i)));
        most = count > most ? count : most;
    }
    return most;
}

static void check_gradients(const answer *want, engine *e)
{
    static const char *const firsts[] = {"patch_embed.proj.weight", "pixel_embed.proj.weight", "stem.0.weight"};
    const graph *g = engine_graph(e);
    float *values = malloc((size_t)largest_parameter(g) * sizeof *values);
    double sum = 0, first = 0;
    assert_non_null(values);
    for (int i = 0; i < graph_param_count(g); i++) {
        double norm = norm_of(e, i, values);
        sum += norm * norm;
        for (size_t k = 0; k < COUNT(firsts); k++)
            if (strcmp(graph_tensor(g, graph_param(g, i))->name, firsts[k]) == 0)
                first = norm;
    }
    free(values);
    near(want->name, "the gradients' norm", sqrt(sum), want->gradient, 2e-5 * want->gradient);
    near(want->name, "the first convolution's gradient", first, want->first_gradient, 2e-5 * want->first_gradient);
}

static void check_logits(const answer *want, const float *y, int classes)
{
    const double got[] = {y[0], y[1], y[9], y[classes], y[classes + 9]};
    static const char *const names[] = {"y[0][0]", "y[0][1]", "y[0][9]", "y[1][0]", "y[1][9]"};
    double sum = 0;
    for (int i = 0; i < 2 * classes; i++)
        sum += fabs((double)y[i]);
    for (size_t i = 0; i < COUNT(got); i++)
        near(want->name, names[i], got[i], want->y[i], LOGIT);
    near(want->name, "the sum of |y|", sum, want->sum, 5.1e-5 + 2 * classes * 1e-6);
}

static void check(const answer *want)
{
    model *m = NULL;
    engine *e = NULL;
    const engine_options options = {
        .backend = cpu_backend(), .mode = ENGINE_TRAIN, .batch = 2, .loss = LOSS_CROSS_ENTROPY, .no_update = 1};
    if (model_create(&m, want->name, NULL) != BERLU_OK || engine_create(&e, m->graph, &options) != BERLU_OK ||
        weights_fill(e) != BERLU_OK)
        fail_msg("%s: %s", want->name, berlu_last_error());
    fill_input(engine_input(e), 2 * 3 * (size_t)m->config.image_size * (size_t)m->config.image_size);
    for (int i = 0; i < 2; i++)
        engine_labels(e)[i] = fill_labels[i];
    if (engine_forward(e, &(engine_step){0}) != BERLU_OK || engine_backward(e) != BERLU_OK)
        fail_msg("%s: %s", want->name, berlu_last_error());
    check_logits(want, engine_logits(e), m->config.classes);
    near(want->name, "the loss", engine_loss(e), want->loss, LOSS);
    check_gradients(want, e);
    engine_free(e);
    model_free(m);
}

static int is_small(const char *name)
{
    return strstr(name, "_cifar") != NULL;
}

static void filled_models_answer_as_timm(void **state)
{
    const int full = *(const int *)*state;
    for (size_t i = 0; i < COUNT(timm); i++)
        if (is_small(timm[i].name) != full)
            check(&timm[i]);
}

int main(int argc, char **argv)
{
    int full = argc > 1 && strcmp(argv[1], "full") == 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(filled_models_answer_as_timm, &full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
