/* test_network.c - analyses of trained networks: singular values against LAPACK's, the bound of a
 * branch against the branch, the loss against an evaluation. SPDX-License-Identifier: MIT
 *
 * tests/golden/svd.tsv is made by tools/golden_svd.py. */
#include <math.h>

#include "../train/runs.h"
#include "analyze/branch.h"
#include "analyze/regions.h"
#include "analyze/svd.h"
#include "train/eval_run.h"

/* ---- singular values ------------------------------------------------------------------------- */

/* The matrices of the tool, by name. */
static void matrix_fill(float *out, const char *kind, size_t rows, size_t columns)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++) {
            float *value = &out[i * columns + k];
            if (strcmp(kind, "hilbert") == 0)
                *value = (float)(1.0 / (double)(i + k + 1));
            else if (strcmp(kind, "rank_one") == 0)
                *value = (float)(i + 1) * ((float)k - 2);
            else {
                x = 1664525 * x + 1013904223;
                *value = (float)((double)(x >> 8) * 0x1p-24 - 0.5);
                if (strcmp(kind, "graded") == 0)
                    *value *= ldexpf(1, -(int)(40 * k / (columns - 1)));
            }
        }
}

/* Both errors are some ulp of the largest value: 96 vectors leave less than 100 of them. */
static void singular_values_are_those_of_lapack(void **state)
{
    (void)state;
    char path[4096], line[1 << 16];
    snprintf(path, sizeof path, "%s/tests/golden/svd.tsv", getenv("BERLU_SOURCE_DIR"));
    FILE *file = fopen(path, "r");
    size_t cases = 0;
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); cases += *line != '#') {
        char kind[32], *at = line;
        size_t rows, columns;
        int used;
        if (*line == '#')
            continue;
        assert_int_equal(sscanf(line, "%31s %zu %zu%n", kind, &rows, &columns, &used), 3);
        size_t count = rows < columns ? rows : columns;
        float *matrix = calloc(rows * columns, sizeof *matrix);
        double *values = calloc(count, sizeof *values), first = 0;
        matrix_fill(matrix, kind, rows, columns);
        assert_int_equal(singular_values(values, matrix, rows, columns), BERLU_OK);
        at += used;
        for (size_t i = 0; i < count; i++) {
            double want = strtod(at, &at);
            first = i ? first : want;
            if (!(fabs(values[i] - want) <= 2e-14 * first))
                fail_msg("%s %zu x %zu, value %zu: %.17g instead of %.17g", kind, rows, columns, i, values[i], want);
        }
        free(matrix);
        free(values);
    }
    fclose(file);
    assert_int_equal(cases, 15);
}

static void a_matrix_with_a_nan_has_no_singular_values(void **state)
{
    (void)state;
    const float matrix[6] = {1, 2, NAN, 4, 5, 6}, zero[4] = {0};
    double values[2];
    assert_int_equal(singular_values(values, matrix, 2, 3), BERLU_OK);
    assert_true(isnan(values[0]) && isnan(values[1]));
    assert_int_equal(singular_values(values, zero, 2, 2), BERLU_OK);
    assert_true(values[0] == 0 && values[1] == 0);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static char trained[FOLDER_PATH];

static int runs_make(void **state)
{
    (void)state;
    static const char *const convnext[] = {"model=convnext_micro", "patch=", "image_size=", "epochs=1",
                                           "synthetic_images=32",  NULL};
    char other[FOLDER_PATH];
    run_whole(run_place(trained, "analyze_network"), NULL);
    run_whole(run_place(other, "analyze_convnext"), convnext);
    return 0;
}

static void open_run(opened *o, const char *run, size_t images)
{
    const opened_options options = {.name = run, .images = images, .test = 1, .batch = 7, .threads = 1};
    if (opened_make(o, &options) != BERLU_OK || opened_checkpoint(o) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

/* fc2(f(fc1(x))) in double, biases left out: they cancel in differences. */
static void branch_apply(const opened *o, const char *prefix, const berlu_act *act, const double *x, size_t width,
                         double *y, double *middle)
{
    char name[512];
    float *fc1, *fc2, *bias;
    const tensor_info *info;
    snprintf(name, sizeof name, "%s.fc1.weight", prefix);
    assert_int_equal(opened_parameter(o, ARRAY_WEIGHT, name, &fc1, &info), BERLU_OK);
    size_t wide = (size_t)info->size[0];
    snprintf(name, sizeof name, "%s.fc2.weight", prefix);
    assert_int_equal(opened_parameter(o, ARRAY_WEIGHT, name, &fc2, &info), BERLU_OK);
    snprintf(name, sizeof name, "%s.fc1.bias", prefix);
    assert_int_equal(opened_parameter(o, ARRAY_WEIGHT, name, &bias, &info), BERLU_OK);
    for (size_t i = 0; i < wide; i++) {
        middle[i] = bias[i];
        for (size_t k = 0; k < width; k++)
            middle[i] += fc1[i * width + k] * x[k];
        middle[i] = berlu_act_at(act, middle[i], NULL).value;
    }
    for (size_t i = 0; i < width; i++) {
        y[i] = 0;
        for (size_t k = 0; k < wide; k++)
            y[i] += fc2[i * wide + k] * middle[k];
    }
    free(fc1);
    free(fc2);
    free(bias);
}

static double apart(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

static void no_pair_of_inputs_is_stretched_beyond_the_bound(void **state)
{
    (void)state;
    enum { WIDTH = 64, PAIRS = 50 };
    opened o;
    branch *branches;
    size_t count;
    uint32_t seed = 1;
    open_run(&o, trained, 0);
    assert_int_equal(branches_find(&branches, &count, &o, 1), BERLU_OK);
    assert_int_equal(count, (size_t)graph_site_count(o.model->graph));
    for (size_t i = 0; i < count; i++) {
        char prefix[64], spec[64];
        berlu_act *act;
        double x[2][WIDTH], y[2][WIDTH], middle[4 * WIDTH], most = 0;
        assert_true(branches[i].scale == 1 && branches[i].lipschitz >= 1 && branches[i].eps > 0);
        snprintf(prefix, sizeof prefix, "blocks.%zu.mlp", i);
        assert_int_equal(o.model->config.width[0], WIDTH);
        snprintf(spec, sizeof spec, "berlu:alpha=%.9g", branches[i].alpha);
        assert_int_equal(berlu_act_make(&act, spec), BERLU_OK);
        for (int pair = 0; pair < PAIRS; pair++) {
            for (int k = 0; k < 2; k++) {
                for (int c = 0; c < WIDTH; c++) {
                    seed = 1664525 * seed + 1013904223;
                    x[k][c] = (double)seed * 0x1p-30 - 2;
                }
                branch_apply(&o, prefix, act, x[k], WIDTH, y[k], middle);
            }
            most = fmax(most, apart(y[0], y[1], WIDTH) / apart(x[0], x[1], WIDTH));
        }
        assert_true(most > 0 && most <= branches[i].bound);
        berlu_act_free(act);
    }
    free(branches);
    opened_free(&o);
}

static void layer_scale_is_part_of_the_bound(void **state)
{
    (void)state;
    opened o;
    branch *branches;
    size_t count;
    char run[FOLDER_PATH];
    snprintf(run, sizeof run, "%s/test-data/analyze_convnext/run", getenv("BERLU_BUILD_DIR"));
    open_run(&o, run, 0);
    assert_int_equal(branches_find(&branches, &count, &o, 2), BERLU_OK);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        const branch *b = &branches[i];
        assert_true(b->scale < 0.1); /* it starts at 1e-6 and was trained for an epoch */
        assert_true(b->bound == b->fc1 * b->lipschitz * b->fc2 * b->scale);
    }
    free(branches);
    opened_free(&o);
}

/* ---- regions --------------------------------------------------------------------------------- */

/* Linear layers start at a deviation of 0.02 behind a norm of width 64, so pre-activations have
 * 0.02 * 8. A sample of 64 Ki correlated values lies within a tenth of it. */
static void regions_begin_with_the_initial_weights(void **state)
{
    (void)state;
    regions r;
    if (regions_read(&r, trained) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    assert_true(r.has_start && r.sites == 4 && r.epochs == 4);
    for (size_t i = 0; i < r.epochs; i++)
        for (size_t s = 0; s < r.sites; s++) {
            const region *v = &r.values[i * r.sites + s];
            assert_int_equal(r.epoch[i], i);
            assert_true(fabs(v->left + v->inside + v->right - 1) < 1e-12 && v->nonlinear > 0 && v->nonlinear < 1);
            if (i == 0)
                assert_true(v->alpha == 0.01f && fabs(v->scale - 0.16) < 0.016);
        }
    assert_string_equal(r.names[3], "blocks.3.mlp.act");
    assert_true(r.values[3 * 4 + 1].inside == metric(trained, 2, "inside.blocks.1.mlp.act"));
    assert_true(r.values[3 * 4 + 1].scale == sqrt(metric(trained, 2, "var.blocks.1.mlp.act")));
    regions_free(&r);
}

/* berlu 0.1.0 recorded neither the start nor 1 - R^2. */
static void regions_of_an_old_run_say_what_is_unknown(void **state)
{
    (void)state;
    regions r;
    char run[FOLDER_PATH];
    snprintf(run, sizeof run, "%s/tests/golden/runs/0.1.0/tnt", getenv("BERLU_SOURCE_DIR"));
    if (regions_read(&r, run) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    assert_true(!r.has_start && r.sites > 0 && r.epoch[0] == 1);
    assert_true(isnan(r.values[0].nonlinear) && r.values[0].inside >= 0);
    regions_free(&r);
    snprintf(run, sizeof run, "%s/tests/golden/runs/0.1.0/linear", getenv("BERLU_SOURCE_DIR"));
    assert_int_equal(regions_read(&r, run), BERLU_ERR_INPUT); /* it has no activation */
    assert_int_equal(regions_read(&r, "no/such/run"), BERLU_ERR_INPUT);
}

/* ---- loss and gradient ----------------------------------------------------------------------- */

/* The engine of the analyses trains, that of an evaluation answers; the images and the weights are
 * the same, so is the loss but for the rounding of f32. */
static void the_loss_at_the_weights_is_that_of_an_evaluation(void **state)
{
    (void)state;
    opened o;
    score s;
    double loss;
    const eval_request request = {.run = trained, .which = "last", .batch = 8, .threads = 1};
    assert_int_equal(eval_run(&request, &s), BERLU_OK);
    open_run(&o, trained, 1 << 20);
    assert_int_equal(o.count, s.images);
    assert_int_equal(opened_loss(&o, &loss, NULL), BERLU_OK);
    assert_true(fabs(loss - score_loss(&s)) <= 1e-6 * loss);
    opened_free(&o);
    assert_true(fabs(loss - metric(trained, 2, "test_loss")) <= 1e-6 * loss);
}

/* Batches of 7 and of everything: the same loss and gradient, and the gradient is the slope of the
 * loss. */
static void the_gradient_is_the_slope_of_the_loss(void **state)
{
    (void)state;
    opened o;
    double loss, ahead, behind, *w, *g, *moved, length = 0;
    open_run(&o, trained, 12);
    assert_int_equal(o.count, 12);
    w = calloc(3 * o.parameters, sizeof *w);
    g = w + o.parameters, moved = g + o.parameters;
    assert_int_equal(opened_get(&o, w), BERLU_OK);
    assert_int_equal(opened_loss(&o, &loss, g), BERLU_OK);
    for (size_t i = 0; i < o.parameters; i++)
        length += g[i] * g[i];
    length = sqrt(length);
    const double h = 1e-2;
    for (int side = -1; side <= 1; side += 2) {
        for (size_t i = 0; i < o.parameters; i++)
            moved[i] = w[i] + side * h * g[i] / length;
        assert_int_equal(opened_set(&o, moved), BERLU_OK);
        assert_int_equal(opened_loss(&o, side < 0 ? &behind : &ahead, NULL), BERLU_OK);
    }
    assert_true(fabs((ahead - behind) / (2 * h) - length) <= 1e-2 * length);
    opened whole;
    const opened_options options = {.name = trained, .images = 12, .test = 1, .batch = 12, .threads = 1};
    double *same = calloc(o.parameters, sizeof *same), again;
    assert_int_equal(opened_make(&whole, &options), BERLU_OK);
    assert_int_equal(opened_checkpoint(&whole), BERLU_OK);
    assert_int_equal(opened_loss(&whole, &again, same), BERLU_OK);
    assert_true(fabs(again - loss) <= 1e-6 * loss && apart(same, g, o.parameters) <= 1e-5 * length);
    opened_free(&whole);
    free(same);
    free(w);
    opened_free(&o);
}

static void the_start_is_drawn_from_the_seed(void **state)
{
    (void)state;
    opened a, b;
    float *x, *y;
    const tensor_info *info;
    open_run(&a, trained, 0);
    assert_int_equal(opened_start(&a), BERLU_OK);
    static const char *const settings[][2] = {{"act", "gelu"}, {"patch", "8"}, {"image_size", "16"}};
    const opened_options options = {.name = "vit_micro", .settings = settings, .setting_count = 3, .batch = 1};
    assert_int_equal(opened_make(&b, &options), BERLU_OK);
    assert_false(b.is_run);
    assert_int_equal(opened_start(&b), BERLU_OK);
    assert_int_equal(opened_parameter(&a, ARRAY_WEIGHT, "blocks.1.mlp.fc1.weight", &x, &info), BERLU_OK);
    assert_int_equal(opened_parameter(&b, ARRAY_WEIGHT, "blocks.1.mlp.fc1.weight", &y, &info), BERLU_OK);
    assert_memory_equal(x, y, (size_t)tensor_elements(info) * sizeof *x);
    free(x);
    free(y);
    assert_int_equal(opened_parameter(&a, ARRAY_WEIGHT, "nothing", &x, &info), BERLU_ERR_INPUT);
    opened_free(&a);
    opened_free(&b);
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    opened o;
    static const char *const settings[][2] = {{"act", "gelu"}};
    opened_options options = {.name = trained, .settings = settings, .setting_count = 1, .batch = 1};
    assert_int_equal(opened_make(&o, &options), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "--act"));
    options = (opened_options){.name = "no/such/run", .batch = 1};
    assert_int_equal(opened_make(&o, &options), BERLU_ERR_INPUT);
    options = (opened_options){.name = trained, .which = "77777", .batch = 1};
    assert_int_equal(opened_make(&o, &options), BERLU_ERR_INPUT);
    options = (opened_options){.name = trained, .ema = 1, .batch = 1};
    assert_int_equal(opened_make(&o, &options), BERLU_ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(singular_values_are_those_of_lapack),
        cmocka_unit_test(a_matrix_with_a_nan_has_no_singular_values),
        cmocka_unit_test(no_pair_of_inputs_is_stretched_beyond_the_bound),
        cmocka_unit_test(layer_scale_is_part_of_the_bound),
        cmocka_unit_test(regions_begin_with_the_initial_weights),
        cmocka_unit_test(regions_of_an_old_run_say_what_is_unknown),
        cmocka_unit_test(the_loss_at_the_weights_is_that_of_an_evaluation),
        cmocka_unit_test(the_gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(the_start_is_drawn_from_the_seed),
        cmocka_unit_test(what_cannot_be_opened_is_named),
    };
    return cmocka_run_group_tests(tests, runs_make, NULL);
}
